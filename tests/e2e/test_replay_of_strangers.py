"""A cassette that somebody else has made: it is replayed, and nothing else of it is obeyed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from aeon import Aeon
from tests.cli.conftest import RunAeon
from tests.cli.conftest import aeon as aeon

pytestmark = pytest.mark.slow

SUM = Path(__file__).parents[2] / "examples" / "cassettes" / "sum.aeon"
REPLAY = ("store.mode=replay", "store.path=strange.aeon", "store.match=order", "progress=none")
HARMLESS: dict[str, Any] = {"convergence": {"completeness": 0.5}}


def strange(settings: Mapping[str, Any] = MappingProxyType({}), **origin: Any) -> None:
    """`strange.aeon`: the recording of a sum, the settings in its head changed by groups."""
    first, answers = SUM.read_text(encoding="utf-8").split("\n", maxsplit=1)
    header = json.loads(first)
    recorded = header["origin"]["settings"]
    for group, changed in {**HARMLESS, **settings}.items():
        is_group = isinstance(changed, dict)
        recorded[group] = {**recorded.get(group, {}), **changed} if is_group else changed
    header["origin"] |= origin
    Path("strange.aeon").write_text(f"{json.dumps(header)}\n{answers}", encoding="utf-8")


def configuration_of(directory: Path) -> dict[str, Any]:
    configuration: dict[str, Any] = json.loads((directory / "result.json").read_bytes())[
        "configuration"
    ]
    return configuration


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (
            {"tools": {"mcp": {"servers": {"x": {"command": ["touch", "pwned"]}}}}},
            "tools.mcp.servers.x.command",
        ),
        ({"tools": {"functions": {"t": "evil:f"}}}, "tools.functions.t"),
        ({"components": {"planner": "evil:f"}}, "components.planner"),
        ({"prompts": {"dir": "elsewhere"}}, "prompts.dir"),
        ({"schemas": {"dir": "elsewhere"}}, "schemas.dir"),
        ({"plan_file": "plan.yaml"}, "plan_file"),
        ({"memory": {"kind": "sqlite", "path": "pwned"}}, "memory.path"),
        ({"answer": {"schema": "/dev/zero"}}, "answer.schema"),
        ({"tools": {"builtin": {"root": "/"}}}, "tools.builtin.root"),
        ({"convergence": {**HARMLESS["convergence"], "criteria_file": "a.yaml"}}, "criteria_file"),
        ({"thing": "evil"}, "thing"),
    ],
)
def test_what_starts_imports_or_reads_something_is_not_taken_and_is_named(
    settings: dict[str, Any], named: str, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "evil.py").write_text(
        "open('pwned', 'w').close()\ndef f(x: int) -> int:\n    'F.'\n    return x\n"
    )
    strange(settings)
    ended = aeon(*REPLAY, "hydra.run.dir=done")
    assert ended.status == 0, ended.err
    assert not (tmp_path / "pwned").exists()
    assert "the recording was made with" in ended.err
    assert named in ended.err
    assert configuration_of(tmp_path / "done")["convergence"]["completeness"] == 0.5


def test_an_interpolation_in_a_recording_is_text(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THIS_MACHINE", "a value of this machine")
    texts = {"a": "${oc.env:OF_THIS_MACHINE}", "b": "\\${ttl.base}"}
    strange({"memory": {"entries": texts}})
    ended = aeon(*REPLAY, "hydra.run.dir=done")
    assert ended.status == 0, ended.err
    assert configuration_of(tmp_path / "done")["memory"]["entries"] == texts


def test_what_was_typed_is_never_composed_again(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("open('pwned', 'w').close()\n")
    typed = ["tools.functions.t='${oc.env:HOME}:f'", "prompts.dir=elsewhere"]
    strange(overrides=typed, missing=["tools.functions.t", "prompts.dir"])
    ended = aeon(*REPLAY, "hydra.run.dir=done")
    assert ended.status == 0, ended.err
    assert "made with tools.functions.t" in ended.err
    assert configuration_of(tmp_path / "done")["tools"]["functions"] == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"hydra": {"run": {"dir": "pwned"}}},
        {"hydra": {"job": {"chdir": True}}},
        {"hydra": {"launcher": {"_target_": "evil.f"}}},
        {"observability": {"sinks": {"x": "evil:f"}}},
        {"trust": True},
    ],
)
def test_where_a_replay_runs_is_not_for_the_recording_to_say(
    settings: dict[str, Any], aeon: RunAeon, tmp_path: Path
) -> None:
    strange(settings)
    ended = aeon(*REPLAY)
    assert (ended.status, ended.err.count("was made with")) == (0, 0), ended.err
    assert not (tmp_path / "pwned").exists()
    assert (tmp_path / "outputs").is_dir()


@pytest.mark.parametrize("today", [[], ["--config-dir", "own"]])
def test_a_configuration_folder_and_its_primary_file_are_not_taken(
    today: list[str], aeon: RunAeon, tmp_path: Path
) -> None:
    for name in ("conf", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.yaml").write_text("defaults: [config, _self_]\nttl: {base: [}\n")
    (tmp_path / "own" / "ttl").mkdir()
    (tmp_path / "own" / "ttl" / "other.yaml").write_text("base: 3\n")
    strange(config_dir="./conf", config_name="mine")
    ended = aeon(*REPLAY, *today)
    assert ended.status == 0, ended.err


def test_files_that_are_named_are_not_read(aeon: RunAeon) -> None:
    strange(files={"plan_file": {"path": "/dev/zero", "sha256": "0" * 64}})
    assert aeon(*REPLAY).status == 0


def test_what_is_typed_today_is_obeyed_and_not_named(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('def f(x: int) -> int:\n    "Give a number."\n    return x\n')
    strange({"tools": {"functions": {"t": "evil:f"}}})
    ended = aeon(*REPLAY, "tools.functions.t=mine:f", "hydra.run.dir=done")
    assert ended.status == 0
    assert "was made with" not in ended.err
    assert configuration_of(tmp_path / "done")["tools"]["functions"] == {"t": "mine:f"}


@pytest.mark.slow
def test_a_program_is_warned_too(aeon: RunAeon) -> None:
    strange({"tools": {"functions": {"t": "evil:f"}}})
    with Aeon.from_config(REPLAY, environ={}) as replaying:
        assert any("tools.functions.t" in warning for warning in replaying.warnings)
        assert not replaying.settings.tools.functions


def test_a_program_that_made_its_own_settings_is_told_nothing(aeon: RunAeon) -> None:
    strange({"tools": {"functions": {"t": "evil:f"}}})
    with Aeon.from_config(REPLAY, environ={}) as composed, Aeon(composed.settings, {}) as replaying:
        assert not any("recording" in warning for warning in replaying.warnings)
