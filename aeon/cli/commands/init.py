"""`aeon init DIR`: copy configuration, prompts and schemas for editing, with a project file that uses them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
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
_NEXT = """\
Copied {copied} files to {directory}. What you delete again comes from the package.

Run with them, from that folder, by its aeon.yaml:
  cd {quoted} && python -m aeon task="..."
From elsewhere:
  python -m aeon {use} task="..."
See what a call is asked, and which file each part comes from:
  python -m aeon render plan {use} task="..."
See the whole configuration:
  python -m aeon {use} --cfg job
"""


def main(arguments: Sequence[str]) -> int:
    """Copy into the folder and print the commands that use the copies.

    Raises ConfigError, with nothing copied, when a file would be overwritten, or when the folder cannot be written.
    """
    parser = argparse.ArgumentParser(prog="aeon init", add_help=False)
    parser.add_argument("directory", type=lambda text: Path(text).expanduser(), metavar="DIR")
    directory: Path = parser.parse_args(list(arguments)).directory
    copies = {directory / relative: source.read_bytes() for source, relative in packaged_files()}
    contents = {**copies, directory / FILE: _PROJECT.encode()}
    if existing := next((target for target in contents if target.exists()), None):
        raise ConfigError(f"{existing}: already there, nothing was copied", hint="Choose an empty folder.")
    try:
        for target, content in contents.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"{error.filename or directory}: cannot be written: {error.strerror or error}") from None
    conf, prompts, schemas = (shlex.quote(str(directory / part)) for part in PARTS)
    use = f"--config-dir {conf} prompts.dir={prompts} schemas.dir={schemas}"
    put(_NEXT.format(copied=len(copies), directory=directory, quoted=shlex.quote(str(directory)), use=use))
    return DONE


def packaged_files() -> Iterator[tuple[Path, Path]]:
    """Every packaged file, and its path relative to the folder that holds conf, prompts and schemas."""
    root = resource_root()
    for part in PARTS:
        for source in sorted((root / part).rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                yield source, source.relative_to(root)
