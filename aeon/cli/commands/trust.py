"""`aeon trust [DIR]`: shows everything of a folder that would take effect, asks, and remembers the answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values

from aeon.cli.terminal.questions import at_terminal, confirm
from aeon.cli.terminal.status import DONE, FAILED
from aeon.cli.terminal.streams import put, say
from aeon.config.folder_content import DOTENV, Content, read_content
from aeon.config.trusted_folders import (
    VARIABLE,
    forget,
    given_hashes,
    is_trusted,
    list_trusted,
    remember,
)
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root
from aeon.report.words import count_noun, one_line
from aeon.store.cassette_export import is_secret_name

_PACKAGED = {"config_dir": "conf", "prompts.dir": "prompts", "schemas.dir": "schemas"}


def trust(arguments: Sequence[str]) -> int:
    """Show a folder and remember that the person trusts it as it is. 1 when they do not. Raises ConfigError, with the
    hash, where nobody can be asked, and ArtefactError when it cannot be remembered."""
    parser = argparse.ArgumentParser(prog="aeon trust", add_help=False)
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--forget", action="store_true")
    given = parser.parse_args(list(arguments))
    folder = Path(given.directory).expanduser().resolve()
    if given.list:
        put("\n".join(_list()) or "No folder is trusted. `aeon trust DIR` shows one and asks.")
        return DONE
    if given.forget:
        forget(folder)
        put(f"{folder}: forgotten; nothing of it takes effect.")
        return DONE
    content = read_content(folder)
    put("\n".join(_show(content)))
    if is_trusted(content) and content.digest not in given_hashes():
        put("\nYou trust it as it is.")
        return DONE
    if content.digest not in given_hashes() and not _ask(content):
        say("Not trusted: nothing of it takes effect.")
        return FAILED
    remember(content)
    put("\nTrusted as it is; when anything of it changes, you are asked again.")
    return DONE


def _ask(content: Content) -> bool:
    if not at_terminal():
        raise ConfigError(
            f"{content.named}: there is no terminal to ask at whether you trust it",
            hint=f"{VARIABLE}={content.digest} in the environment says yes to just what is shown here.",
        )
    return confirm(
        f"\nWhat is shown above takes effect for every run in {content.folder}: it may start programs, "
        "choose where your tasks and keys are sent, and write files. Do you trust it?"
    )


def _list() -> Iterator[str]:
    for path, digest in sorted(list_trusted().items()):
        try:
            state = "as it is" if read_content(Path(path)).digest == digest else "changed since"
        except ConfigError:
            state = "gone, or cannot be read"
        yield f"{one_line(path)}  {digest[:12]}  {state}"


def _show(content: Content) -> Iterator[str]:
    """Every file in full, or what differs from the packaged one of the same place, values of keys aside."""
    same = []
    for name in sorted(content.files, key=lambda name: (name.count("/"), name)):
        text = _text(name, content.files[name])
        packaged = _find_packaged(content, name)
        if packaged is None:
            yield from (f"--- {_printable(name)}", *_indent(text.splitlines()), "")
        elif packaged == content.files[name]:
            same.append(name)
        else:
            before = packaged.decode("utf-8", "replace").splitlines()
            changes = list(unified_diff(before, text.splitlines(), lineterm="", n=2))[2:]
            yield from (
                f"--- {_printable(name)}, where it differs from the packaged file",
                *_indent(changes),
                "",
            )
    if same:
        yield f"{count_noun(len(same), 'file')} more, the same as the packaged ones."
    own = sorted(set(content.files) - set(same))
    sizes = (f"{_printable(name)} ({len(content.files[name]):,} bytes)" for name in own)
    yield f"{content.folder}: {', '.join(sizes)}"
    yield f"Hash: {content.digest}"


def _find_packaged(content: Content, name: str) -> bytes | None:
    path = content.folder / name
    for key, folder in content.project.folders.items() if content.project else ():
        if path.is_relative_to(folder):
            twin = resource_root() / _PACKAGED[key] / path.relative_to(folder)
            return twin.read_bytes() if twin.is_file() else None
    return None


def _text(name: str, data: bytes) -> str:
    if name == DOTENV:
        return "\n".join(_describe_variables(data))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are no text)"


def _describe_variables(data: bytes) -> Iterator[str]:
    """The variables of a `.env`, without the values of those that are named as secrets are."""
    stream = StringIO(data.decode("utf-8-sig", "replace"))
    for name, value in dotenv_values(stream=stream, interpolate=False).items():
        yield (
            f"{name}=({len(value or '')} characters)" if is_secret_name(name) else f"{name}={value}"
        )


def _indent(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {_printable(line)}" for line in lines)


def _printable(text: str) -> str:
    """The text without what steers a terminal or turns its direction."""
    return "".join(ch if ch.isprintable() or ch == "\t" else ascii(ch)[1:-1] for ch in text)
