"""Which overrides of a cassette's head are taken: a cassette may be anybody's, and replaying it must only replay it.

Taken is what decides what is asked and how a run goes on. What starts, imports, reads or writes something is held back
until the person who replays says it; what a replay has no use for (addresses, keys, where things go) is left away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from aeon.config_compose import packaged_config_dir

_Verdict = Literal["taken", "held", "unneeded"]

_WHOLE = frozenset(
    {"answer", "convergence", "env", "execution", "experiment", "interaction", "limits", "mode", "reasoning"}
    | {"refinement", "roles", "ttl"}
)
"""Groups of which every choice and every key is taken, but for files."""

_GROUPS = _WHOLE | {"prompts", "provider", "schemas", "tools"}
"""Groups whose choices are taken."""

_FILES = ("answer.schema", "answer.schema_file", "convergence.criteria_file", "provider.scenario")
_KEYS = (
    "prompts.set",
    *(f"provider.{name}" for name in ("kind", "name", "model", "temperature", "max_tokens", "effort", "seed")),
    *(f"provider.{name}" for name in ("structured_output", "max_tokens_parameter", "extra_body", "prices")),
    *(f"provider.{name}" for name in ("repo_id", "filename", "revision", "schema_in_prompt", "n_ctx")),
    "store.sample",
    *(f"tools.{name}" for name in ("approval", "timeout_seconds", "max_output_characters")),
    *(f"tools.builtin.{name}" for name in ("only", "allowed_hosts", "max_file_bytes", "max_response_bytes")),
)
_UNNEEDED = (
    *(f"provider.{name}" for name in ("base_url", "base_url_env", "api_key_env", "require_key", "extra_headers_env")),
    *(f"provider.{name}" for name in ("timeout_seconds", "max_concurrency", "requests_per_minute", "retry", "breaker")),
    *(f"provider.{name}" for name in ("tokens_per_minute", "fallbacks", "latency_seconds", "model_path")),
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
            held[text.lstrip("+~").partition("=")[0].partition("@")[0] or text] = None
    return tuple(taken), tuple(held)


def _verdict(text: str, folder: Path | None) -> _Verdict:
    if _under(text.lstrip("+~").partition("=")[0].replace("/", "."), ("hydra",)):
        return "held" if text.lstrip("+~").startswith("hydra.searchpath=") else "unneeded"
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


def _exists(group: str, name: str, folder: Path | None) -> bool:
    places = [packaged_config_dir(), *([folder] if folder else [])]
    return bool(_NAME.fullmatch(name)) and any((place / group / f"{name}.yaml").is_file() for place in places)


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


def _leaves(key: str, value: Any) -> Iterator[str]:
    """The dotted keys of a value: those of a mapping, and of mappings in it."""
    if not isinstance(value, dict) or not value:
        yield key
        return
    for name, item in value.items():
        yield from _leaves(f"{key}.{name}", item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (*_texts(name), *_texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)
