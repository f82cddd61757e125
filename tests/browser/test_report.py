"""The page of a run as a person uses it: it loads nothing, folds, searches, slides, links, and is accessible."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from aeon.convergence.engine import verdict
from aeon.domain.assessment import (
    LOW_SCORE_CODES,
    ConvergenceScores,
    ConvergenceThresholds,
    CriterionResult,
)
from aeon.evaluation.calibration.labels import read_labels
from aeon.report.page.build import write_report
from tests.browser.conftest import Opened, Run
from tests.report.diagnosis.planted import RUNS, play
from tests.report.page.test_rounds import NOWHERE, ORDER, TEA, calls, in_turn
from tests.report.page.test_rounds import run as run_with_tools
from tests.support.input_files import make_pdf, make_png

Show = Callable[..., Opened]
MOST_BYTES = 500_000
PAINTED_MS = 5_000
"""What tells a page that paints at once, as it does on any machine, from one that waits for something."""


def test_it_opens_alone_without_a_word_from_the_browser(recorded: Path, opened: Show) -> None:
    tab = opened(recorded)
    assert tab.said == []
    assert tab.asked == [recorded.as_uri()]
    assert tab.page.locator("h1").inner_text() == "Converged; judged by the model that did the work"
    assert "RECORDING" in tab.page.locator(".banner").inner_text()
    assert "completeness 0.97 (threshold 0.95)" in tab.page.locator(".why").inner_text()


def test_calls_unfold_with_prompt_answer_and_commands(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    assert page.locator("details.call").count() == 25
    call = page.locator("#call-2")
    call.locator("summary").first.click()
    call.locator("summary", has_text="Prompt: user").click()
    prompt = call.locator("details.block", has_text="Prompt: user").locator("pre")
    assert "web application with user authentication" in prompt.inner_text()
    assert "python -m aeon render plan" in call.inner_text()


def test_a_link_to_a_call_opens_it(recorded: Path, opened: Show) -> None:
    page = opened(recorded, "#call-17").page
    assert page.locator("#call-17").get_attribute("open") is not None
    assert page.locator("#call-17").evaluate("each => each.getBoundingClientRect().top") < 800
    page.goto(recorded.as_uri() + "#call-3")
    page.wait_for_selector("#call-3[open]")


def test_the_search_finds_words_in_prompts_and_answers(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    page.fill("#search", "Argon2id")
    page.locator("#count", has_text=" of 25").wait_for()
    found = page.locator("details.call:visible")
    assert 0 < found.count() < 25
    page.fill("#search", "no such words at all")
    page.locator("#count", has_text="0 of 25").wait_for()
    page.fill("#search", "")
    page.select_option("#only-kind", "convergence")
    page.locator("#count", has_text="4 of 25").wait_for()


def test_a_slider_says_where_it_would_have_converged_and_how(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    assert page.locator("#what-if").inner_text() == "It converged in pass 4."
    page.locator("[data-threshold=completeness]").fill("0.99")
    assert "no pass would have converged" in page.locator("#what-if").inner_text()
    page.locator("[data-threshold=completeness]").fill("0.2")
    assert (
        page.locator("#what-if").inner_text()
        == "With these thresholds it would have converged in pass 1."
    )
    assert "convergence.completeness=0.2" in page.locator("#what-if-command code").inner_text()


def test_the_dots_follow_the_slider(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    reached = page.locator("svg[data-score=completeness] .dot.ok")
    assert reached.count() == 1
    page.locator("[data-threshold=completeness]").fill("0.3")
    assert reached.count() == 2
    page.locator("[data-threshold=completeness]").fill("0.2")
    assert reached.count() == 4


def test_the_charts_have_one_scale(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    charts = page.locator("svg.scores")
    assert charts.evaluate_all("all => all.map((each) => each.dataset.low)") == ["0.0"] * 3
    assert page.locator("svg.scores >> nth=0").locator("text", has_text="0.5").count() == 1


def test_the_answer_of_each_pass_is_there_as_what_changed(recorded: Path, opened: Show) -> None:
    page = opened(recorded, "#answer-3").page
    answer = page.locator("#answer-3")
    assert answer.get_attribute("open") is not None
    assert answer.locator("ins").count() > 3
    assert answer.locator("del").count() > 3
    assert "lines unchanged" in answer.inner_text()
    assert page.locator("#answer-4 summary").inner_text().endswith("the answer")
    assert page.locator("h2", has_text="Answer of pass 4").count() == 1


def test_passes_in_a_row_with_one_answer_are_one_box_to_which_each_link_leads(
    tmp_path: Path, opened: Show
) -> None:
    noisy = play(tmp_path / "noisy", RUNS["a noisy judge"])
    page = opened(write_report(noisy), "#answer-2").page
    (box,) = page.locator(".answer-of").all()
    assert box.get_attribute("open") is not None
    assert box.locator("summary").inner_text().startswith("Passes 1 and 2 the same text in each")
    assert box.locator("pre").is_visible()


def test_each_pass_has_its_plan_and_what_was_changed(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    assert page.locator("article.pass:visible").count() == 1
    page.locator("#pass-slider").fill("2")
    shown = page.locator("article.pass:visible")
    assert shown.get_attribute("id") == "pass-2"
    assert shown.locator("svg.plan .node").count() == 5
    assert "REPLACE design-deployment" in shown.inner_text()
    assert shown.locator("ins").count() > 0
    assert opened(recorded, "#pass-1").page.locator("#pass-1").is_visible()


def test_an_answer_is_labelled_as_a_line_that_a_calibration_reads(
    recorded: Path, opened: Show, tmp_path: Path
) -> None:
    page = opened(recorded, "#judge-2").page
    with page.expect_download() as download:
        page.click("#judge-2 button[data-good=false]")
    saved = tmp_path / "labels.jsonl"
    download.value.save_as(saved)
    (label,) = read_labels(saved)
    folder = recorded.parent
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    history = json.loads((folder / "history.json").read_text(encoding="utf-8"))
    judged = history["passes"][2]
    assert (label.task, label.answer, label.good) == (result["task"], judged["answer"], False)
    line = json.loads(saved.read_text(encoding="utf-8"))
    assert (line["pass"], line["converged"]) == (2, False)
    assert line["scores"]["completeness"] == 0.25


def test_it_can_be_used_by_keyboard(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#call-1 > summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#call-1")).to_have_attribute("open", "")
    page.locator("#pass-slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#pass-3")).to_be_visible()


def test_the_script_and_the_program_come_to_the_same_verdict(recorded: Path, opened: Show) -> None:
    chance = random.Random(7)
    names = ("completeness", "coherence", "consistency")
    cases, expected = [], []
    for _ in range(2_000):
        scores, thresholds = (
            {name: chance.choice((0.0, 0.5, 0.89, 0.9, 0.95, 1.0)) for name in names}
            for _ in range(2)
        )
        criteria = [
            (name, chance.random() < 0.7) for name in ("cited", "short")[: chance.randrange(3)]
        ]
        kinds = chance.choices(
            ("contradiction", "omission", "hallucination", "other"), k=chance.choice((0, 0, 1, 3))
        )
        converged, codes = verdict(
            ConvergenceScores(**{f"{name}_score": value for name, value in scores.items()}),
            ConvergenceThresholds(**thresholds),
            [CriterionResult(name=name, met=met) for name, met in criteria],
            kinds,
        )
        failed = [] if converged else list(codes)
        otherwise = [code for code in failed if code not in LOW_SCORE_CODES]
        cases.append([{"scores": scores, "otherwise": otherwise}, thresholds])
        expected.append(failed)
    script = "cases => cases.map(([one, thresholds]) => failing(one, thresholds))"
    assert opened(recorded).page.evaluate(script, cases) == expected


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(recorded: Path, opened: Show, width: int, scheme: str) -> None:
    page = opened(recorded, "#call-2", width=width, scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.wait_for_timeout(100)  # each call is unfolded by its own event
    found = Axe().run(page).response["violations"]
    assert [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in found
        if each["impact"] in GRAVE or each["id"] in STRUCTURE
    ] == []


GRAVE = ("serious", "critical")
STRUCTURE = ("heading-order", "landmark-unique")
"""What a person with a screen reader finds the way by."""


@pytest.mark.parametrize("width", [360, 420])
def test_a_narrow_screen_is_not_wider_than_it_is(recorded: Path, opened: Show, width: int) -> None:
    page = opened(recorded, "#call-2", width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".top nav").evaluate("each => each.scrollWidth <= each.clientWidth")


def test_without_scripts_it_says_what_is_missing_and_shows_the_rest(
    recorded: Path, browser: Browser
) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(recorded.as_uri())
    assert "the passes before it need JavaScript" in page.locator("#plan").inner_text()
    assert page.locator("#pass-4").is_visible()
    assert page.locator("input:visible, .copy:visible").count() == 0
    page.close()


def test_criteria_and_a_judge_that_contradicts_itself_stand_by_pass_and_call(
    run: Run, opened: Show
) -> None:
    judged = dict.fromkeys(("completeness_score", "coherence_score", "consistency_score"), 0.95)
    criterion = {"name": "cited", "met": False, "reason": "No source."}
    first = {
        **judged,
        "completeness_score": 0.7,
        "explanation": "It is thin.",
        "criteria": [criterion],
    }
    met = [{**criterion, "met": True}]
    second, last = (
        {**judged, "completeness_score": score, "explanation": "It is whole.", "criteria": met}
        for score in (0.9, 1)
    )
    step = {"step_id": "write", "description": "Write it."}
    refined = [
        {
            "when": {"pass_number": number},
            "answer": {
                "actions": [
                    {
                        "action_type": "MODIFY",
                        "target_step_id": "write",
                        "justification": "Better.",
                        "new_step": {**step, "description": f"Write it, version {number}."},
                    }
                ]
            },
        }
        for number in (1, 2)
    ]
    done = {"step_output": "The guide.", "clarity_state": "CLEAR"}
    blocked = {**done, "clarity_state": "BLOCKED", "clarity_reason": "How long?"}
    calls: dict[str, object] = {
        "plan": {"answer": {"goal": "A guide", "steps": [step]}},
        "step": [{"when": {"pass_number": [1, 2]}, "answer": blocked}, {"answer": done}],
        "semantic_validation": {"answer": {"issues": []}},
        "convergence": [
            {"when": {"pass_number": 1}, "answer": first},
            {"when": {"pass_number": 2}, "answer": second},
            {"answer": last},
        ],
        "refinement": [*refined, {"answer": {"actions": []}}],
    }
    page = opened(run("write a guide", calls, "convergence.criteria.cited=It cites.")).page
    assert page.locator("#scores tbody tr").inner_text().split("\t") == [
        "cited",
        "not met",
        "met",
        "met",
    ]
    said = page.locator(".findings li", has_text="contradicts itself: completeness")
    assert "It is thin." in said.inner_text()
    assert "It is whole." in said.inner_text()
    assert (
        "the criterion cited was not met in pass 1 and met in pass 2"
        in page.locator("#end").inner_text()
    )
    said.get_by_role("link", name="its call in pass 3").click()
    page.wait_for_selector(".call[open] .k-convergence")


def test_a_command_shows_what_is_to_be_filled_in(run: Run, opened: Show) -> None:
    lacking = {"step_output": "", "clarity_state": "BLOCKED", "clarity_reason": "No figures."}
    page = opened(run("write a guide", {"step": {"answer": lacking}}, "limits.max_passes=1")).page
    command = page.locator(".command", has_text="inputs.NAME")
    assert command.locator("mark").all_inner_texts() == ["NAME", '"..."']
    command.locator("button").click()
    expect(command.locator("button")).not_to_have_text("Copy")
    assert command.locator("button").inner_text() in (
        'Copied: fill in NAME and "..."',
        "Press Ctrl-C",
    )
    assert "any name" in page.locator(".next").inner_text()


def test_the_legend_has_the_kinds_of_the_calls(recorded: Path, opened: Show) -> None:
    page = opened(recorded).page
    kinds = page.locator("#only-kind option").all_inner_texts()[1:]
    assert sorted(page.locator("#timeline .legend span").all_inner_texts()) == sorted(kinds)
    known = (
        page.locator("#words dt", has_text="kinds of calls").locator("xpath=../dd").text_content()
    )
    assert [kind for kind in kinds if kind not in (known or "")] == []


def test_names_are_code_and_commands_come_before_scores_on_a_narrow_screen(
    run: Run, opened: Show
) -> None:
    lacking = {"step_output": "", "clarity_state": "BLOCKED", "clarity_reason": "No figures."}
    plan = {
        "answer": {"goal": "A guide", "steps": [{"step_id": "write", "description": "Write it."}]}
    }
    path = run("write a guide", {"plan": plan, "step": {"answer": lacking}}, "limits.max_passes=1")
    page = opened(path, width=390).page
    assert page.locator(".findings a code", has_text="write").count() > 0
    places = [
        page.locator(f"h2:text-is('{name}')").bounding_box()
        for name in ("What to try next", "Scores at the end")
    ]
    assert [box is not None for box in places] == [True, True]
    assert places[0]["y"] < places[1]["y"]  # type: ignore[index]


def test_all_passes_are_printed(recorded: Path, opened: Show) -> None:
    page = opened(recorded, width=720).page  # A4
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == 720
    assert page.locator("article.pass:visible").count() == 5
    assert not page.locator(".top").is_visible()
    assert page.locator(".answer").evaluate("each => each.scrollHeight <= each.clientHeight + 1")
    assert page.locator("#judge-2 .said").first.is_visible()
    assert page.locator("#call-8 .field").first.is_visible()
    assert page.locator("#answer-2 pre").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.call[open]").count() == 0


SCRIPT = '<script>window.hacked = 1</script></script><img src=x onerror="window.hacked = 1">'
LINKS = "[a](javascript:window.hacked=1) [b](JaVaScRiPt:window.hacked=1) [c](data:text/html,x) <javascript:alert(1)>"
PICTURE = "![picture](http://127.0.0.1:9/pixel.png)"
HOSTILE = f'{SCRIPT} " onfocus="window.hacked=1" autofocus x=\' {LINKS} {PICTURE} \u202egnp.exe\u202c \u2028 {{{{ 7*7 }}}}'
LONG = "x" * 200_000


@pytest.fixture(scope="module")
def hostile(run: Run) -> Path:
    issue = {
        "type": "consistency",
        "severity": "CRITICAL",
        "description": HOSTILE,
        "location": {"step_id": SCRIPT},
    }
    step = {"step_id": SCRIPT, "description": HOSTILE, "dependencies": []}
    blocking = {"kind": "other", "description": HOSTILE, "blocking": True}
    changes = [
        {
            "action_type": "ADD",
            "new_step": {**step, "step_id": f"{SCRIPT}2"},
            "justification": HOSTILE,
        },
        {
            "action_type": "MODIFY",
            "target_step_id": SCRIPT,
            "new_step": step,
            "justification": HOSTILE,
        },
    ]
    convergence = {"completeness_score": 0.1, "explanation": HOSTILE, "issues": [blocking]}
    calls: dict[str, object] = {
        "plan": {
            "answer": {
                "goal": HOSTILE,
                "steps": [step],
                "questions": [{"question": HOSTILE, "assumption": HOSTILE}],
            }
        },
        "step": {
            "answer": {
                "step_output": f"{HOSTILE}\n\n{LONG}",
                "clarity_state": "CLEAR",
                "clarity_reason": HOSTILE,
            }
        },
        "semantic_validation": {"answer": {"issues": [{"issue_id": SCRIPT, **issue}]}},
        "convergence": {"answer": convergence},
        "refinement": {"answer": {"actions": changes}},
    }
    return run(f"{HOSTILE}", calls, "limits.max_passes=2")


def test_no_text_of_a_model_does_anything(hostile: Path, opened: Show) -> None:
    tab = opened(hostile, "#call-2", width=360)
    page = tab.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.locator("#pass-slider").fill("0")
    page.fill("#search", "<script>")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    assert tab.said == []
    assert tab.asked == [f"{hostile.as_uri()}#call-2"] or tab.asked == [hostile.as_uri()]
    addresses = page.evaluate(
        "[...document.querySelectorAll('a[href]')].map((each) => each.getAttribute('href'))"
    )
    assert [each for each in addresses if not each.startswith(("#", "http://127.0.0.1:9/"))] == []
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, object, style:not(head style)").count() == 0
    assert "<script>window.hacked = 1</script>" in page.locator(".answer").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def words(chance: random.Random, number: int) -> str:
    known = (
        "plan",
        "step",
        "answer",
        "review",
        "service",
        "queue",
        "index",
        "cache",
        "token",
        "storage",
        "login",
    )
    return " ".join(
        chance.choice(known) + chance.choice(("", "", ".", f"{chance.randrange(99)}\n"))
        for _ in range(number)
    )


def test_ten_passes_of_twenty_steps_are_small_and_quick(run: Run, opened: Show) -> None:
    chance = random.Random(1)
    names = [f"step-{number:02}" for number in range(20)]
    steps = [
        {"step_id": name, "description": words(chance, 14), "dependencies": []} for name in names
    ]
    calls: dict[str, list[object]] = {name: [] for name in ("step", "convergence", "refinement")}
    calls["refinement"].append({"when": {"pass_number": 0}, "answer": {"actions": []}})
    for number in range(1, 11):
        when = {"pass_number": number}
        for name in names:
            output = {"step_output": words(chance, 180), "clarity_reason": words(chance, 15)}
            state = "BLOCKED" if number < 10 else "CLEAR"
            calls["step"].append(
                {"when": {**when, "step_id": name}, "answer": {**output, "clarity_state": state}}
            )
        scores = {
            f"{name}_score": 0.5 + number / 22
            for name in ("completeness", "coherence", "consistency")
        }
        calls["convergence"].append(
            {"when": when, "answer": {**scores, "explanation": words(chance, 50), "issues": []}}
        )
        changes = [
            {
                "action_type": "MODIFY",
                "target_step_id": step["step_id"],
                "justification": words(chance, 15),
                "new_step": step,
            }
            for step in ({**step, "description": words(chance, 14)} for step in steps)
        ]
        calls["refinement"].append({"when": when, "answer": {"actions": changes}})
    review = {"answer": {"issues": []}}
    plan = {"answer": {"goal": "A design", "steps": steps}}
    limits = [
        "refinement.max_attempts_per_fragment=99",
        "refinement.max_attempts_total=99",
        "limits.max_passes=10",
    ]
    answers = {**calls, "plan": plan, "semantic_validation": review}
    path = run("design a large system", answers, *limits, "ttl.base=600", "ttl.limit=2000")
    assert path.stat().st_size <= MOST_BYTES
    page = opened(path).page
    assert page.locator("details.call").count() > 240
    assert _first_paint(opened(path)) < PAINTED_MS


def _first_paint(tab: Opened) -> float:
    script = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    return float(tab.page.evaluate(script))


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a run that was killed before its end, and of a plan alone."""
    folder = tmp_path_factory.mktemp("partial")
    for name, words in (("killed", []), ("plan", ["plan"])):
        given = ["task=plan a move", "provider=simulated", f"hydra.run.dir={folder / name}"]
        command = [sys.executable, "-m", "aeon", *words, *given]
        subprocess.run(command, capture_output=True, check=True, cwd=folder)
    for left in ("result.json", "history.json", "answer.md", "report.html"):
        (folder / "killed" / left).unlink()
    return {name: write_report(folder / name) for name in ("killed", "plan")}


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", ["killed", "plan"])
def test_axe_finds_nothing_on_the_page_of_a_run_without_a_result(
    partial: dict[str, Path], opened: Show, name: str, width: int
) -> None:
    tab = opened(partial[name], width=width)
    assert tab.said == []
    tab.page.evaluate(
        "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
    )
    tab.page.wait_for_timeout(100)  # each call is unfolded by its own event
    found = Axe().run(tab.page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [1280, 360])
def test_a_small_image_is_seen_and_each_file_has_a_link(
    run: Run, opened: Show, width: int, tmp_path: Path
) -> None:
    (tmp_path / "wide.png").write_bytes(make_png(900, 10))
    (tmp_path / "paper.pdf").write_bytes(make_pdf())
    given = [f"input_files.{name.stem}={name}" for name in tmp_path.iterdir()]
    path = run("look at them", {}, "provider.accepts=[image,pdf]", *given)
    tab = opened(path, width=width)
    image = tab.page.get_by_alt_text("The input wide")
    assert image.evaluate("each => [each.complete, each.naturalWidth]") == [True, 900]
    assert image.evaluate("each => each.getBoundingClientRect().right") <= width
    links = tab.page.locator(".input a")
    assert links.all_inner_texts() == ["Open the file", "Open the file"]
    for address in links.evaluate_all("each => each.map(link => link.getAttribute('href'))"):
        assert (path.parent / address).is_file()
    assert tab.said == []
    assert [address for address in tab.asked if not address.startswith("data:")] == [path.as_uri()]
    found = Axe().run(tab.page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in GRAVE] == []


@pytest.fixture(scope="session")
def with_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose step called tools in two rounds."""
    folder = tmp_path_factory.mktemp("rounds")
    long = ("look_up", {"word": "a long question " * 30})
    step = in_turn(calls(TEA, NOWHERE, long), calls(TEA, ORDER, ("fly", {})))
    return run_with_tools(folder, step) / "report.html"


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_rounds_of_a_step_unfold_under_it_and_fit(
    with_tools: Path, opened: Show, width: int, scheme: str
) -> None:
    tab = opened(with_tools, width=width, scheme=scheme)
    page = tab.page
    page.get_by_text("step 1 called tools").click()
    page.get_by_text("Tools called in 2 rounds").click()
    calls_shown = page.locator(".tool-call")
    assert calls_shown.count() == 6
    calls_shown.first.locator("summary").click()
    expect(calls_shown.first.locator("pre")).to_have_text("the meaning of tea")
    page.evaluate(
        "document.querySelectorAll('.tool-call').forEach((each) => { each.open = true; })"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert [each["id"] for each in Axe().run(page).response["violations"]] == []
    calls_shown.first.get_by_text("The whole call").click()
    page.wait_for_selector("#tool-1[open]")
    assert tab.said == []
