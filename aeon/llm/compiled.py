"""Packaged templates, compiled once for all processes."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

_FORM = 1
"""Counted up when an environment of the package compiles its templates to something else."""


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in files, as Python does with modules; where nothing can be written, they
    are compiled each time."""

    def __init__(self) -> None:
        super().__init__(
            str(Path(__file__).with_name("__pycache__")), f"__template{_FORM}_%s.cache"
        )

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a file, unless Python is not to write any either."""
        with suppress(OSError):
            if not sys.dont_write_bytecode:
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
