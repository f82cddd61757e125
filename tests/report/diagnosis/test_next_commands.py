"""The card, the lines of a terminal, the page and `aeon inspect` name the same commands for a run, however it ended."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from aeon.cli.commands.inspect import _describe
from aeon.cli.job.card import card
from aeon.cli.terminal.lines import ending
from aeon.domain.history import Advisory, TerminationReason
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.result import Degradation, RunResult
from aeon.report.diagnosis.next_commands import (
    find_next_commands,
    list_next_commands,
    list_typed_overrides,
)
from aeon.report.page.build import draw_report
from aeon.report.record import load_record
from aeon.report.words import command_of
from tests.report.diagnosis.builders import a_pass, a_run, a_step, assessed, blocked

STEPS: dict[str, tuple[PlanStep, ...]] = {
    "all done": (a_step("facts"),),
    "one blocked": (a_step("facts"), blocked("write")),
    "one failed": (a_step("facts"), a_step("write", status="failed", errors=("Timeout: 3 s",))),
}
OPEN: dict[str, object] = {
    "follow_up_questions": (FollowUpQuestion(question="Which year?", assumption="2025"),),
    "advisories": (
        Advisory(kind="refinement_limit", message="No more refinements.", pass_number=1),
    ),
    "degraded": (
        Degradation(kind="review_lost", step=None, message="No review.", remedy="Ask again."),
    ),
    "unusable_calls": ("step",),
}


def on_page(result: RunResult, directory: Path) -> list[str]:
    """The commands under "What to try next"."""
    page = draw_report(load_record(directory, result)).decode()
    part = page.partition("What to try next")[2].partition("<h2")[0]
    codes = re.findall(r'class="command"><code[^>]*>(.*?)</code>', part, re.DOTALL)
    return [html.unescape(re.sub(r"</?mark>", "", code)) for code in codes]


def check_that_all_agree(result: RunResult, directory: Path) -> list[str]:
    """What every screen names."""
    found = find_next_commands(result, directory)
    commands = [command for _, command in found]
    assert on_page(result, directory) == commands
    shown = json.loads(_describe(load_record(directory, result), as_json=True))
    assert shown["next"] == [list(way) for way in found]
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", card(result, directory)).splitlines()
    assert [line[4:] for line in drawn if line[4:] in commands] == commands
    lines = ending(result, directory).splitlines()
    expected = [f"{purpose}: {command}" for purpose, command in found]
    assert lines[len(lines) - len(found) :] == expected
    return commands


@pytest.mark.parametrize("stored", ["record", "off", "replay"])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("reason", get_args(TerminationReason))
def test_every_screen_names_the_same_commands_for_every_end(
    tmp_path: Path, reason: TerminationReason, steps: str, stored: str
) -> None:
    for name in ("", *OPEN):
        run = a_run(a_pass(1, assessed(0.9), steps=STEPS[steps]), reason=reason).result
        store = {**run.configuration["store"], "mode": stored}
        given = {"configuration": {**run.configuration, "store": store}}
        given |= {name: OPEN[name]} if name else {}
        check_that_all_agree(run.model_copy(update=given), tmp_path)


@pytest.mark.parametrize(
    ("reason", "steps", "purposes"),
    [
        ("converged", "all done", ["To ask for more, from these answers on"]),
        ("completed", "all done", []),
        (
            "ttl_expired",
            "all done",
            ["To continue with higher limits", "To accept the answer as it is"],
        ),
        ("ttl_expired", "one blocked", ["To give the step what it misses (repeats every call)"]),
        (
            "max_passes",
            "all done",
            ["To continue with higher limits", "To accept the answer as it is"],
        ),
        ("max_passes", "one failed", []),
        ("stalled", "all done", ["To accept the answer as it is"]),
        ("stalled", "one blocked", ["To give the step what it misses (repeats every call)"]),
        ("step_failed", "one blocked", ["To give the step what it misses (repeats every call)"]),
        ("step_failed", "one failed", ["To resume from the stored answers"]),
        ("interrupted", "one failed", ["To resume from the stored answers"]),
        ("failed", "all done", ["To resume from the stored answers"]),
    ],
)
def test_what_is_offered_follows_from_the_end(
    tmp_path: Path, reason: TerminationReason, steps: str, purposes: list[str]
) -> None:
    run = a_run(a_pass(1, assessed(0.9), steps=STEPS[steps]), reason=reason).result
    assert [purpose for purpose, _ in find_next_commands(run, tmp_path)] == purposes


def test_the_journals_are_not_read_again_once_the_page_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(a_pass(1, assessed(0.9), steps=STEPS["all done"]), reason="max_passes").result
    expected = on_page(run, tmp_path)
    monkeypatch.setattr("aeon.report.diagnosis.next_commands.load_record", None)
    assert [command for _, command in find_next_commands(run, tmp_path)] == expected != []
    assert find_next_commands(run.model_copy(), tmp_path) == []


def test_after_a_replay_the_own_run_has_what_was_typed_besides_the_recording() -> None:
    run = a_run()
    store = {**run.result.configuration["store"], "mode": "replay"}
    result = run.result.model_copy(
        update={"configuration": {**run.result.configuration, "store": store}}
    )
    given = ("store=replay", "store.path=sum.aeon", "prompts.dir=prompts", "hydra.run.dir=x")
    record = replace(run.record, result=result, overrides=given)
    expected = command_of([f"task={result.task}", "prompts.dir=prompts"])
    assert list_next_commands(record, run.patterns, []) == [
        ("To run it with a model of your own", expected)
    ]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_an_address_that_was_quoted_for_hydra_is_shown_without_quotes(quote: str) -> None:
    address = f"{quote}http://127.0.0.1:8080/v1?token=abc{quote}"
    given = ("task=x", f"provider.base_url={address}")
    record = replace(a_run(reason="failed").record, overrides=given)
    assert list_typed_overrides(record)[1] == "provider.base_url=http://127.0.0.1:8080/v1"
