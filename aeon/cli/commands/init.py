"""`aeon init DIR`: copy configuration, prompts and schemas for editing, with a project file that uses them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from aeon.cli.terminal.status import DONE
from aeon.config.project_file import FILE
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root

PARTS = ("conf", "prompts", "schemas")
_PROJECT = """\
# What every run from this folder, or from one below it in the same repository, is given (aeon docs project).
# The command line wins over it; --no-project leaves it out.

# A folder of configuration files, looked in before the packaged ones.
config_dir: conf

# Overrides as on the command line, key: value; paths are relative to this file.
overrides:
  prompts.dir: prompts
  schemas.dir: schemas
"""


def main(arguments: Sequence[str]) -> int:
    """Copy into the folder and print the commands that use the copies.

    Raises ConfigError, with nothing copied, when a file would be overwritten, or when the folder cannot be written.
    """
    parser = argparse.ArgumentParser(prog="aeon init", add_help=False)
    parser.add_argument("directory", type=Path, metavar="DIR")
    directory: Path = parser.parse_args(list(arguments)).directory
    try:
        copied = copy_resources(directory.expanduser())
    except OSError as error:
        raise ConfigError(f"{error.filename or directory}: cannot be written: {error.strerror or error}") from None
    print(_next_commands(directory, copied))
    return DONE


def copy_resources(directory: Path) -> int:
    """Copy the packaged files; how many there were. ConfigError, with nothing copied, if one is there already."""
    copies = [(source, directory / relative) for source, relative in packaged_files()]
    project = directory / FILE
    existing = [target for target in (*(target for _, target in copies), project) if target.exists()]
    if existing:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise ConfigError(f"{existing[0]}{more}: already there, nothing was copied", hint="Choose an empty folder.")
    for source, target in copies:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as copy:
            copy.write(source.read_bytes())
    with project.open("x", encoding="utf-8") as written:
        written.write(_PROJECT)
    return len(copies)


def packaged_files() -> Iterator[tuple[Path, Path]]:
    """Every packaged file, and its path relative to the folder that holds conf, prompts and schemas."""
    root = resource_root()
    for part in PARTS:
        for source in sorted((root / part).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                yield source, source.relative_to(root)


def _next_commands(directory: Path, copied: int) -> str:
    conf, prompts, schemas = (shlex.quote(str(directory / part)) for part in PARTS)
    use = f"--config-dir {conf} prompts.dir={prompts} schemas.dir={schemas}"
    return "\n".join(
        [
            f"Copied {copied} files to {directory}. What you delete again comes from the package.",
            "",
            f"Run with them, from that folder, by its {FILE}:",
            f'  cd {shlex.quote(str(directory))} && python -m aeon task="..."',
            "From elsewhere:",
            f'  python -m aeon {use} task="..."',
            "See what a call is asked, and which file each part comes from:",
            f'  python -m aeon render plan {use} task="..."',
            "See the whole configuration:",
            f"  python -m aeon {use} --cfg job",
        ]
    )
