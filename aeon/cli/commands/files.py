"""The files that a person may edit: `aeon init DIR` copies them, `aeon schema` describes those of
the configuration, `aeon render CALL` shows the prompt and the schema of a call."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping
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

PARTS = ("conf", "prompts", "schemas")


def init(given: Namespace) -> int:
    """Copy into the folder, with a project file, and print the commands that use the copies. Raises
    ConfigError, with nothing copied, when a file would be overwritten, or when the folder cannot be
    written."""
    directory: Path = given.dir.expanduser()
    contents = {
        directory / relative: source.read_bytes() for source, relative in list_packaged_files()
    }
    copied = len(contents)
    contents[directory / FILE] = (TEXTS / "project.yaml").read_bytes()
    if existing := next((target for target in contents if target.exists()), None):
        raise ConfigError(
            f"{existing}: already there, nothing was copied", hint="Choose an empty folder."
        )
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"{error.filename or directory}: cannot be written: {error.strerror or error}"
        ) from None
    _trust_own(directory, contents)
    conf, prompts, schemas = (shlex.quote(str(directory / part)) for part in PARTS)
    text = Template((TEXTS / "init.next").read_text(encoding="utf-8"))
    filled = text.substitute(
        copied=copied,
        directory=directory,
        quoted=shlex.quote(str(directory)),
        program=program(),
        use=f"--config-dir {conf} prompts.dir={prompts} schemas.dir={schemas}",
    )
    put(as_typed_here(filled))
    return DONE


def _trust_own(directory: Path, contents: Mapping[Path, bytes]) -> None:
    """Trust what was written here, unless something else that would take effect was there
    before."""
    content = read_content(directory)
    written = {path.relative_to(directory).as_posix(): data for path, data in contents.items()}
    if others := sorted(content.files.keys() - written.keys()):
        say(
            f"{others[0]} was there before: `aeon trust {directory}` shows what takes effect, and asks."
        )
        return
    try:
        if content.files == written:
            remember(content)
    except ArtefactError as error:
        say(f"Warning: {error.message}: `aeon trust {directory}` is needed before a run.")


def list_packaged_files() -> Iterator[tuple[Path, Path]]:
    """Every packaged file, and its path relative to the folder that holds conf, prompts and
    schemas."""
    root = resource_root()
    for part in PARTS:
        for source in sorted((root / part).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                yield source, source.relative_to(root)


def schema(given: Namespace) -> int:
    """Print the JSON Schema of the configuration, or of a group's files. ConfigError for an unknown
    one."""
    put(json.dumps(configuration_schema(given.group), indent=2, ensure_ascii=False))
    return DONE


def render(given: Namespace) -> int:
    """Print what a call is asked, and the file that each part comes from."""
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
