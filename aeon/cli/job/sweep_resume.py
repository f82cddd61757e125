"""Resuming a multirun: its jobs with their recorded settings, the jobs that are done, and the
answers of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pydantic

from aeon.cli.job.multirun import compare_jobs, has_ended
from aeon.config import recording
from aeon.config.compose.literal import Composition, RecordedSettings, key_of, quote
from aeon.config.compose.recorded import record
from aeon.config.origin import write_sealed
from aeon.config.own_runs import is_own, read_trust, require_own
from aeon.config.recording import directory_of
from aeon.config.settings import Settings, hash_of_json
from aeon.config.trusted_folders import pin_project_of_run, require_trust_of_owner
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonObject, Value
from aeon.files.explain import first_mistake
from aeon.files.text import read_regular_file
from aeon.report.compare.rows import BEFORE
from aeon.report.words import one_line

_ALLOWED = ("sweep.", "progress", "output", "hydra.", "store.pace", "trust")
_OF_HYDRA = r"mode|sweep\.dir|job\.config\.override_dirname\.exclude_keys"
_NOT_AGAIN = re.compile(rf"(hydra\.({_OF_HYDRA})|sweep\.resume)=|hydra[/.]launcher")
_HINT = (
    "It is the directory of a multirun, with its multirun.json; a run is resumed with resume=DIR."
)
_MOST_BYTES = 256 * 2**20
FILE = "multirun.json"
"""The file that records a multirun."""


class RecordedJob(Value):
    """A job of a multirun: the overrides that only it has, the groups of its settings that differ
    from the first job's, and the keys that held a secret."""

    overrides: tuple[str, ...]
    settings: JsonObject
    missing: tuple[str, ...] = ()


class RecordedMultirun(Value):
    """The record of a multirun: the typed overrides, and its jobs, none where a sweeper draws them
    as it goes."""

    format: Literal["aeon.multirun/2"] = "aeon.multirun/2"
    overrides: tuple[str, ...]
    config_dir: str | None
    config_name: str
    working_directory: str
    jobs: tuple[RecordedJob, ...]
    seal: str | None = None


def compose_again(today: Composition) -> Composition:
    """Return the recorded composition of the multirun that `sweep.resume=DIR` names: the settings
    of its jobs, and today's settings of how to run them. Raises ConfigError for a DIR without a
    multirun, and for overrides that would change its jobs."""
    named = [text for text in today.overrides if key_of(text) == "sweep.resume"]
    rest = [text for text in today.overrides if key_of(text) != "sweep.resume"]
    directory = directory_of(named[-1]) or Path.cwd()
    _hold_to_allowed(rest)
    recorded = _read_own(directory, rest)
    # Relative paths among its overrides name files there.
    if recorded.working_directory != str(Path.cwd()):
        problem = f"sweep.resume={directory}: it was started in another working directory"
        raise ConfigError(problem, hint=f"cd {recorded.working_directory}")
    _require_trusted_folders(recorded)
    pin_project_of_run(Path.cwd(), rest, [*recorded.overrides, *rest])
    given = frozenset(map(key_of, rest))
    place = f"sweep.resume={quote(str(directory))}"
    of = Composition(
        overrides=(*_list_again(recorded, given), *rest, place, "hydra.mode=MULTIRUN"),
        config_dir=Path(recorded.config_dir) if recorded.config_dir else None,
        config_name=recorded.config_name,
        of_project=None,
    )
    jobs = tuple(_list_jobs(recorded, directory, given))
    return replace(recording.composition(of), jobs=jobs)


def _require_trusted_folders(recorded: RecordedMultirun) -> None:
    """Raise ConfigError when a folder that a project gave to the jobs is not trusted with its
    present content."""
    groups = [job.settings.get(group) for job in recorded.jobs for group in ("prompts", "schemas")]
    folders = dict.fromkeys([recorded.config_dir, *(part["dir"] for part in groups if part)])
    for folder in filter(None, folders):
        require_trust_of_owner(Path(recorded.working_directory, folder))


def _list_again(recorded: RecordedMultirun, given: frozenset[str]) -> Iterator[str]:
    """Yield the recorded overrides that are not given anew, except those that concern one start
    alone."""
    for text in recorded.overrides:
        if key_of(text) not in given and not _NOT_AGAIN.match(text.lstrip("+~")):
            yield text


def _list_jobs(
    recorded: RecordedMultirun, directory: Path, given: frozenset[str]
) -> Iterator[tuple[tuple[str, ...], RecordedSettings]]:
    for job in recorded.jobs:
        settings = RecordedSettings(
            named=f"sweep.resume={directory}",
            settings={**recorded.jobs[0].settings, **job.settings},
            missing=job.missing,
            today=given,
        )
        yield job.overrides, settings


def _hold_to_allowed(overrides: Iterable[str]) -> None:
    for text in overrides:
        if not key_of(text).startswith(_ALLOWED):
            hint = (
                "Only sweep.*, progress and output may be "
                "changed; for other jobs, start another multirun."
            )
            raise ConfigError(
                f"{text}: a multirun resumes with its recorded configuration", hint=hint
            )


def record_jobs(
    planned: Iterable[Sequence[str]], settings: Iterable[Settings]
) -> tuple[RecordedJob, ...]:
    """Return the jobs of a multirun, each with its own overrides and its settings."""
    jobs: list[RecordedJob] = []
    first: JsonObject = {}
    for overrides, chosen in zip(planned, settings, strict=True):
        values, missing = record(chosen)
        differing = {name: part for name, part in values.items() if first.get(name) != part}
        jobs.append(RecordedJob(overrides=tuple(overrides), settings=differing, missing=missing))
        first = first or values
    return tuple(jobs)


def write_multirun(directory: Path, of: Composition, jobs: tuple[RecordedJob, ...]) -> None:
    """Write the record of a multirun, sealed as the person's own; without a seal, resuming it asks
    whether to trust it."""
    multirun = RecordedMultirun(
        overrides=of.overrides,
        config_dir=str(of.config_dir) if of.config_dir else None,
        config_name=of.config_name,
        working_directory=str(Path.cwd()),
        jobs=jobs,
    )
    write_sealed(directory / FILE, multirun)


def _read_own(directory: Path, today: Sequence[str]) -> RecordedMultirun:
    """Read the record of a multirun, once it is sure that the person made it or trusts it. Raises
    ConfigError."""
    named = f"sweep.resume={directory}"
    try:
        content = read_regular_file(directory / FILE, _MOST_BYTES)
        multirun = RecordedMultirun.model_validate_json(content)
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"{named}: is not a multirun's directory ({why})", hint=_HINT) from None
    except pydantic.ValidationError as error:
        raise ConfigError(f"{named}: {FILE}: {first_mistake(error)}", hint=_HINT) from None
    document = multirun.model_dump(mode="json")
    trust, env = read_trust(today)
    require_own(
        named,
        hash_of_json(document),
        own=is_own(document, multirun.seal),
        trust=trust,
        env=env,
        shown="\n".join(f"  {line}" for line in dict.fromkeys(_list_effects(multirun))),
    )
    return multirun


def _list_effects(multirun: RecordedMultirun) -> Iterator[str]:
    """Yield the settings that the jobs of a multirun would apply."""
    yield from map(one_line, multirun.overrides)
    for job in multirun.jobs:
        yield from recording.list_changed({**multirun.jobs[0].settings, **job.settings})
    if multirun.config_dir:
        yield f"--config-dir {one_line(multirun.config_dir)}"


def find_done(directory: Path) -> tuple[dict[int, Path], dict[int, Path]]:
    """Return, by job number, the directories of the jobs that are done, and those with the answers
    of the others, which are moved aside. Raises ConfigError when a job still runs."""
    done = dict[int, Path]()
    before = dict[int, Path]()
    for job in compare_jobs(directory).runs:
        if job.directory is None or job.number is None:
            continue
        if has_ended(job):
            done[job.number] = job.directory
            continue
        if job.ended == "running":
            problem = f"sweep.resume={directory}: job {job.number} still runs"
            raise ConfigError(problem, hint="Wait until it ends, or stop it.")
        folder = directory / BEFORE
        folder.mkdir(exist_ok=True)
        # Numbered: a job may be resumed several times.
        moved = folder / f"{job.directory.name}.{sum(1 for _ in folder.iterdir())}"
        job.directory.rename(moved)
        if (moved / "run.json").is_file():
            before[job.number] = moved
    return done, before
