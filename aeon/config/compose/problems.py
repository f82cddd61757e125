"""Configuration problems as messages a person can act on: where, what was given, what is allowed, what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args, get_origin

import yaml
from hydra.core.override_parser.types import Override
from hydra.errors import MissingConfigException, OverrideParseException
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from aeon.domain.errors import ConfigError
from aeon.files.explain import Mistake, explain

_LONGEST_VALUE = 80
_AMBIGUOUS = re.compile(r"Ambiguous value for argument '(.+)'")

NOT_A_KEY = re.compile(r"Could not override '([^']+)'")
"""What Hydra says of an override whose key the composed configuration does not have."""


def settings_error(error: PydanticError, root: type[BaseModel], values: Mapping[str, Any]) -> ConfigError:
    """One ConfigError that lists everything pydantic found, in the order of the configuration."""
    return problems_error([_describe(mistake, root) for mistake in explain(error, values, root)])


def problems_error(lines: Sequence[str]) -> ConfigError:
    """One ConfigError of several problems, a line each."""
    title = "The configuration has a problem" if len(lines) == 1 else f"The configuration has {len(lines)} problems"
    return ConfigError(
        "\n".join([f"{title}:", *(f"  {line}" for line in lines)]),
        hint="`python -m aeon --help` explains the keys, `--cfg job` shows the whole configuration.",
    )


def booleans_as_numbers(given: Any, validated: Any, path: str = "") -> Iterator[str]:
    """A line for each true or false in `given` that pydantic has made a number of in `validated`."""
    if isinstance(given, bool) and isinstance(validated, int | float) and not isinstance(validated, bool):
        yield f"{path}={_format(given)}: must be a number, not true or false"
    elif isinstance(given, Mapping) and isinstance(validated, Mapping):
        entries = {str(name): value for name, value in validated.items()}
        for name, value in given.items():
            yield from booleans_as_numbers(value, entries.get(str(name)), f"{path}.{name}" if path else str(name))
    elif isinstance(given, list) and isinstance(validated, list | tuple):
        for index, (value, other) in enumerate(zip(given, validated, strict=False)):
            yield from booleans_as_numbers(value, other, f"{path}.{index}")


def composition_error(error: Exception) -> ConfigError:
    """The ConfigError for an error with which Hydra ends a composition."""
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return ConfigError(f"a configuration file cannot be read: {error}")
    if isinstance(error, OverrideParseException):
        return ConfigError(
            f"{error.override}: this override cannot be read ({str(error).partition(chr(10))[0]})",
            hint="An override is key=value or group=option; one with commas or brackets is written 'key=\"value\"'.",
        )
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(error)
    if ambiguous := _AMBIGUOUS.match(str(error)):
        return ConfigError(
            f"{ambiguous[1]}: several values need --multirun",
            hint="One value that holds a comma is written 'key=\"a,b\"'; task= and inputs.NAME= need nothing.",
        )
    if unknown := NOT_A_KEY.match(str(error)):
        return ConfigError(f"{unknown[1]}: there is no such key or group")
    return ConfigError(_without_hydra_advice(str(error)))


def not_an_option(error: ValueError, overrides: Iterable[Override]) -> ConfigError:
    """A group for which something else than a name was given; Hydra does not say which one."""
    top = [override for override in overrides if "." not in override.key_or_group]
    wrong = [str(override.input_line) for override in top if not isinstance(override.value(), str | dict)]
    return ConfigError(
        f"{', '.join(wrong)}: {error}",
        hint="A group is chosen by an option's name (ttl=small); a key in it is set by its path (ttl.base=20).",
    )


def known_paths(root: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted key of the settings, groups included; `*` stands for the names that a person chooses."""
    for name, field in root.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield path
        for model, named in models_in(field.annotation):
            yield from known_paths(model, f"{path}.*." if named else f"{path}.")


def _missing_option(error: MissingConfigException) -> ConfigError:
    group, _, option = str(error.missing_cfg_file).rpartition("/")
    options = list(error.options or ())
    if not group or not options:
        return ConfigError(_without_hydra_advice(str(error)))
    near = get_close_matches(option, options, n=1, cutoff=0.5)
    meant = f" - did you mean {group}={near[0]}?" if near else ""
    return ConfigError(f"{group}={option}: there is no such option{meant} (there are: {', '.join(options)})")


def _without_hydra_advice(message: str) -> str:
    lines = [line.strip() for line in message.splitlines()]
    advice = ("To append to your", "Key '", "Search path")
    return "\n".join(line for line in lines if line and not line.startswith(advice)) or message


def _describe(mistake: Mistake, root: type[BaseModel]) -> str:
    path = ".".join(map(str, mistake.place)) or "configuration"
    if mistake.kind == "extra_forbidden":
        return f"{path}: there is no such key{_suggestion(path, root)}"
    if mistake.kind in ("union_tag_invalid", "union_tag_not_found"):
        given = mistake.given.get("kind") if isinstance(mistake.given, Mapping) else mistake.given
        _, _, expected = mistake.text.partition("expected tags: ")
        return f"{path}.kind={_format(given)}: allowed are {expected}"
    if mistake.kind in ("tuple_type", "list_type"):
        example = f", as in [{_format(mistake.given)}]" if isinstance(mistake.given, str) else ""
        return f"{path}={_format(mistake.given)}: must be a list{example}"
    if isinstance(mistake.given, Mapping) and mistake.kind in ("value_error", "missing"):
        return f"{path}: {mistake.text}"
    return f"{path}={_format(mistake.given)}: {mistake.text}"


def _suggestion(path: str, root: type[BaseModel]) -> str:
    """What was meant by a key that does not exist."""
    place = path.rpartition(".")[0]
    path = re.sub(r"\.\d+(?=\.)", "", path)  # every element of a list has the same keys
    group, _, name = path.rpartition(".")
    if owners := _owners(group, name, root):
        return f" here - it is one of {' and '.join(f'{group}={owner}' for owner in owners)}"
    paths = sorted({_with_given_names(known, path) for known in known_paths(root)})
    siblings = {p.rpartition(".")[2]: p for p in paths if p.rpartition(".")[0] == group}
    if near := get_close_matches(name, siblings, n=1, cutoff=0.6):
        return f" - did you mean {place}.{near[0]}?" if place else f" - did you mean {near[0]}?"
    elsewhere = {known.rpartition(".")[2]: known for known in reversed([p for p in paths if "*" not in p])}
    if near := get_close_matches(name, elsewhere, n=1, cutoff=0.7):
        return f" - did you mean {elsewhere[near[0]]}?"
    return f" (there are: {', '.join(sorted(siblings))})" if siblings else ""


def _owners(group: str, name: str, root: type[BaseModel]) -> list[str]:
    """The other options of a group that have the key."""
    field = root.model_fields.get(group)
    fields = [model.model_fields for model, _ in models_in(field.annotation)] if field else []
    return sorted(str(found["kind"].default) for found in fields if name in found and "kind" in found)


def _with_given_names(known: str, path: str) -> str:
    """A known key with the names that a person chose instead of its `*`."""
    parts, given = known.split("."), path.split(".")
    return ".".join(given[i] if part == "*" and i < len(given) else part for i, part in enumerate(parts))


def _format(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def models_in(annotation: Any, *, named: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models that a field may hold, and whether it holds them by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, named
        return
    for argument in get_args(annotation):
        yield from models_in(argument, named=named or get_origin(annotation) is dict)
