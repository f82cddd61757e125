"""The run that is resumed or replayed: which of its settings are taken over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.config.compose.literal import Composition
from aeon.config.compose.recorded import record
from aeon.config.compose.reference import groups
from aeon.config.load import compose
from aeon.config.marks import take_from_others
from aeon.config.recording import (
    find_changed,
    find_held_back,
    parse_of_cassette,
    read_recorded_origin,
    read_usual,
)
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError

SUM = Path(__file__).parents[2] / "examples" / "cassettes" / "sum.aeon"
PRESETS = sorted(set(groups()["provider"]) - {"batch"})
EARLIER: dict[str, Any] = {
    "format": "aeon.run/1",
    "run_id": "a",
    "overrides": ["provider=groq", "ttl.base=7", "progress=none"],
    "paths": {"plan_file": "plan.yaml"},
    "task": "x",
    "provider": {"kind": "openai"},
    "synthetic": False,
    "store_mode": "record",
    "working_directory": ".",
    "started": "2026-11-21",
}


def run_in(directory: Path, *overrides: str) -> dict[str, Any]:
    """The content of `run.json` of a run with these overrides."""
    with Aeon.from_config(["provider=simulated", *overrides], environ={}) as aeon:
        aeon.run("x", directory=directory)
    recorded: dict[str, Any] = json.loads((directory / "run.json").read_bytes())
    return recorded


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_taken_of_a_preset_is_whole_without_what_is_not(preset: str) -> None:
    recorded, _ = record(compose([f"provider={preset}"]))
    taken, held = take_from_others(recorded, read_usual())
    assert Settings.model_validate(taken).provider.kind == recorded["provider"]["kind"]
    assert not held


def test_the_packaged_settings_are_not_changed() -> None:
    assert not list(find_changed(record(compose())[0]))
    changed = dict(find_changed(record(compose(["ttl.base=7"]))[0]))
    assert changed == {"ttl.base": 7}


def test_a_cassette_of_the_format_before_gives_its_task_and_names_what_is_to_be_given() -> None:
    origin = parse_of_cassette(EARLIER, "store.path=old.aeon")
    assert (origin.task, origin.settings, origin.overrides) == ("x", {}, None)
    assert origin.missing == ("provider", "ttl.base")


def test_what_is_given_today_is_not_missed(tmp_path: Path) -> None:
    first, answers = SUM.read_text(encoding="utf-8").split("\n", maxsplit=1)
    header = json.loads(first)
    header["origin"] = EARLIER
    (tmp_path / "old.aeon").write_text(f"{json.dumps(header)}\n{answers}", encoding="utf-8")
    old = tmp_path / "old.aeon"
    of_old, of_sum = read_recorded_origin(old), read_recorded_origin(SUM)
    assert of_old is not None
    assert of_sum is not None
    assert find_held_back(of_old, Composition(overrides=("ttl.base=8",))) == ("provider",)
    assert find_held_back(of_sum, Composition()) == ()


def test_a_value_of_the_environment_is_read_again_and_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_MINE", "a-value-of-the-environment")
    recorded = run_in(tmp_path / "one", "mode.one_step=${oc.env:OF_MINE}")
    assert recorded["missing"] == ["mode.one_step"]
    assert "a-value-of-the-environment" not in (tmp_path / "one" / "run.json").read_text()
    monkeypatch.setenv("OF_MINE", "another-value-of-today")
    resumed = compose([f"resume={tmp_path / 'one'}"])
    assert getattr(resumed.mode, "one_step", None) == "another-value-of-today"


def test_a_value_of_the_environment_that_came_with_no_override_is_to_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_MINE", "a-value-of-the-environment")
    recorded = run_in(tmp_path / "one", "mode.one_step=${oc.env:OF_MINE}")
    (tmp_path / "one" / "run.json").write_text(json.dumps({**recorded, "overrides": []}))
    again = [f"resume={tmp_path / 'one'}", "trust=true"]
    with pytest.raises(ConfigError, match=r"mode\.one_step held a secret") as caught:
        compose(again)
    assert "mode.one_step=..." in caught.value.hint
    compose([*again, "mode.one_step=all of it"])


def test_a_resumed_run_records_the_settings_of_both(tmp_path: Path) -> None:
    run_in(tmp_path / "one", "ttl.base=7", "limits.max_passes=3")
    with Aeon.from_config([f"resume={tmp_path / 'one'}", "ttl.base=8"], environ={}) as aeon:
        aeon.run(directory=tmp_path / "two")
    recorded = json.loads((tmp_path / "two" / "run.json").read_bytes())
    assert (recorded["settings"]["ttl"]["base"], recorded["settings"]["limits"]["max_passes"]) == (
        8,
        3,
    )
    assert recorded["overrides"] == ["provider=simulated", "limits.max_passes=3", "ttl.base=8"]
