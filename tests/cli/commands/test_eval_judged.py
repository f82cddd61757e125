"""`aeon eval judge=true`: answers graded by the judge, and its rates corrected by what labels tell of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.cli.main import main
from tests.support.openai_server import Completion, Failure, OpenAIServer, Received
from tests.support.scripted_model import assessment

ARMS = ['arms.one=["mode=single"]']


def number_of(received: Received) -> int:
    return int(re.findall(r"say the number (\d+)", received.user)[0])


def judge(received: Received) -> Completion:
    """Lets right answers pass but for every tenth, and every fifth of the wrong ones."""
    number = number_of(received)
    is_right = "it is" in received.user
    passes = number % 10 != 0 if is_right else number % 5 == 0
    return Completion(assessment(0.96 if passes else 0.4))


def answer(received: Received) -> Completion:
    number = number_of(received)
    return Completion({"working": None, "answer": f"it is {number}" if number % 4 else "no idea"})


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer({"convergence": judge, "direct": answer}) as running:
        yield running


@pytest.fixture(autouse=True)
def dataset(here: Path) -> None:
    rows = ({"id": f"r{n}", "task": f"say the number {n}"} for n in range(20))
    (here / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(server: OpenAIServer, *more: str) -> int:
    given = ["eval", "dataset=tasks.jsonl", "out=out", "judge=true", *server.overrides, *ARMS]
    return main([*given, *more])


def calibrate(server: OpenAIServer) -> None:
    labels = [
        {"task": f"say the number {n}", "answer": f"{text} {n}", "good": text == "it is"}
        for text in ("it is", "no idea")
        for n in range(30)
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    more = ["repeat=1", "passes=1", "max_false=0.4"]
    assert main(["calibrate", "labels.jsonl", *server.overrides, *more]) == 0


def read_evaluation() -> dict[str, Any]:
    evaluation: dict[str, Any] = json.loads(Path("out/eval.json").read_text())
    return evaluation


CALIBRATED = ["--config-dir", "labels.calibration/conf", "convergence=calibrated"]


@pytest.mark.slow
def test_answers_without_a_target_are_graded_by_the_judge(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(server) == 0
    out = capfd.readouterr().out
    assert re.search(r"^one +15 of 20 +75\.0 %", out, re.M)
    assert "Graded by the judge; the rates are not corrected: there is no calibration" in out
    assert len(server.requests) == 40


@pytest.mark.slow
def test_its_rates_are_corrected_by_its_calibration(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    calibrate(server)
    assert run(server, *CALIBRATED) == 0
    out = capfd.readouterr().out
    assert (
        "corrected by its calibration (sensitivity 90.0 %, specificity 80.0 %, on 60 labels)" in out
    )
    (arm,) = read_evaluation()["arms"]
    assert arm["pass_rate"] == 0.75
    assert arm["corrected"]["share"] == pytest.approx((0.75 + 0.8 - 1) / (0.8 + 0.9 - 1))
    assert arm["corrected"]["interval"][0] < 0.75 < arm["corrected"]["interval"][1]
    assert "corrected" in Path("out/eval.html").read_text()


@pytest.mark.slow
def test_the_threshold_is_held_against_the_corrected_rate(server: OpenAIServer) -> None:
    calibrate(server)
    assert run(server, *CALIBRATED, "threshold=0.77") == 0
    assert run(server, "batch.changed=again", "threshold=0.77") == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["convergence.coherence=0.99"], "the thresholds are not the calibrated 0.9"),
        (
            ["convergence.criteria.x=It rhymes."],
            "the judge's criteria changed since the calibration",
        ),
    ],
)
def test_another_judge_than_the_calibrated_one_corrects_nothing(
    more: list[str], reason: str, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    calibrate(server)
    met = [{"name": "x", "met": True, "reason": ""}] if "rhymes" in more[0] else []
    server.script["convergence"] = Completion(assessment(0.96, criteria=met))
    assert run(server, *CALIBRATED, *more) == 0
    assert f"the rates are not corrected: {reason}" in capfd.readouterr().out
    assert read_evaluation()["arms"][0]["corrected"] is None


@pytest.mark.slow
def test_what_is_judged_is_not_asked_again_whatever_the_thresholds_are(
    server: OpenAIServer,
) -> None:
    assert run(server) == 0
    assert run(server) == 0
    assert len(server.requests) == 40


@pytest.mark.slow
def test_a_judgement_that_could_not_be_had_is_not_measured_and_says_why(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.script["convergence"] = lambda received: (
        Failure(400, body={"error": {"message": "no such grader"}})
        if number_of(received) == 3
        else judge(received)
    )
    assert run(server, "threshold=0.1") == 5
    assert "no such grader" in capfd.readouterr().out
    assert "no such grader" in Path("out/rows.csv").read_text()
    (arm,) = read_evaluation()["arms"]
    assert (arm["passed"], arm["not_measured"]) == (14, 1)
    server.script["convergence"] = judge
    assert run(server) == 0
    assert len(server.requests) == 41


@pytest.mark.slow
def test_a_cap_that_comes_before_the_judge_leaves_all_answers_unmeasured(
    server: OpenAIServer,
) -> None:
    assert run(server, "batch.max_llm_calls=20", "batch.parallel=1") == 5
    assert read_evaluation()["arms"][0]["passed"] == 0
    assert run(server) == 0
    assert len(server.requests) == 40


def test_a_shard_is_not_judged(server: OpenAIServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(server, "shard=1/2") == 2
    assert "judge=true judges all answers in one place" in capfd.readouterr().err
    assert not server.requests


@pytest.mark.slow
def test_the_arms_have_one_judge_that_of_the_command_line(server: OpenAIServer) -> None:
    own = 'arms.two=["mode=single","answer.judge=true","roles.grader.model=other"]'
    assert run(server, own, "roles.grader.model=common") == 0
    asked = [each.body["model"] for each in server.requests if each.name == "convergence"]
    assert asked.count("common") == 40
    assert asked.count("other") == 20


@pytest.mark.slow
def test_what_judging_costs_is_foreseen_before_the_first_call(
    server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    price = (
        "provider.prices={m: {input: 1000, output: 1000}, scripted-1: {input: 1000, output: 1000}}"
    )
    assert run(server, price, "batch.confirm_above_cost=10") == 2
    err = capfd.readouterr().err
    assert "one: 20 answers to go" in err
    assert "judge: 20 judgements to go" in err
    assert "more than batch.confirm_above_cost=10" in err
    assert not server.requests
    assert run(server, price) == 0
    err = capfd.readouterr().err
    assert "0/20 answers" in err
    assert "20/20 judgements" in err
