"""Going on with a multirun: its own configuration again, which of its jobs are done, and the
answers of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from aeon.cli.job.multirun import compare_jobs, has_ended
from aeon.config.compose.composed import read_composition_of
from aeon.config.compose.literal import Composition, key_of, quote
from aeon.config.own_runs import is_own, make_seal, read_trust, require_own
from aeon.config.recording import directory_of
from aeon.config.settings import hash_of_json
from aeon.domain.errors import ConfigError
from aeon.files.fast_yaml import read_yaml
from aeon.report.compare.rows import BEFORE
from aeon.report.words import one_line

_ALLOWED = ("sweep.", "progress", "output", "hydra.", "store.pace", "trust")
_OF_HYDRA = r"mode|sweep\.dir|job\.config\.override_dirname\.exclude_keys"
_NOT_AGAIN = re.compile(rf"(hydra\.({_OF_HYDRA})|sweep\.resume)=|hydra[/.]launcher")
_NO_JOBS = "Nothing had begun there, or its sweeper has a way of its own to go on, as Optuna with a storage."
SEAL = "multirun.seal"
"""The file that holds the seal of what the multirun is composed of."""


def compose_again(today: Composition) -> Composition:
    """What the multirun that `sweep.resume=DIR` names was composed from, with today's settings of
    how it is carried out. Raises ConfigError for a DIR that is no multirun's, and for overrides
    that would change its jobs."""
    named = [text for text in today.overrides if key_of(text) == "sweep.resume"]
    rest = [text for text in today.overrides if key_of(text) != "sweep.resume"]
    directory = directory_of(named[-1]) or Path.cwd()
    _hold_to_allowed(rest)
    recorded = _read(directory)
    before = _list_overrides(recorded)
    of = read_composition_of(recorded.hydra)
    runtime: Any = OmegaConf.to_container(recorded.hydra.runtime, resolve=False)
    _require_own(directory, before, of, str(runtime["cwd"]), today)
    if recorded.hydra.runtime.cwd != str(Path.cwd()):
        problem = f"sweep.resume={directory}: it was started in another working directory"
        raise ConfigError(problem, hint=f"cd {recorded.hydra.runtime.cwd}")
    given = {key_of(text) for text in rest}
    kept = [text for text in before if key_of(text) not in given and not _is_of_start(text)]
    place = f"sweep.resume={quote(str(directory))}"
    return of.with_overrides((*kept, *rest, place, "hydra.mode=MULTIRUN"))


def _hold_to_allowed(overrides: Iterable[str]) -> None:
    for text in overrides:
        if not key_of(text).startswith(_ALLOWED):
            hint = "Only sweep.*, progress and output may be given anew; for other jobs, start a multirun of their own."
            raise ConfigError(f"{text}: a multirun goes on as it was configured", hint=hint)


def _list_overrides(recorded: DictConfig) -> list[str]:
    """The overrides that a multirun was given, as they were typed."""
    overrides: Any = OmegaConf.to_container(recorded.hydra.overrides, resolve=False)
    return [*overrides["hydra"], *overrides["task"]]


def _is_of_start(override: str) -> bool:
    """Whether an override belongs to one start of a multirun alone."""
    return _NOT_AGAIN.match(override.lstrip("+~")) is not None


def seal_multirun(directory: Path, of: Composition) -> None:
    """Mark a multirun as the person's own, as it is composed; without a mark, going on with it asks
    whose it is."""
    seal = make_seal(_document(of.overrides, of, str(Path.cwd())))
    with suppress(OSError):
        (directory / SEAL).write_text(seal or "", encoding="ascii")


def _require_own(
    directory: Path, given: Sequence[str], of: Composition, cwd: str, today: Composition
) -> None:
    document = _document(given, of, cwd)
    seal = ""
    with suppress(OSError, ValueError):
        seal = (directory / SEAL).read_text(encoding="ascii")
    trust, env = read_trust(today.overrides)
    require_own(
        f"sweep.resume={directory}",
        hash_of_json(document),
        own=is_own(document, seal),
        trust=trust,
        env=env,
        shown="\n".join(f"  {one_line(text)}" for text in given),
    )


def _document(overrides: Iterable[str], of: Composition, working_directory: str) -> dict[str, Any]:
    """What a multirun is composed of."""
    return {
        "format": "aeon.multirun/1",
        "overrides": sorted(overrides),
        "config_dir": str(of.config_dir) if of.config_dir else None,
        "config_name": of.config_name,
        "working_directory": working_directory,
    }


def _read(directory: Path) -> DictConfig:
    hint = "It is the directory of a multirun, with its multirun.yaml; a run is resumed with resume=DIR."
    try:
        recorded = OmegaConf.create(read_yaml(directory / "multirun.yaml") or {})
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"sweep.resume={directory}: this is no multirun's directory ({why})", hint=hint
        ) from None
    if "hydra" not in recorded:
        raise ConfigError(
            f"sweep.resume={directory}: it does not say what its jobs were", hint=_NO_JOBS
        )
    return recorded


def find_done(directory: Path) -> tuple[dict[int, Path], dict[int, Path]]:
    """The directories of the jobs that are done, by their numbers, and those that hold the answers
    of the others, moved out of the way. Raises ConfigError when a job still runs."""
    done, before = dict[int, Path](), dict[int, Path]()
    for job in compare_jobs(directory).runs:
        if job.directory is None or job.number is None:
            continue
        if has_ended(job):
            done[job.number] = job.directory
            continue
        if job.ended == "running":
            problem = f"sweep.resume={directory}: job {job.number} still runs"
            raise ConfigError(problem, hint="Wait for its end, or stop it.")
        folder = directory / BEFORE
        folder.mkdir(exist_ok=True)
        moved = folder / f"{job.directory.name}.{sum(1 for _ in folder.iterdir())}"
        job.directory.rename(moved)
        if (moved / "run.json").is_file():
            before[job.number] = moved
    return done, before
