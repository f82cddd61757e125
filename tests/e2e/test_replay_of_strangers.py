"""A cassette that somebody else has made: it is replayed, and nothing else of it is obeyed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.config.compose.literal import key_of
from aeon.config.recompose import select_overrides
from tests.cli.conftest import RunAeon
from tests.cli.conftest import aeon as aeon

pytestmark = pytest.mark.slow

SUM = Path(__file__).parents[2] / "examples" / "cassettes" / "sum.aeon"
REPLAY = ("store.mode=replay", "store.path=strange.aeon", "store.match=order", "progress=none")
HARMLESS = "convergence.completeness=0.5"


def strange(*overrides: str, **origin: Any) -> None:
    """`strange.aeon`: the recording of a sum, its head edited."""
    first, answers = SUM.read_text(encoding="utf-8").split("\n", maxsplit=1)
    header = json.loads(first)
    header["origin"] |= {
        "overrides": [*header["origin"]["overrides"], HARMLESS, *overrides],
        **origin,
    }
    Path("strange.aeon").write_text(f"{json.dumps(header)}\n{answers}", encoding="utf-8")


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["tools=mcp", "tools.mcp.servers.x.command=[touch,pwned]"], "tools.mcp.servers.x.command"),
        (["++tools.mcp={servers: {x: {command: [touch, pwned]}}}"], "tools.mcp"),
        (["tools={mcp: {servers: {x: {command: [touch, pwned]}}}}"], "tools"),
        (["++tools.functions.t=evil:f"], "tools.functions.t"),
        (["hydra.searchpath=[file://elsewhere]", "+thing=evil"], "hydra.searchpath"),
        (["prompts.dir=elsewhere"], "prompts.dir"),
        (["schemas.dir=elsewhere"], "schemas.dir"),
        (["plan_file=plan.yaml"], "plan_file"),
        (["memory=sqlite", "memory.path=pwned"], "memory.path"),
        (["answer.schema=/dev/zero"], "answer.schema"),
        (["tools.builtin.root=/"], "tools.builtin.root"),
        (["convergence.criteria_file=secret.yaml"], "convergence.criteria_file"),
        (["provider=../../../evil"], "provider"),
        (["+mode@tools=core"], "mode"),
        (["convergence.criteria.a=${oc.env:HOME}"], "convergence.criteria.a"),
        (["=["], "=["),
    ],
)
def test_what_starts_imports_or_reads_something_is_not_taken_and_is_named(
    overrides: list[str], named: str, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "evil.py").write_text(
        "open('pwned', 'w').close()\ndef f(x: int) -> int:\n    'F.'\n    return x\n"
    )
    strange(*overrides)
    ended = aeon(*REPLAY, "hydra.run.dir=done")
    assert ended.status == 0, ended.err
    assert not (tmp_path / "pwned").exists()
    assert "the recording was made with" in ended.err
    assert named in ended.err
    result = json.loads((tmp_path / "done" / "result.json").read_bytes())
    assert result["configuration"]["convergence"]["completeness"] == 0.5


@pytest.mark.parametrize(
    "key", ["hydra.run.dir=pwned", "++hydra.job.chdir=true", "hydra/launcher=evil", "hydra={}"]
)
def test_where_a_replay_runs_is_not_for_the_recording_to_say(
    key: str, aeon: RunAeon, tmp_path: Path
) -> None:
    strange(key)
    ended = aeon(*REPLAY)
    assert (ended.status, ended.err.count("was made with")) == (0, 0)
    assert not (tmp_path / "pwned").exists()
    assert (tmp_path / "outputs").is_dir()


def test_a_configuration_folder_is_not_taken(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "mine.yaml").write_text(
        "defaults: [config, _self_]\nprogress: {kind: [}\n"
    )
    strange(config_dir="./conf", config_name="mine")
    ended = aeon(*REPLAY)
    assert ended.status == 0
    assert "--config-dir" in ended.err


@pytest.mark.parametrize(("name", "taken"), [("mine", 0.25), ("../other", 0.5)])
def test_of_a_folder_that_is_given_today_a_file_in_it_may_be_named(
    name: str, taken: float, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "conf" / "ttl").mkdir(parents=True)
    (tmp_path / "conf" / "ttl" / "mine.yaml").write_text("base: 3\n")
    for path in (tmp_path / "conf" / "mine.yaml", tmp_path / "other.yaml"):
        path.write_text("defaults: [config, _self_]\nconvergence: {coherence: 0.25}\n")
    strange("convergence.coherence=0.5" if "/" in name else HARMLESS, config_name=name)
    ended = aeon(*REPLAY, "--config-dir", "conf", "hydra.run.dir=done")
    assert ended.status == 0, ended.err
    result = json.loads((tmp_path / "done" / "result.json").read_bytes())
    assert result["configuration"]["convergence"]["coherence"] == taken


def test_files_that_are_named_are_not_read(aeon: RunAeon) -> None:
    strange(files={"plan_file": {"path": "/dev/zero", "sha256": "0" * 64}})
    assert aeon(*REPLAY).status == 0


def test_what_is_typed_today_is_obeyed_and_not_named(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('def f(x: int) -> int:\n    "Give a number."\n    return x\n')
    strange("++tools.functions.t=evil:f")
    ended = aeon(*REPLAY, "tools.functions.t=mine:f", "hydra.run.dir=done")
    assert ended.status == 0
    assert "was made with" not in ended.err
    result = json.loads((tmp_path / "done" / "result.json").read_bytes())
    assert result["configuration"]["tools"]["functions"] == {"t": "mine:f"}


@pytest.mark.slow
def test_a_program_is_warned_too(aeon: RunAeon) -> None:
    strange("++tools.functions.t=evil:f")
    with Aeon.from_config(REPLAY, environ={}) as replaying:
        assert any("tools.functions.t" in warning for warning in replaying.warnings)
        assert not replaying.settings.tools.functions


def test_a_program_that_made_its_own_settings_is_told_nothing(aeon: RunAeon) -> None:
    strange("++tools.functions.t=evil:f")
    with Aeon.from_config(REPLAY, environ={}) as composed, Aeon(composed.settings, {}) as replaying:
        assert not any("recording" in warning for warning in replaying.warnings)


@pytest.mark.parametrize(
    "override",
    [
        "mode=core",
        "ttl.base=30",
        "ttl=large",
        "limits.max_cost=2",
        "~limits.max_cost",
        "refinement.when=always",
        "reasoning.deep.effort=high",
        "roles.grader={model: gpt-5, temperature: 0}",
        "execution=sequential",
        "env=prod",
        "experiment=quick",
        "interaction=ask",
        "prompts.set=default",
        "provider=groq",
        "provider={kind: openai, model: gpt-5}",
        "provider.extra_body={top_k: 3, a: {b: 1}}",
        "provider.extra_body.top_k=3",
        "provider.seed=7",
        "tools=[builtin]",
        "tools.builtin.only=[echo]",
        "store.sample=2",
        "memory=in_memory",
        "++convergence.criteria.a='costs 5'",
        "task=null",
        "~inputs",
    ],
)
def test_what_decides_what_is_asked_is_taken(override: str) -> None:
    assert select_overrides([override], None) == ((override,), ())


@pytest.mark.parametrize(
    "override",
    [
        "provider.base_url=http://elsewhere/v1",
        "provider.api_key_env=HOME",
        "provider.extra_headers_env={a: HOME}",
        "provider.fallbacks=[groq]",
        "store.path=other.aeon",
        "observability=none",
        "hydra.run.dir=x",
    ],
)
def test_what_a_replay_has_no_use_for_is_left_away_in_silence(override: str) -> None:
    assert select_overrides([override], None) == ((), ())


@pytest.mark.parametrize(
    "override", ["provider.scenario=a.yaml", "provider=mine", "ttl.base=1,2", "provider.new=1"]
)
def test_what_may_be_missed_is_named(override: str) -> None:
    assert select_overrides([override], None) == ((), (key_of(override),))


def test_a_choice_of_a_folder_that_is_given_today_is_taken(tmp_path: Path) -> None:
    (tmp_path / "provider").mkdir()
    (tmp_path / "provider" / "mine.yaml").write_text("kind: openai\n")
    assert select_overrides(["provider=mine"], tmp_path) == (("provider=mine",), ())
