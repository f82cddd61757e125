"""The packaged TTL table; only `conf/ttl/default.yaml` defines its levels, bands and amounts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from aeon.domain.profile import TTLTable
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.resources import resource_root


def load_packaged_table(**changes: Any) -> TTLTable:
    """Return the packaged table with these changes."""
    return TTLTable.model_validate(complete_table(changes))


def complete_table(given: object) -> Any:
    """Complete a table with missing values from the packaged one."""
    return {**_read_packaged_values(), **given} if isinstance(given, Mapping) else given


@cache
def _read_packaged_values() -> JsonMapping:
    from aeon.files.fast_yaml import read_yaml  # a library that not every engine needs

    values: JsonObject = read_yaml(resource_root() / "conf" / "ttl" / "default.yaml")
    return values
