"""The first line of the page names the planted cause, and the commands follow it."""

from __future__ import annotations

import base64
import json
import re
import shlex
import zlib
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.report.diagnosis.ranking import diagnose
from aeon.report.items import find_critical, list_items
from aeon.report.page.build import draw_report
from aeon.report.page.why import explain_end
from aeon.report.patterns import find_patterns
from aeon.report.record import Call, load_record
from tests.integration.wire import overrides, script
from tests.report.diagnosis.conftest import Find
from tests.report.diagnosis.planted import RUNS
from tests.report.diagnosis.test_next_commands import check_that_all_agree
from tests.support import scripted_model
from tests.support.openai_server import Failure, OpenAIServer

COMMANDS = {
    "a noisy judge": ["roles.grader.model=NAME"],
    "a step that misses an input": ["inputs.NAME=..."],
    "an endpoint with waits": ["provider.max_concurrency=1"],
    "a model that needs repairs": ["roles.worker.model=NAME"],
    "an answer undone": ["roles.planner.model=NAME"],
    "a judge that wavers below the threshold": ["roles.grader.model=NAME"],
    "refinements that break their schema": ["roles.planner.model=NAME"],
    "a repeated issue": ["roles.planner.model=NAME"],
    "a pass 0 that eats the budget": ["ttl.limit="],
    "contradicting outputs": [],
    "a blank input": ["inputs.brief=..."],
    "a threshold out of reach": [],
    "a provider that is down": ["provider.retry.attempts=1", "resume"],
    "a missing tool": ["tools.functions.search_web=MODULE:FUNCTION"],
    "a missing tool without which a step is BLOCKED": [
        "tools.functions.search_web=MODULE:FUNCTION"
    ],
    "a criterion": [
        "task=write a guide. Every claim names its source.",
        "convergence.criteria.cited=WORDS",
    ],
    "a judge that denies its scores": ["roles.grader.model=NAME"],
    "a slow step": ["convergence.completeness=0.99"],
    "a refused change": ["roles.planner.model=NAME"],
    "a change that the budget refused": ["ttl."],
    "subplans that the budget refused": ["ttl."],
    "a wasted pass": ["convergence.completeness=0.99"],
    "a limit that came too early": ["limits.max_passes=4"],
    "an answer that was cut off": ["resume"],
    "a plan that is refused": ["roles.planner.model=NAME", "resume"],
    "a judge that is filtered": ["roles.grader.model=NAME", "resume"],
    "a budget below the plan": ["ttl.limit="],
    "a pass that made it worse": [],
    "a better pass, of which a later one made up a little": ["limits.max_passes=1"],
    "a tool that fails": [],
}
"""What the last word of each offered command begins with; `resume` stands for a run that goes on as it is."""


@pytest.mark.parametrize("name", RUNS)
def test_the_first_line_names_the_planted_cause(name: str, examined: Find) -> None:
    planted, run = RUNS[name], examined(name)
    assert run.record.result.converged is planted.converges
    assert run.findings[0].title.startswith(planted.first), [each.title for each in run.findings]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_the_commands_follow_the_cause(name: str, examined: Find) -> None:
    last_words = [shlex.split(command)[-1] for _, command in examined(name).commands]
    shown = ["resume" if word.startswith("resume=") else word for word in last_words]
    assert len(shown) == len(COMMANDS[name]), shown
    assert all(map(str.startswith, shown, COMMANDS[name])), shown


@pytest.mark.parametrize("name", RUNS)
def test_every_screen_names_the_same_commands(name: str, examined: Find) -> None:
    run = examined(name)
    shown = check_that_all_agree(run.record.result, run.record.directory)
    assert shown == [command for _, command in run.commands]


@pytest.mark.parametrize("name", [name for name, run in RUNS.items() if not run.converges])
def test_a_run_that_did_not_converge_has_one_cause_with_its_scores_below_it(
    name: str, examined: Find
) -> None:
    causes = [each for each in examined(name).findings if each.rank == "cause"]
    assert len(causes) == 1
    others = [each.title for each in examined(name).findings[1:]]
    assert [title for title in others if "its threshold is" in title] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_link_of_the_diagnosis_leads_somewhere_on_the_page(name: str, examined: Find) -> None:
    run = examined(name)
    page = draw_report(run.record).decode()
    island = re.search(r'id="data">(.*?)</script>', page)
    assert island
    packed = json.loads(zlib.decompress(base64.b64decode(json.loads(island[1])["packed"])))
    ids = set(re.findall(r'id="([^"]+)"', page + "".join(packed["lines"])))
    ids |= {call["id"] for call in packed["calls"]}
    findings = [*run.findings, *(child for one in run.findings for child in one.children)]
    anchors = {one.anchor for one in findings} | {to for one in findings for _, to in one.links}
    assert anchors - ids == set()


def test_one_sentence_says_why(examined: Find) -> None:
    record = examined("a step that misses an input").record
    sentence = explain_end(record.result, find_patterns(record))
    assert (
        sentence
        == "After 1 pass, completeness is 0.50 (threshold 0.95); the step `facts` is BLOCKED."
    )


def test_a_threshold_and_a_limit_are_named_with_their_defaults(examined: Find) -> None:
    (threshold, *_) = examined("a threshold out of reach").findings
    assert threshold.advice == "`convergence.completeness` was set to 0.99; its default is 0.95."
    limit = threshold.children[0]
    assert limit.advice == "`limits.max_passes` was set to 2; its default is 20."


def test_a_fallback_leads_to_the_first_call_that_it_answered(tmp_path: Path) -> None:
    plan = scripted_model.plan("outline", "write")
    failing = OpenAIServer(script(plan=plan, step=Failure(500)))
    with failing, OpenAIServer(script(plan=plan)) as spare:
        fallback = f"{{provider: openai, name: spare, model: m, base_url: '{spare.url}', require_key: false}}"
        given = [
            *overrides(failing.url),
            f"provider.fallbacks=[{fallback}]",
            "execution.max_parallel=1",
        ]
        with Aeon.from_config(given, environ={"OPENAI_API_KEY": "k"}) as aeon:
            aeon.run("write a guide", directory=tmp_path)
    record = load_record(tmp_path)
    items = list_items(record)
    finding, *_ = diagnose(record, find_patterns(record), items, find_critical(items))
    assert finding.title.startswith("The endpoint `spare` answered ")
    first = next(
        item for item in items if isinstance(item.source, Call) and item.source.endpoint == "spare"
    )
    assert finding.anchor == first.key
