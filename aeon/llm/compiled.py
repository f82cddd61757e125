"""Packaged templates, compiled once for all processes."""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from jinja2 import FileSystemBytecodeCache, compiler
from jinja2.bccache import Bucket


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates in files, as Python stores modules; where nothing can be written, they are
    compiled each time. They are compiled anew after a change of a template, of Jinja's compiler,
    and of the files `made_by`, which define the environment."""

    def __init__(self, *made_by: str) -> None:
        super().__init__(
            str(Path(__file__).with_name("__pycache__")),
            f"__template_%s.{sys.implementation.cache_tag}.cache",
        )
        self._made_by = (compiler.__file__, *made_by)

    @cached_property
    def _form(self) -> str:
        sources = (Path(each).read_bytes() for each in self._made_by)
        return hashlib.sha256(b"".join(sources)).hexdigest()

    def get_source_checksum(self, source: str) -> str:
        """Return the digest that a file must have to be used."""
        return super().get_source_checksum(self._form + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a file; one that is damaged is written anew."""
        try:
            super().load_bytecode(bucket)
        except Exception:  # whatever pickle raises for what it cannot read
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a file, unless Python is configured to write no bytecode."""
        with suppress(OSError):
            if not sys.dont_write_bytecode:
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
