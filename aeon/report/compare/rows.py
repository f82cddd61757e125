"""Runs as rows of a comparison: differing parameters, end, scores and figures, from `result.json`
alone."""

from __future__ import annotations

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from io import StringIO
from pathlib import Path
from typing import Any

from aeon.config.settings import Settings
from aeon.domain.checks import CheckOutcome, count_passed
from aeon.domain.history import GOOD_ENDS
from aeon.domain.values import JsonMapping, JsonObject, flatten
from aeon.execution.settings import UNJUDGED_MODES
from aeon.files.fast_yaml import read_yaml
from aeon.files.text import load_json, read_linked_file
from aeon.observability.artefacts import RESULT
from aeon.report.record import read_events
from aeon.report.runs import end_without_result
from aeon.report.words import count_noun

FIGURES = {
    "completeness": "scores.completeness_score",
    "coherence": "scores.coherence_score",
    "consistency": "scores.consistency_score",
    "passes": "passes",
    "calls": "usage.total.requests",
    "saved": "parent.saved.model_calls",
    "tokens": "usage.total.total_tokens",
    "cost": "usage.total.cost",
    "seconds": "timings.total_seconds",
}
"""The figures of a run, and where `result.json` has them."""
SCORES = tuple(FIGURES)[:3]
BEFORE = ".before"
"""Where a multirun that goes on keeps what its jobs had left that are run again."""
STATUS = Path(".hydra") / "exit_status"
"""The file of a multirun's job that holds its exit status."""
_MARKS = {RESULT, "run.json", "events.jsonl", ".hydra"}
_FAILED = 1  # the status of a job that could not leave one
_SWEEP = "multirun.yaml"
_JOB = re.compile(r"(\d+)-[^/]*=[^/]*$")  # after its number, a job's values
_APART = {
    "task",
    "task_file",
    "inputs",
    "input_files",
    "resume",
    "output",
    "store",
    "observability",
    "progress",
    "env",
}
"""What is compared by its text or hash, and what changes no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run as a row. `ended` is its termination reason, or as in `Listed`, or `not started`.
    `converged` is None without a result, and in core mode, where nothing is judged. `cause`
    describes what the run lacked, `checks` how many checks of its answer passed, as `2 of 3`,
    `without` how many tools, servers and reviews were missing. `parameters` holds each setting by
    its dotted key. `error` explains why it failed or was cut off. An unknown figure is None. A job
    of a multirun has a `number`, and an exit `status` once it has begun."""

    name: str
    directory: Path | None
    ended: str
    number: int | None = None
    status: int | None = None
    has_result: bool = False
    converged: bool | None = None
    synthetic: bool = False
    replayed: bool = False
    figures: Mapping[str, float | None] = field(default_factory=lambda: dict.fromkeys(FIGURES))
    thresholds: Mapping[str, float] = field(default_factory=dict)
    parameters: JsonMapping = field(default_factory=dict)
    cause: str = ""
    checks: str = ""
    without: int = 0
    unusable_calls: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""

    @property
    def is_core(self) -> bool:
        """Whether it ran in core mode, which cannot converge."""
        return self.has_result and self.converged is None

    @property
    def is_good(self) -> bool:
        """Whether it ended well, without a fallback."""
        return self.ended in GOOD_ENDS and not self.without


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side, and the keys of the parameters in which they differ."""

    runs: tuple[ComparedRun, ...]
    parameters: tuple[str, ...]


def compare_runs(paths: Sequence[Path], planned: Iterable[ComparedRun] | None = None) -> Comparison:
    """Compare the runs in these directories: each is a run's, or contains runs, such as a
    multirun's. Missing directories are left out; an unreadable run is a row that says so. Of the
    `planned` jobs of a multirun, by default those of its `summary.csv`, those without a directory
    never started."""
    found = list(dict.fromkeys(run for path in paths for run in _runs_under(path.resolve())))
    top = Path(os.path.commonpath([path.parent for path in found])) if found else Path()
    runs = [_read(path, _JOB.sub(r"\1", path.relative_to(top).as_posix())) for path in found]
    if len(paths) == 1 and (paths[0] / _SWEEP).is_file():
        runs = _as_jobs(runs, _never_started(paths[0]) if planned is None else planned)
    return Comparison(tuple(runs), _find_differing(runs))


def _as_jobs(runs: Sequence[ComparedRun], planned: Iterable[ComparedRun]) -> list[ComparedRun]:
    """Return the jobs of a multirun with their overrides, and those that never started."""
    jobs = [_as_job(run, run.directory) for run in runs if run.directory]
    begun = {job.number for job in jobs}
    jobs += [job for job in planned if job.number not in begun]
    return sorted(jobs, key=lambda run: _natural(run.name))


def _as_job(run: ComparedRun, directory: Path) -> ComparedRun:
    named = re.match(r"\d+(?=-|$)", directory.name)
    number = int(named[0]) if named else -1
    with suppress(OSError, ValueError, LookupError):
        number = read_yaml(directory / ".hydra" / "hydra.yaml")["hydra"]["job"]["num"]
    status = _FAILED
    with suppress(OSError, ValueError):
        status = int(read_linked_file(directory / STATUS))
    return replace(run, number=number, status=status, parameters=_overrides(directory))


def _runs_under(path: Path) -> list[Path]:
    found = list[Path]()
    for folder, below, files in os.walk(path):
        below[:] = [name for name in below if name != BEFORE]
        if _SWEEP not in files and _MARKS.intersection((*below, *files)):
            found.append(Path(folder))
            below.clear()
    return sorted(found, key=lambda one: _natural(str(one)))


def _natural(text: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)
    ]


def _read(directory: Path, name: str) -> ComparedRun:
    try:
        if not (directory / RESULT).exists():
            return _read_without_result(directory, name)
        return _read_result(load_json(read_linked_file(directory / RESULT)), directory, name)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
        message = f"its files cannot be read: {type(problem).__name__}: {problem}"
        return ComparedRun(name=name, directory=directory, ended="unreadable", error=message)


def _read_result(result: JsonMapping, directory: Path, name: str) -> ComparedRun:
    configuration = result["configuration"]
    error = result["error"] or {}
    parameters = {**_settings(configuration), **_describe_request(result)}
    run = ComparedRun(
        name=name,
        directory=directory,
        ended=str(result["termination_reason"]),
        has_result=True,
        synthetic=result["synthetic"] is True,
        replayed=configuration["store"]["mode"] == "replay",
        figures={figure: _number(_at(result, path)) for figure, path in FIGURES.items()},
        thresholds=_thresholds(configuration),
        parameters=parameters,
        checks=_count_checks(result.get("checks") or ()),
        without=len(result.get("degraded") or ()),
        unusable_calls=tuple(result.get("unusable_calls") or ()),
        error=f"{error['type']}: {error['message']}" if error else "",
        hint=str(error.get("hint") or ""),
    )
    is_core = configuration["mode"]["kind"] in UNJUDGED_MODES
    converged = None if is_core else result["converged"] is True
    return replace(run, converged=converged, cause="; ".join(_causes(run, result)))


def _count_checks(checks: Sequence[JsonMapping]) -> str:
    return count_passed(tuple(map(CheckOutcome.model_validate, checks))) if checks else ""


def _causes(run: ComparedRun, result: JsonMapping) -> Iterable[str]:
    """Return what an end lacked: the error, the gaps in the answer's assessment, steps, tools,
    servers and reviews."""
    if run.error:
        yield run.error
    elif run.ended == "waiting":
        yield f"waits for {count_noun(len(result.get('waits_for') or ()), 'answer')}"
    elif run.ended not in GOOD_ENDS:
        yield from _list_missed(result)
    left = Counter((result.get("steps_left") or {}).values())
    for state, number in left.items():
        yield f"{count_noun(number, 'step')} {'not carried out' if state == 'pending' else state}"
    yield from dict.fromkeys(str(one["message"]) for one in result.get("degraded") or ())


def _list_missed(result: JsonMapping) -> Iterable[str]:
    """Return the gaps in the answer's assessment, without the scores: they have their own
    columns."""
    return (str(code).replace("_", " ") for code in result.get("reason_codes") or ())


def _read_without_result(directory: Path, name: str) -> ComparedRun:
    """Read a run under way or killed, or a job that failed before its run began."""
    events = read_events(directory)
    configuration = JsonObject()
    with suppress(OSError, ValueError):
        composed = read_yaml(directory / ".hydra" / "config.yaml")
        configuration = Settings.model_validate(composed).model_dump(mode="json")
    last = f"{events[-1]['event']}, {events[-1]['time'][:19]} UTC" if events else "none"
    return ComparedRun(
        name=name,
        directory=directory,
        ended=end_without_result(directory),
        synthetic=any(event.get("synthetic") for event in events[:1]),
        figures=_figures_so_far(events),
        thresholds=_thresholds(configuration),
        parameters={
            **_settings(configuration),
            **{key: configuration[key] for key in configuration if key == "task"},
        },
        error=f"There is no {RESULT}. The last event: {last}.",
    )


def _figures_so_far(events: Sequence[JsonMapping]) -> dict[str, float | None]:
    """Return the figures of a run without a result, from its journal."""
    figures: dict[str, float | None] = dict.fromkeys(FIGURES)
    if not events:
        return figures
    usages = []
    figures["passes"] = 0
    for event in events:
        if event["event"] in ("call_answered", "call_failed"):
            usages.append(event["usage"])
        if event["event"] == "pass_started":
            figures["passes"] = event["pass_number"]
        if event["event"] == "assessed":
            scores = event["assessment"]["scores"] or {}
            figures |= {name: _number(scores.get(f"{name}_score")) for name in SCORES}
    figures["calls"] = sum(usage["requests"] for usage in usages)
    figures["tokens"] = sum(usage["input_tokens"] + usage["output_tokens"] for usage in usages)
    began = datetime.fromisoformat(events[0]["time"])
    ended = datetime.fromisoformat(events[-1]["time"])
    figures["seconds"] = (ended - began).total_seconds()
    return figures


def _never_started(sweep: Path) -> Iterable[ComparedRun]:
    """Return the jobs of a multirun that left no directory, from its `summary.csv`."""
    with suppress(OSError, ValueError, csv.Error):
        text = read_linked_file(sweep / "summary.csv").decode()
        for row in csv.DictReader(StringIO(text, newline="")):
            if row.get("ended") == "not started":
                swept = {key: row[key] for key in list(row)[1 : list(row).index("ended")]}
                yield plan_job(row["job"], swept)


def plan_job(name: str, parameters: Mapping[str, str]) -> ComparedRun:
    """Return a job of a multirun before it starts; its name is its number."""
    return ComparedRun(
        name=name,
        directory=None,
        ended="not started",
        number=int(name),
        parameters=parameters,
    )


def _overrides(directory: Path) -> dict[str, str]:
    """Return the overrides of a multirun's job, by key; from `run.json` where Hydra writes
    nothing."""
    found: list[Any] = []
    with suppress(OSError, ValueError, LookupError):
        found = load_json(read_linked_file(directory / "run.json"))["overrides"] or []
    with suppress(OSError, ValueError):
        found = read_yaml(directory / ".hydra" / "overrides.yaml") or found
    return values_by_key(map(str, found))


def values_by_key(overrides: Iterable[str]) -> dict[str, str]:
    """Return the values of overrides by their keys, without Hydra's own."""
    parts = (text.partition("=") for text in overrides)
    return {
        key.lstrip("+"): _unquote(value) for key, _, value in parts if not key.startswith("hydra.")
    }


def _unquote(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1].replace("\\'", "'") if quoted else value


def _describe_request(result: JsonMapping) -> JsonObject:
    """Return the task and inputs of a run; long texts as the beginning of their hash."""
    hashes = result["hashes"]
    files = {name: f"#{hashes[name][:8]}" for name in ("prompts", "schemas")}
    inputs = {f"inputs.{name}": f"#{value[:8]}" for name, value in hashes["inputs"].items()}
    return {
        "task": result["task"],
        "version": result["versions"].get("aeon-engine"),
        **files,
        **inputs,
    }


def _settings(configuration: JsonMapping) -> JsonObject:
    return {key: value for key, value in flatten(configuration) if key.split(".")[0] not in _APART}


def _thresholds(configuration: JsonMapping) -> dict[str, float]:
    given = configuration.get("convergence") or {}
    thresholds = {name: _number(given.get(name)) for name in SCORES}
    return {name: value for name, value in thresholds.items() if value is not None}


def _at(value: Any, path: str) -> Any:
    return reduce(lambda found, key: (found or {}).get(key), path.split("."), value)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _find_differing(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Return the keys with several values, and those that only some of the results have; keys of
    only one option of a group add nothing to the option's `kind`."""
    keys = dict.fromkeys(["task", *(key for run in runs for key in run.parameters)])
    varying = [key for key in keys if _has_several_values(key, runs)]
    ended = [run for run in runs if run.has_result]
    return tuple(key for key in keys if key in varying or _is_in_some(key, ended, varying))


def _is_in_some(key: str, runs: Sequence[ComparedRun], varying: Sequence[str]) -> bool:
    """Check whether only some runs have the key, for another reason than a different option of its
    group."""
    if f"{key.split('.')[0]}.kind" in varying:
        return False
    return len({key in run.parameters for run in runs}) > 1


def _has_several_values(key: str, runs: Sequence[ComparedRun]) -> bool:
    return len({show(run.parameters[key]) for run in runs if key in run.parameters}) > 1


def show(value: object) -> str:
    """Return a parameter's value as text; empty for an unset one."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
