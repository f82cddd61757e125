"""Which overrides of a cassette's head are taken: a cassette may be anybody's, and replaying it must only replay it.

Taken is what decides what is asked and how a run goes on. What starts, imports, reads or writes something is held back
until the person who replays says it; what a replay has no use for (addresses, keys, where things go) is left away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import literal

_Verdict = Literal["taken", "held", "unneeded"]

_WHOLE = frozenset(
    {"answer", "convergence", "env", "execution", "experiment", "interaction", "limits", "mode", "reasoning"}
    | {"refinement", "roles", "ttl"}
)
"""Groups of which every choice and every key is taken, but for files."""

_GROUPS = _WHOLE | {"prompts", "provider", "schemas", "tools"}
"""Groups whose choices are taken."""

_FILES = (
    "answer.schema",
    "answer.schema_file",
    "convergence.criteria_file",
    "memory.entries_file",
    "provider.scenario",
)
_KEYS = (
    "prompts.set",
    "prompts.outline_steps",
    *(f"provider.{name}" for name in ("kind", "name", "model", "temperature", "max_tokens", "effort", "seed")),
    *(f"provider.{name}" for name in ("structured_output", "max_tokens_parameter", "extra_body", "prices")),
    *(f"provider.{name}" for name in ("repo_id", "filename", "revision", "schema_in_prompt", "n_ctx")),
    "provider.options",
    "memory.entries",
    "memory.max_characters",
    "store.sample",
    *(f"tools.{name}" for name in ("approval", "timeout_seconds", "max_output_characters")),
    *(f"tools.builtin.{name}" for name in ("only", "allowed_hosts", "max_file_bytes", "max_response_bytes")),
)
_UNNEEDED = (
    *(f"provider.{name}" for name in ("base_url", "base_url_env", "api_key_env", "require_key", "extra_headers_env")),
    *(f"provider.{name}" for name in ("timeout_seconds", "max_concurrency", "requests_per_minute", "retry", "breaker")),
    *(f"provider.{name}" for name in ("timeout_per", "stream")),
    *(f"provider.{name}" for name in ("tokens_per_minute", "fallbacks", "latency_seconds", "model_path", "adapter")),
    *("provider.n_threads", "provider.n_gpu_layers", "tools.builtin.http_timeout_seconds"),
    *("hydra", "observability", "output", "progress", "store", "sweep"),
)
_CHOICES_OF_TOOLS = frozenset({"none", "builtin"})
_ABOVE_THE_GROUPS = frozenset({"task=null", "task_file=null", "~inputs", "~input_files"})
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_INTERPOLATION = re.compile(r"(?<!\\)(?:\\\\)*\$\{")


def sorted_out(overrides: Iterable[str], folder: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The overrides that are taken, and the keys of those that are held back; `folder` is the configuration of the
    person who replays, None without one."""
    taken: list[str] = []
    held: dict[str, None] = {}
    for text in overrides:
        found = "taken" if text in _ABOVE_THE_GROUPS else _verdict(text, folder)
        if found == "taken":
            taken.append(text)
        elif found == "held":
            held[key_of(text) or text] = None
    return tuple(taken), tuple(held)


def key_of(override: str) -> str:
    """The key or group of an override, without what adds, deletes or moves it."""
    return override.lstrip("+~").partition("=")[0].partition("@")[0]


def _verdict(text: str, folder: Path | None) -> _Verdict:
    if _under(key_of(text).replace("/", "."), ("hydra",)):
        return "held" if key_of(text) == "hydra.searchpath" else "unneeded"
    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException:
        return "held"
    if override.package is not None or override.is_sweep_override():
        return "held"
    key, value = override.key_or_group, override.value()
    if override.is_delete():
        return _of_key(key)
    if any(_INTERPOLATION.search(part) for part in _texts(value)):
        return "held"
    if "." not in key and not isinstance(value, dict):
        return _of_choice(key, value, folder)
    return _of_keys(_leaves(key, value))


def _of_choice(group: str, value: Any, folder: Path | None) -> _Verdict:
    """A group's option, or several; only those that come with Aeon or with the person's own folder are anything."""
    if group == "memory" and value == "in_memory":
        return "unneeded"
    if group not in _GROUPS:
        return _of_key(group)
    names = [str(name) for name in (value if isinstance(value, list) else [value])]
    if group == "tools":
        return "taken" if _CHOICES_OF_TOOLS.issuperset(names) else "held"
    return "taken" if all(_exists(group, name, folder) for name in names) else "held"


def is_name(text: str) -> bool:
    """Whether a text can only be a file's name, without a folder."""
    return bool(_NAME.fullmatch(text))


def _exists(group: str, name: str, folder: Path | None) -> bool:
    places = [packaged_config_dir(), *([folder] if folder else [])]
    return is_name(name) and any((place / group / f"{name}.yaml").is_file() for place in places)


def _of_keys(keys: Iterable[str]) -> _Verdict:
    found = {_of_key(key) for key in keys}
    return found.pop() if len(found) == 1 else "held"


def _of_key(key: str) -> _Verdict:
    if _under(key, _FILES):
        return "held"
    if _under(key, _KEYS) or key.partition(".")[0] in _WHOLE:
        return "taken"
    return "unneeded" if _under(key, _UNNEEDED) else "held"


def _under(key: str, places: Iterable[str]) -> bool:
    return any(key == place or key.startswith(f"{place}.") for place in places)


def _leaves(key: str, value: Any, *, through_lists: bool = False) -> Iterator[str]:
    """The dotted keys of a value: those of a mapping, and of mappings in it; of those in lists too, if asked for."""
    if isinstance(value, dict) and value:
        inner = [(f"{key}.{name}", item) for name, item in value.items()]
    elif isinstance(value, list) and value and through_lists:
        inner = [(key, item) for item in value]
    else:
        yield key
        return
    for place, item in inner:
        yield from _leaves(place, item, through_lists=through_lists)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (*_texts(name), *_texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


class Portable(NamedTuple):
    """The overrides that go into a cassette, and the keys of those that do not although a replay would miss them."""

    kept: tuple[str, ...]
    left_out: tuple[str, ...]


def portable(overrides: Iterable[str], holds: Callable[[str], bool], replaced: Callable[[str], str]) -> Portable:
    """Overrides without a secret and without the address of a server, each still saying what its requests say.

    `holds` says whether a text has a secret in it, `replaced` gives the text without. A value with one is quoted anew;
    an override that cannot be, and one that holds an address, is left out.
    """
    kept: list[str] = []
    left_out: dict[str, None] = {}
    for text in overrides:
        safe = _without_secrets(text, holds, replaced)
        if safe is not None:
            kept.append(safe)
        elif _verdict(text, None) != "unneeded":
            left_out[replaced(key_of(text))] = None
    return Portable(tuple(kept), tuple(left_out))


def _without_secrets(text: str, holds: Callable[[str], bool], replaced: Callable[[str], str]) -> str | None:
    """The override, its secrets replaced; None when that cannot be said, or it holds an address."""
    try:
        override = OverridesParser.create().parse_override(text)
        value = None if override.is_delete() or override.is_sweep_override() else override.value()
    except HydraException:
        return None if holds(text) else text
    if any(key.rpartition(".")[2] == "base_url" for key in _leaves(override.key_or_group, value, through_lists=True)):
        return None
    if not holds(text) and not any(holds(part) for part in _texts(value)):
        return text
    head, equals, _ = text.partition("=")
    if not equals or value is None or holds(head) or any("${" in part for part in _texts(value)):
        return None
    try:
        return f"{head}={literal(value, replaced)}"
    except ValueError:
        return None
