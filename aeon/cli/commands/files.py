"""Commands on editable files: `aeon init DIR` copies the packaged ones, `aeon schema` describes
configuration files, `aeon render CALL` shows the prompt and the schema of a call, `aeon config why
KEY` finds where a value was set."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from string import Template

from aeon.cli.job.arguments import read_composition
from aeon.cli.syntax.commands import TEXTS
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.config.folder_content import read_content
from aeon.config.json_schema import configuration_schema
from aeon.config.load import compose_settings
from aeon.config.project_file import FILE
from aeon.config.trusted_folders import remember
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.files.resources import resource_root
from aeon.report.words import as_typed_here, program

PARTS = {
    "conf": ("--config-dir ", "config_dir: conf"),
    "prompts": ("prompts.dir=", "  prompts.dir: prompts"),
    "schemas": ("schemas.dir=", "  schemas.dir: schemas"),
}
"""The folders of packaged files, each with the flag and the project file's line that use a copy
of it."""


def init(given: Namespace) -> int:
    """Copy into the folder, with a project file, and print the commands that use the copies. Raises
    ConfigError, with nothing copied, when a file would be overwritten, when the folder cannot be
    written, and when everything would be copied into this folder."""
    directory = _find_folder(given)
    files = dict(list_packaged_files(given.only))
    contents = {directory / relative: source.read_bytes() for source, relative in files.items()}
    copied = len(contents)
    parts = {relative.parts[0] for relative in files.values()}
    contents[directory / FILE] = _write_project(parts).encode()
    if existing := next((target for target in contents if target.exists()), None):
        raise ConfigError(
            f"{existing}: already there, nothing was copied", hint="Choose an empty folder."
        )
    _write_files(contents, directory)
    _trust_own(directory, contents)
    flags = [
        f"{flag}{shlex.quote(str(directory / part))}"
        for part, (flag, _) in PARTS.items()
        if part in parts
    ]
    text = Template((TEXTS / "init.next").read_text(encoding="utf-8"))
    filled = text.substitute(
        copied=copied,
        directory=directory,
        quoted=shlex.quote(str(directory)),
        program=program(),
        call=given.only or "plan",
        use=" ".join(flags),
    )
    put(as_typed_here(filled))
    return DONE


def _find_folder(given: Namespace) -> Path:
    if given.dir is None and given.only is None:
        raise ConfigError(
            "aeon init: DIR is missing",
            hint="`aeon init mine` copies everything, `aeon init --only step` the files of one "
            "call into this folder.",
        )
    folder: Path = given.dir or Path.cwd()
    return folder.expanduser()


def _write_files(contents: Mapping[Path, bytes], directory: Path) -> None:
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"{error.filename or directory}: cannot be written: {error.strerror or error}"
        ) from None


def _write_project(parts: Collection[str]) -> str:
    """Return a project file that uses these folders; the lines of the others are comments."""
    text = (TEXTS / "project.yaml").read_text(encoding="utf-8")
    for part, (_, line) in PARTS.items():
        if part not in parts:
            text = text.replace(f"\n{line}\n", f"\n# {line}\n")
    return text


def _trust_own(directory: Path, contents: Mapping[Path, bytes]) -> None:
    """Trust the written files, unless the folder held other files that would take effect."""
    content = read_content(directory)
    written = {path.relative_to(directory).as_posix(): data for path, data in contents.items()}
    if others := sorted(content.files.keys() - written.keys()):
        say(
            f"{others[0]} existed before: `aeon trust "
            f"{directory}` shows what takes effect, and asks."
        )
        return
    try:
        if content.files == written:
            remember(content)
    except ArtefactError as error:
        say(f"Warning: {error.message}: `aeon trust {directory}` is needed before a run.")


def list_packaged_files(only: str | None = None) -> Iterator[tuple[Path, Path]]:
    """Yield every packaged file, or those of `only` one call, with its path relative to the folder
    that holds conf, prompts and schemas."""
    root = resource_root()
    for part in PARTS:
        for source in sorted((root / part).rglob("*")):
            is_asked_for = only is None or (part != "conf" and source.name.startswith(f"{only}."))
            if is_asked_for and source.is_file() and "__pycache__" not in source.parts:
                yield source, source.relative_to(root)


def schema(given: Namespace) -> int:
    """Print the JSON Schema of the configuration, or of a group's files. Raises ConfigError for an
    unknown group."""
    put(json.dumps(configuration_schema(given.group), indent=2, ensure_ascii=False))
    return DONE


def render(given: Namespace) -> int:
    """Print the prompt and the schema of a call, and the file that each part comes from."""
    from aeon.app.rehearsal import render_call  # slow to load

    settings = compose_settings(read_composition(given))
    shown = render_call(settings, given.call)
    parts = {
        "system": shown.system,
        "user": shown.user,
        "schema": json.dumps(shown.schema, indent=2),
    }
    for part, text in parts.items():
        put(f"--- {part}: {shown.files.get(part, 'made by the program')}\n{text.rstrip()}\n\n")
    return DONE


def why(given: Namespace) -> int:
    """Print the value in force for a key, where it is set, and the values that it overrides. Raises
    ConfigError for an unknown key."""
    from aeon.config.compose.sources import find_sources  # slow to load

    composition = read_composition(given)
    typed = composition.overrides[len(composition.overrides) - len(given.overrides) :]
    earlier = composition.overrides[: -len(typed)] if typed else composition.overrides
    value, sources = find_sources(composition, given.key)
    put(f"{given.key} = {value}")
    if not sources:
        put("Nothing sets it: it is the default.")
    for number, source in enumerate(reversed(sources)):
        notes = {
            f"chosen by {source.chosen_by}": bool(source.chosen_by),
            "on the command line": source.place in typed,
            f"in {FILE}": source.place in earlier,
        }
        note = "".join(f" ({text})" for text, holds in notes.items() if holds)
        put(f"  {'instead of ' * bool(number)}{source.value}  {source.place}{note}")
    return DONE
