"""A configuration resolved once: its texts, its origin and its provider."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ConfigError
from aeon.app.job import resolve_job
from aeon.config import load
from aeon.config.load import compose

SIMULATED = "provider=simulated"


def test_settings_are_kept_as_they_were_chosen_and_as_they_are_in_force() -> None:
    job = resolve_job(compose(["provider=auto"]), {})
    assert (job.chosen.provider.kind, job.settings.provider.kind) == ("auto", "simulated")


def test_nothing_of_a_job_can_be_changed() -> None:
    job: Any = resolve_job(compose([SIMULATED]), {})
    with pytest.raises(FrozenInstanceError):
        job.task = "another"


def test_a_task_is_required_where_one_is_needed() -> None:
    assert resolve_job(compose([SIMULATED]), {}).task is None
    with pytest.raises(ConfigError, match="no task is given"):
        resolve_job(compose([SIMULATED]), {}, needs_task=True)


def test_a_run_from_python_takes_task_and_inputs_of_the_settings() -> None:
    with Aeon.from_config([SIMULATED, "task=Make tea", "inputs.note=green"], environ={}) as aeon:
        work = aeon.prepare_run().work
        other = aeon.prepare_run("Make coffee", inputs={}).work
    assert (work.task, work.inputs) == ("Make tea", {"note": "green"})
    assert (other.task, other.inputs) == ("Make coffee", {})


def test_the_recorded_run_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Aeon.from_config([SIMULATED], environ={}) as aeon:
        aeon.run("Make tea", context={"cups": 2}, directory=tmp_path / "run")
    composition = load.composition(["store.mode=replay", f"store.path={tmp_path / 'run'}"])
    settings = load.compose_settings(composition)
    reads: list[Path] = []
    read = load.recording.read_recorded_origin

    def count(path: Path, *trust: Any) -> Any:
        reads.append(path)
        return read(path, *trust)

    monkeypatch.setattr(load.recording, "read_recorded_origin", count)
    with Aeon(settings, {}, composition=composition) as aeon:
        work = aeon.prepare_run().work
    assert (work.task, work.context) == ("Make tea", {"cups": 2})
    assert len(reads) == 1
