"""The recordings that come with Aeon, run again as a person runs them: no key, no network, the same ends."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from aeon.store.cassette import read
from tests.cli.conftest import Ended, RunAeon
from tests.cli.conftest import aeon as aeon
from tests.e2e.conftest import Run, whole
from tests.support.openai_server import OpenAIServer

ROOT = Path(__file__).parents[2]
CASSETTES = ROOT / "examples" / "cassettes"
DEMO = re.search(
    r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
)


def replay(aeon: RunAeon, name: str, *overrides: str) -> Ended:
    return aeon(
        "store.mode=replay", f"store.path={CASSETTES / name}.aeon", "store.match=order", *overrides
    )


def demo(aeon: RunAeon, *overrides: str) -> Ended:
    """What `make demo` runs, but at once."""
    assert DEMO
    words = [word for word in DEMO[1].split() if "=" in word and word.startswith("store.")]
    words = [word.replace("examples/", f"{ROOT}/examples/") for word in words]
    pace = [word for word in words if word.startswith("store.pace_seconds=")]
    assert len(pace) == 1
    return aeon(*(word for word in words if word not in pace), *overrides)


@pytest.mark.parametrize(
    ("name", "passes", "calls", "ttl"),
    [("sum", 1, 6, (5, 18)), ("rest-api", 5, 23, (22, 46)), ("web-architecture", 4, 25, (24, 64))],
)
def test_a_recording_runs_to_the_end_that_it_had(
    name: str, passes: int, calls: int, ttl: tuple[int, int], aeon: RunAeon, tmp_path: Path
) -> None:
    run: Run = whole(replay(aeon, name, "progress=plain"), tmp_path)
    assert run.status == 0, run.err
    result = run.result
    assert result["converged"]
    assert not result["synthetic"]
    assert (result["passes"], result["usage"]["total"]["requests"]) == (passes, calls)
    assert (result["ttl"]["used"], result["ttl"]["allocated"]) == ttl
    assert result["parent"]["saved"]["model_calls"] == calls
    assert f"{calls} answers from a recording." in run.err


def test_the_demo_says_first_that_it_is_a_recording_by_what_and_when(aeon: RunAeon) -> None:
    ended = demo(aeon, "progress=plain")
    said = " ".join(ended.err.split())
    assert said.lstrip("= ").startswith(
        "RECORDING, no model is called: answered on 2026-11-21 by hand, by a careful reader of each prompt (no model)."
    )
    assert ended.out.startswith("# Architecture: web application with user authentication\n")
    assert "SIMULATED" not in ended.out + ended.err


@pytest.mark.slow
def test_the_demo_shows_no_cost_and_no_time(aeon: RunAeon) -> None:
    for kind in ("plain", "none"):
        err = demo(aeon, f"progress={kind}").err.partition("Artefacts:")[0]
        assert "cost " not in err.replace("no cost ", "")
        assert not re.search(r"\d\d:\d\d|\d\.\ds\b", err)


def test_the_demo_lasts_from_half_a_minute_to_a_minute() -> None:
    """Reckoned, and not waited for: answers of steps that run side by side take their time together."""
    assert DEMO
    pace = float(re.search(r"store\.pace_seconds=([\d.]+)", DEMO[1])[1])
    (path,) = re.findall(r"store\.path=(\S+)", DEMO[1])
    turns = {
        (entry.request.path.pass_number, "steps") if entry.request.path.call == "step" else index
        for index, entry in enumerate(read(ROOT / path).answers)
    }
    assert 30 <= pace * len(turns) <= 60


@pytest.mark.slow
def test_the_lead_of_the_readme_shows_what_the_demo_shows(aeon: RunAeon) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = (
        block
        for block in re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        if "RECORD" in block
    )
    ended = demo(aeon, "progress=plain")
    lines = iter([*ended.err.partition("\nConverged; ")[0].splitlines(), *ended.out.splitlines()])
    *told, last = [line.removesuffix("...").rstrip() for line in block.splitlines()]
    for line in filter(None, told):
        # In order: each is looked for after the one before.
        assert any(
            shown == line or (shown.startswith(line) and line not in told[:4]) for shown in lines
        ), line
    assert last in ended.err


def test_a_recording_takes_other_overrides_of_today(aeon: RunAeon) -> None:
    ended = replay(aeon, "sum", "output=json", "progress=none", "limits.max_llm_calls=3")
    assert ended.status == 3
    result = json.loads(ended.out)
    assert (result["termination_reason"], result["task"]) == (
        "max_llm_calls",
        "calculate the sum of 5 and 10",
    )


@pytest.mark.slow
def test_a_prompt_edit_is_shown_as_a_difference_and_run_by_order(
    aeon: RunAeon, tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = CASSETTES / "sum.aeon"
    openai_server.script |= {
        call: [
            entry.answer["text"]
            for entry in read(answered).answers
            if entry.request.path.call == call
        ]
        for call in {entry.request.path.call for entry in read(answered).answers}
    }
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    task = (
        "task=calculate the sum of 5 and 10",
        "provider=openai",
        f"provider.base_url={openai_server.url}",
    )
    recorded = whole(aeon(*task, "progress=none"), tmp_path)
    assert recorded.status == 0
    directory = next((tmp_path / "outputs").glob("*/*"))
    monkeypatch.delenv("OPENAI_API_KEY")
    openai_server.stop()
    assert aeon("cassette", "export", str(directory), "report.aeon").status == 0
    shutil.rmtree(tmp_path / "outputs")
    assert aeon("init", "mine").status == 0
    edited = tmp_path / "mine" / "prompts" / "default" / "step.user.j2"
    text = edited.read_text(encoding="utf-8")
    edited.write_text(text + "\nBe brief, please.\n", encoding="utf-8")
    replayed = ("store.mode=replay", "store.path=report.aeon", "progress=plain")

    same = aeon(*replayed)
    assert (same.status, same.out) == (0, "15\n")
    assert "changed since" not in same.err

    exact = aeon(*replayed, "prompts.dir=mine/prompts")
    assert exact.status == 1
    assert "step add-numbers" in exact.err
    assert "\n+Be brief, please.\n" in exact.err

    in_order = aeon(*replayed, "prompts.dir=mine/prompts", "store.match=order")
    assert (in_order.status, in_order.out) == (0, "15\n")
    assert "Requests that are not those that had been recorded: 1." in in_order.err
    run = whole(in_order, tmp_path)
    assert run.result["parent"]["differing"] == 1
