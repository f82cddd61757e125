"""Turns configuration problems into messages to act on: the place, the given value, the allowed
ones, the likely intention."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import yaml
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from aeon.config.compose.literal import key_of
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, show_address
from aeon.files.explain import Mistake, explain, models_in

_LONGEST_VALUE = 80
_AMBIGUOUS = re.compile(r"Ambiguous value for argument '(.+)'")
_OVERRIDES = (
    "An override is key=value (ttl.base=20) or group=option (ttl=small); "
    "one with commas is quoted: 'k=\"a,b\"'."
)
_ADVICE_OF_HYDRA = ("To append to your", "Key '", "Search path")

# A typed address may hold a password or a key.
_ADDRESS = re.compile(r"https?://[^\s'\"]+", re.IGNORECASE)

HYDRA_ERRORS = (
    HydraException,
    OmegaConfBaseException,
    ValueError,
    yaml.YAMLError,
    RecursionError,
)
NOT_A_KEY = re.compile(
    r"Could not override '([^']+)'"
)  # Hydra's message for an override of an unknown key


@contextmanager
def hydra_errors() -> Iterator[None]:
    """Convert Hydra's errors to ConfigError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise composition_error(error) from error


def settings_error(error: PydanticError, root: type[BaseModel], values: JsonMapping) -> ConfigError:
    """Return one ConfigError that lists everything pydantic found, in the order of the
    configuration."""
    lines = [_describe(mistake, root) for mistake in explain(error, values, root)]
    title = (
        "The configuration has a problem"
        if len(lines) == 1
        else f"The configuration has {len(lines)} problems"
    )
    return ConfigError(
        _shorten_addresses("\n".join([f"{title}:", *(f"  {line}" for line in lines)])),
        hint="`aeon --help` explains the keys, `aeon --cfg job` shows the whole configuration.",
    )


_EXTRAS = {
    "hydra/launcher=joblib": "joblib",
    "hydra/launcher=submitit_local": "submitit",
    "hydra/launcher=submitit_slurm": "submitit",
    "hydra/launcher=ray": "ray-launcher",
    "hydra/launcher=ray_aws": "ray-launcher",
    "hydra/sweeper=optuna": "optuna",
}
"""The extras of launchers and sweepers (docs/sweeps.md)."""

_SUGGESTION = re.compile(r"did you mean `[^`]*`\? ")


def _explain_missing_option(file: str, options: Sequence[str]) -> ConfigError:
    """Return the error for a missing file of a group; `options` are the existing ones."""
    group, _, option = file.rpartition("/")
    if extra := _EXTRAS.get(f"{group}={option}"):
        problem = f"{group}={option}: needs the extra {extra}, which is not installed"
        return ConfigError(problem, hint=f"pip install 'aeon-engine[{extra}]'")
    near = get_close_matches(option, options, n=1, cutoff=0.5)
    meant = f" - did you mean {group}={near[0]}?" if near else ""
    listed = ", ".join(options)
    return ConfigError(f"{group}={option}: there is no such option{meant} (there are: {listed})")


def composition_error(error: Exception, overrides: Sequence[str] = ()) -> ConfigError:
    """Return the ConfigError for an error with which Hydra ends a composition of `overrides`."""
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return ConfigError(f"a configuration file cannot be read: {error}")
    if isinstance(error, RecursionError):
        return ConfigError("a value of the configuration is nested too deeply to be composed")
    if isinstance(error, MissingConfigException) and error.options:
        return _explain_missing_option(str(error.missing_cfg_file), error.options)
    return ConfigError(_shorten_addresses(_describe_error(error, overrides)), hint=_OVERRIDES)


def _describe_error(error: Exception, overrides: Sequence[str]) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    if isinstance(error, OverrideParseException):
        # The lexer's line has only a class name, and the override again.
        why = "" if lines[0].startswith("Lexer") else f" ({lines[0]})"
        return f"{error.override}: this override cannot be read{why}"
    if type(error) is ValueError:  # Hydra does not name the group
        groups = (text for text in overrides if "." not in key_of(text))
        return f"{', '.join(groups)}: {error}"
    text = "\n".join(line for line in lines if line and not line.startswith(_ADVICE_OF_HYDRA))
    ambiguous = _AMBIGUOUS.match(text)
    return f"{ambiguous[1]}: several values need --multirun" if ambiguous else text


def _shorten_addresses(text: str) -> str:
    return _ADDRESS.sub(lambda found: show_address(found[0]), text)


def list_known_paths(root: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every dotted key of the settings, groups included; `*` stands for names chosen by the
    user."""
    for name, field in root.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield path
        for model, named in models_in(field.annotation):
            yield from list_known_paths(model, f"{path}.*." if named else f"{path}.")


def _suggest_key(unknown: str, problem: str, root: type[BaseModel]) -> str:
    """Add to `problem` the nearest keys by their last part; exact matches replace its own
    suggestion."""
    known = [
        key for key in dict.fromkeys(list_known_paths(root)) if "*" not in key and key != unknown
    ]
    names = [_last_part(key) for key in known]
    if unknown in names:
        meant = unknown
        problem = _SUGGESTION.sub("", problem)
    elif _SUGGESTION.search(problem):
        return problem
    else:
        meant = "".join(get_close_matches(unknown, names, n=1, cutoff=0.7))
    found = [key for key in known if _last_part(key) == meant]
    nearest = _select_outermost(found)
    return f"{problem}; did you mean {' or '.join(nearest)}?" if nearest else problem


def _last_part(key: str) -> str:
    return key.rpartition(".")[2]


def _select_outermost(keys: Sequence[str]) -> list[str]:
    depth = min((key.count(".") for key in keys), default=0)
    return [key for key in keys if key.count(".") == depth]


def _describe(mistake: Mistake, root: type[BaseModel]) -> str:
    path = ".".join(map(str, mistake.place)) or "configuration"
    if mistake.kind == "extra_forbidden":
        return f"{path}: {_suggest_key(path, mistake.text, root)}"
    if mistake.kind in ("union_tag_invalid", "union_tag_not_found"):
        given = mistake.given.get("kind") if isinstance(mistake.given, Mapping) else mistake.given
        _, _, expected = mistake.text.partition("expected tags: ")
        return f"{path}.kind={_format(given)}: allowed are {expected}"
    if isinstance(mistake.given, Mapping) and mistake.kind in ("value_error", "missing"):
        return f"{path}: {mistake.text}"
    return f"{path}={_format(mistake.given)}: {mistake.text}"


def _format(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str) and "://" in value:
        text = show_address(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
