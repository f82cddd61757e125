"""Settings as data: the recorded part of them, and the part of a recording that this version
knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject, show_address
from aeon.files.explain import explain
from aeon.files.secret_forms import mask_text

Key = tuple[str, ...]
"""The names that lead to a value, outermost first; a name may hold a dot."""

RECORDED_APART = frozenset(
    {
        "task",
        "task_file",
        "inputs",
        "input_files",
        "input_as",
        "resume",
        "sweep",
        "batch",
        "arms",
        "mcp",
        "serve",
        "trust",
    }
)
"""Settings that are recorded apart, such as the task, or that say how jobs are carried out."""
FILLED_FROM: Mapping[Key, Key] = {
    ("convergence", "criteria_file"): ("convergence", "criteria"),
    ("memory", "entries_file"): ("memory", "entries"),
    ("answer", "schema"): ("answer", "json_schema"),
}
"""The keys that name a file whose content is copied into the settings, and the key it goes to."""


def record(settings: BaseModel) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings as JSON values, without task and inputs, which are recorded apart; and
    the keys of those left out because they hold a secret. Paths are absolute; the content of files
    is recorded in place of their names."""
    values = _as_data(settings.model_dump(by_alias=True, exclude=set(RECORDED_APART)))
    # Read again, such a file would take precedence over its recorded content.
    for key in FILLED_FROM:
        put(values, key, None)
    provider = values["provider"]
    if provider["model"] == provider.get("adapter"):
        del provider["model"]  # a class given later has its own name
    secret = [key for key, value in leaves(values) if _holds_secret(key[-1], value)]
    for key in secret:
        remove(values, key)
    return values, tuple(map(".".join, secret))


def check_known(
    recorded: JsonMapping, model: type[BaseModel], where: str
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return recorded settings without the keys that this version's `model` does not have, and
    those keys. Raises ConfigError for values that it does not allow; `where` is their place."""
    ours = {name: part for name, part in recorded.items() if name not in RECORDED_APART}
    known = _as_data(ours)
    try:
        model.model_validate(known)
    except pydantic.ValidationError as error:
        mistakes = list(explain(error, known, model))
        if wrong := [one for one in mistakes if one.kind != "extra_forbidden"]:
            hint = "Another version of Aeon may have written it: see `versions` in it."
            raise ConfigError(f"{where}: settings.{wrong[0].sentence()}", hint=hint) from None
        unknown = [tuple(map(str, one.place)) for one in mistakes]
        for key in unknown:
            remove(known, key)
        return known, tuple(map(".".join, unknown))
    return known, ()


def find_new(
    settings: BaseModel, recorded: JsonMapping, missing: Collection[str]
) -> tuple[str, ...]:
    """Return the keys of settings that an earlier version did not record, so that their defaults
    apply; those of `missing` were left out on purpose."""
    before = dict(leaves(recorded))
    now, _ = record(settings)
    same = {name: part for name, part in now.items() if _is_of_one_kind(part, recorded.get(name))}
    added = [key for key, _ in leaves(same) if key not in before and _has_siblings(key, before)]
    return tuple(name for name in map(".".join, added) if name not in missing)


def _is_of_one_kind(now: object, before: object) -> bool:
    """Check whether a group still has its recorded kind: another kind has other keys."""
    if isinstance(now, Mapping) and isinstance(before, Mapping):
        return bool(now.get("kind") == before.get("kind"))
    return True


def _has_siblings(key: Key, others: Iterable[Key]) -> bool:
    return any(other[: len(key) - 1] == key[:-1] for other in others)


def leaves(values: JsonMapping, above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Yield every nested value that is not a mapping, or an empty one, with its key."""
    for name, value in values.items():
        key = (*above, str(name))
        if isinstance(value, Mapping) and value:
            yield from leaves(value, key)
        else:
            yield key, value


def put(values: JsonObject, key: Key, value: object) -> None:
    """Set the value at a key, creating missing mappings above it."""
    for name in key[:-1]:
        inner = values.get(name)
        values[name] = inner if isinstance(inner, dict) else {}
        values = values[name]
    values[key[-1]] = value


def remove(values: JsonObject, key: Key) -> None:
    """Delete the value at a key, if it exists."""
    *above, last = key
    for name in above:
        inner = values.get(name)
        if not isinstance(inner, dict):
            return
        values = inner
    values.pop(last, None)


def _as_data(value: object) -> Any:
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    if isinstance(value, Mapping):
        return {str(name): _as_data(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_data(item) for item in value]
    return to_jsonable_python(value)


def _holds_secret(name: str, value: object) -> bool:
    """Check whether a value came from the environment as a secret, or is an address that may not be
    shown in full."""
    if isinstance(value, str):
        is_address = name == "base_url"
        return mask_text(value) != value or (is_address and show_address(value) != value)
    if isinstance(value, Mapping):
        return any(_holds_secret(str(inner), item) for inner, item in value.items())
    if isinstance(value, list):
        return any(_holds_secret(name, item) for item in value)
    return False
