"""Packaged templates, compiled once for all processes."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

_FORM = 1
"""The version of the compiled form: increase it if the package's environments compile templates
differently."""


class CompiledTemplates(FileSystemBytecodeCache):
    """Keeps compiled templates in `__pycache__`, as Python does with modules. If that cannot be
    written, they are compiled each time."""

    def __init__(self) -> None:
        super().__init__(
            str(Path(__file__).with_name("__pycache__")), f"__template{_FORM}_%s.cache"
        )

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a file, unless Python was told not to write bytecode."""
        with suppress(OSError):
            if not sys.dont_write_bytecode:
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
