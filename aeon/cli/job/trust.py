"""The files of a folder that would take effect, shown to the person who is asked to trust them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from io import StringIO

from dotenv import dotenv_values

from aeon.cli.terminal.questions import confirm
from aeon.config.folder_content import DOTENV, Content
from aeon.files.resources import resource_root
from aeon.report.words import count_noun
from aeon.store.cassette_export import is_secret_name

_PACKAGED = {"config_dir": "conf", "prompts.dir": "prompts", "schemas.dir": "schemas"}


def ask_for_trust(content: Content) -> bool:
    """Ask the person at the terminal whether they trust the content shown."""
    return confirm(
        f"\nThe content above takes effect for every run in {content.folder}: it may start "
        "programs, choose where your tasks and keys are sent, and write files. Do you trust it?"
    )


def show_content(content: Content) -> Iterator[str]:
    """Yield every file in full, or its differences from the packaged file in the same place,
    without the values of keys."""
    same = []
    # Files of the folder itself come first: they name the others.
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
    if b"\0" in data:
        return f"({len(data)} bytes that are not text)"
    # A Python module may be in another encoding.
    return data.decode("utf-8", "backslashreplace")


def _describe_variables(data: bytes) -> Iterator[str]:
    """Yield the variables of a `.env`, without the values of those with a secret's name."""
    stream = StringIO(data.decode("utf-8-sig", "replace"))
    for name, value in dotenv_values(stream=stream, interpolate=False).items():
        yield (
            f"{name}=({len(value or '')} characters)" if is_secret_name(name) else f"{name}={value}"
        )


def _indent(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"  {_printable(line)}" for line in lines)


def _printable(text: str) -> str:
    """Return the text without characters that control a terminal or change its direction."""
    return "".join(ch if ch.isprintable() or ch == "\t" else ascii(ch)[1:-1] for ch in text)
