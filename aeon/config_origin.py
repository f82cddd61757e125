"""Composing a run again: the overrides it was given, then today's.

`composition` is what is really composed of what a person gives; `recomposed` is the one rule by which an `Origin`, from
a run's directory or from the head of a cassette, comes before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from aeon import origin as origins
from aeon.config_compose import is_sweep, single_value
from aeon.config_literal import quoted
from aeon.errors import ConfigError
from aeon.origin import Composition, Origin

_GIVEN_APART = frozenset({"task", "task_file", "inputs", "input_files", "resume", "sweep"})
_SEARCH_PATH = "hydra.searchpath"


def composition(today: Composition) -> Composition:
    """What is composed: today's overrides, after those of the run that `resume=DIR` among them names, if one does.

    Raises ConfigError when DIR is no run's directory, or several are named.
    """
    named = [text for text in today.overrides if key_of(text) == "resume"]
    directory = _directory(named[-1]) if named else None
    rest = tuple(text for text in today.overrides if key_of(text) != "resume")
    if directory is None:
        return today.model_copy(update={"overrides": rest})
    given = today.model_copy(update={"overrides": (*rest, f"resume={quoted(str(directory))}")})
    return recomposed(origins.read(directory), given, f"resume={directory}")


def recomposed(origin: Origin, today: Composition, named: str) -> Composition:
    """The recorded composition with today's after it, so that today's wins; `named` says whose origin it is.

    Task and inputs are not in it: `aeon.config.read_task` and `read_inputs` take them from the origin. Relative paths
    are those of the folder that the run was started in. Raises ConfigError when the settings were made in a program, or
    the folder of configuration is gone.
    """
    if origin.overrides is None:
        raise ConfigError(
            f"{named}: its settings were made in a program (Aeon(settings)), not composed from overrides",
            hint="Make the same settings again, with `resume` set in them.",
        )
    folder = today.config_dir or (Path(origin.config_dir) if origin.config_dir else None)
    if folder is not None and today.config_dir is None and not folder.is_dir():
        raise ConfigError(
            f"{named}: its configuration came from {folder}, which is not there any more",
            hint="Put it back, or give one of the same content with --config-dir DIR (in Python config_dir=DIR).",
        )
    recorded = origin.overrides if Path(origin.working_directory) == Path.cwd() else _anchored(origin)
    replaced = {key_of(text) for text in today.overrides if text.startswith(("~", "+")) or "." not in key_of(text)}
    return Composition(
        overrides=(*(text for text in recorded if key_of(text) not in replaced), *today.overrides),
        config_dir=folder,
        config_name=origin.config_name if today.config_name == Composition().config_name else today.config_name,
    )


def recordable(overrides: Iterable[str]) -> tuple[str, ...]:
    """The overrides that a run is composed from again.

    Task, inputs and the parent are recorded apart; Hydra's own say where and how jobs run, as `sweep` does, but for its
    search path.
    """
    return tuple(text for text in overrides if not _is_apart(key_of(text)))


def key_of(override: str) -> str:
    """The key or group of an override, without what adds or deletes it."""
    return override.lstrip("+~").partition("=")[0]


def _is_apart(key: str) -> bool:
    of_hydra = key.startswith(("hydra.", "hydra/")) and key != _SEARCH_PATH
    return of_hydra or key.partition(".")[0] in _GIVEN_APART


def _anchored(origin: Origin) -> Sequence[str]:
    """The recorded overrides with their relative paths made absolute."""
    return [
        f"{text.partition('=')[0]}={quoted(origin.paths[key_of(text)])}" if key_of(text) in origin.paths else text
        for text in origin.overrides or ()
    ]


def _directory(override: str) -> Path | None:
    """The directory that `resume=...` names, absolute; a path may hold what Hydra would read as something else."""
    text = override.partition("=")[2]
    if not Path(text).expanduser().is_dir():
        if is_sweep(override):
            raise ConfigError(
                f"{override}: a multirun resumes one run, not several",
                hint="Sweep another key: python -m aeon -m resume=DIR convergence.completeness=0.8,0.9",
            )
        text = single_value(override, text)
    return Path(text).expanduser().absolute() if text and text != "null" else None
