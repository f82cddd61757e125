"""Configuration problems in words a person can act on: where, what was given, what is allowed, what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from traceback import walk_tb
from typing import Any, get_args, get_origin

import yaml
from hydra.core.override_parser.types import Override
from hydra.errors import MissingConfigException, OverrideParseException
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError
from pydantic_core import ErrorDetails

from aeon.domain.errors import ConfigError
from aeon.files.located_yaml import LocatedYaml

_SHOWN = 80
_AMBIGUOUS = re.compile(r"Ambiguous value for argument '(.+)'")

NOT_A_KEY = re.compile(r"Could not override '([^']+)'")
"""What Hydra says of an override whose key the composed configuration does not have."""


def as_config_error(error: PydanticError, root: type[BaseModel], values: Mapping[str, Any]) -> ConfigError:
    """One ConfigError that lists everything pydantic found, in the order of the configuration."""
    return listed([_line(problem, root, values) for problem in error.errors(include_url=False)])


def listed(lines: Sequence[str]) -> ConfigError:
    """One ConfigError of several problems, a line each."""
    title = "The configuration has a problem" if len(lines) == 1 else f"The configuration has {len(lines)} problems"
    return ConfigError(
        "\n".join([f"{title}:", *(f"  {line}" for line in lines)]),
        hint="`python -m aeon --help` explains the keys, `--cfg job` shows the whole configuration.",
    )


def no_numbers(given: Any, made: Any, path: str = "") -> Iterator[str]:
    """A line for each true or false that was taken for a number; `made` is what was made of what was `given`."""
    if isinstance(given, bool) and isinstance(made, int | float) and not isinstance(made, bool):
        yield f"{path}={_shown(given)}: a number is wanted here, not true or false"
    elif isinstance(given, Mapping) and isinstance(made, Mapping):
        entries = {str(name): value for name, value in made.items()}
        for name, value in given.items():
            yield from no_numbers(value, entries.get(str(name)), f"{path}.{name}" if path else str(name))
    elif isinstance(given, list) and isinstance(made, list | tuple):
        for index, (value, other) in enumerate(zip(given, made, strict=False)):
            yield from no_numbers(value, other, f"{path}.{index}")


def composition_error(error: Exception) -> ConfigError:
    """What Hydra says when it cannot compose, without its own advice about structs and appending."""
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return _unreadable(error)
    if isinstance(error, OverrideParseException):
        return ConfigError(
            f"{error.override}: this override cannot be read ({_first_line(error)})",
            hint="An override is key=value or group=option; one with commas or brackets is written 'key=\"value\"'.",
        )
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(error)
    ambiguous = _AMBIGUOUS.match(str(error))
    if ambiguous:
        return ConfigError(
            f"{ambiguous[1]}: several values need --multirun",
            hint="One value that holds a comma is written 'key=\"a,b\"'; task= and inputs.NAME= need nothing.",
        )
    unknown = NOT_A_KEY.match(str(error))
    if unknown:
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
        for model, named in _models(field.annotation):
            yield from known_paths(model, f"{path}.*." if named else f"{path}.")


def _unreadable(error: yaml.YAMLError | UnicodeDecodeError) -> ConfigError:
    """Which file Hydra could not read, and which line of it: the same as for any YAML file of the person's."""
    path = _file_read(error)
    if path is None:
        return ConfigError(f"a configuration file cannot be read: {error}")
    try:
        LocatedYaml(path)
    except ConfigError as problem:
        return problem
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark else str(path)
    return ConfigError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}")


def _file_read(error: yaml.YAMLError | UnicodeDecodeError) -> Path | None:
    """The file whose reading failed; a decoding error does not say, but Hydra's function that opened it knows."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    named = [frame.f_locals.get("full_path") for frame in frames if frame.f_code.co_name == "load_config"]
    return next((Path(name) for name in reversed(named) if isinstance(name, str)), None)


def _missing_option(error: MissingConfigException) -> ConfigError:
    wanted = str(error.missing_cfg_file)
    group, _, option = wanted.rpartition("/")
    options = list(error.options or ())
    if not group or not options:
        return ConfigError(_without_hydra_advice(str(error)))
    near = get_close_matches(option, options, n=1, cutoff=0.5)
    meant = f" - did you mean {group}={near[0]}?" if near else ""
    return ConfigError(f"{group}={option}: there is no such option{meant} (there are: {', '.join(options)})")


def _without_hydra_advice(message: str) -> str:
    lines = [line.strip() for line in message.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("To append to your", "Key '", "Search path"))]
    return "\n".join(kept) or message


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _line(problem: ErrorDetails, root: type[BaseModel], values: Mapping[str, Any]) -> str:
    location = _without_union_tags(problem["loc"], values)
    path = ".".join(map(str, location)) or "configuration"
    if problem["type"] == "extra_forbidden":
        return f"{path}: there is no such key{_suggestion(path, root)}"
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        expected = problem.get("ctx", {}).get("expected_tags", "")
        return f"{path}.kind={_shown(_value_at(location, values).get('kind'))}: allowed are {expected}"
    if problem["type"] in ("tuple_type", "list_type"):
        example = f", as in [{_shown(problem['input'])}]" if isinstance(problem["input"], str) else ""
        return f"{path}={_shown(problem['input'])}: a list is wanted here{example}"
    message = problem["msg"].removeprefix("Value error, ")
    if isinstance(problem["input"], Mapping) and problem["type"] == "value_error":
        return f"{path}: {message}"
    return f"{path}={_shown(problem['input'])}: {message[:1].lower()}{message[1:]}"


def _suggestion(path: str, root: type[BaseModel]) -> str:
    place = path.rpartition(".")[0]
    path = re.sub(r"\.\d+(?=\.)", "", path)  # every element of a list has the same keys
    group, _, name = path.rpartition(".")
    owners = _owners(group, name, root)
    if owners:
        return f" here - it is one of {' and '.join(f'{group}={owner}' for owner in owners)}"
    paths = sorted({_named_as(known, path) for known in known_paths(root)})
    siblings = {p.rpartition(".")[2]: p for p in paths if p.rpartition(".")[0] == group}
    near = get_close_matches(name, siblings, n=1, cutoff=0.6)
    if near:
        return f" - did you mean {place}.{near[0]}?" if place else f" - did you mean {near[0]}?"
    elsewhere: dict[str, str] = {}
    for known in reversed([p for p in paths if "*" not in p]):
        elsewhere[known.rpartition(".")[2]] = known
    near = get_close_matches(name, elsewhere, n=1, cutoff=0.7)
    if near:
        return f" - did you mean {elsewhere[near[0]]}?"
    return f" (there are: {', '.join(sorted(siblings))})" if siblings else ""


def _owners(group: str, name: str, root: type[BaseModel]) -> list[str]:
    """The other options of a group that have the key."""
    field = root.model_fields.get(group)
    fields = [model.model_fields for model, _ in _models(field.annotation)] if field else []
    return sorted(str(found["kind"].default) for found in fields if name in found and "kind" in found)


def _named_as(known: str, path: str) -> str:
    """A known key with the names that a person chose in the place of its `*`."""
    parts, given = known.split("."), path.split(".")
    return ".".join(given[i] if part == "*" and i < len(given) else part for i, part in enumerate(parts))


def _without_union_tags(location: tuple[int | str, ...], values: Mapping[str, Any]) -> tuple[int | str, ...]:
    """The location as a person writes it: pydantic adds the tag of a discriminated union after its field."""
    kept: list[int | str] = []
    value: Any = values
    for part in location:
        if isinstance(value, Mapping) and part not in value and value.get("kind") == part:
            continue
        kept.append(part)
        value = _child(value, part)
    return tuple(kept)


def _value_at(location: tuple[int | str, ...], values: Mapping[str, Any]) -> Mapping[str, Any]:
    value: Any = values
    for part in location:
        value = _child(value, part)
    return value if isinstance(value, Mapping) else {}


def _child(value: Any, part: int | str) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _models(annotation: Any, *, named: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models that a field may hold, and whether it holds them by name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, named
        return
    for argument in get_args(annotation):
        yield from _models(argument, named=named or get_origin(annotation) is dict)
