"""`aeon calibrate`, as a person uses it: labels in, how right the judge is, and a threshold that keeps a promise."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon.cli.main import main
from aeon.config.folder_content import read_content
from aeon.config.load import compose
from aeon.config.trusted_folders import is_trusted, remember
from tests.cli.commands.test_eval import kill_after
from tests.support.openai_server import Completion, Failure, OpenAIServer, Received
from tests.support.scripted_model import assessment

pytestmark = pytest.mark.usefixtures("here")

ENOUGH = ["max_false=0.3", "passes=1", "repeat=1"]
"""What thirteen good answers that the judge rightly lets pass are enough for."""


def write_labels(folder: Path, good: int = 14, bad: int = 8) -> Path:
    path = folder / "labels.jsonl"
    labels = [
        {"task": f"say the number {n}", "answer": f"{kind} {n}", "good": kind == "right"}
        for kind, count in (("right", good), ("wrong", bad))
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(label) + "\n" for label in labels))
    return path


def is_right(received: Received) -> bool:
    return re.search("right [0-9]+", received.user) is not None


def judge(received: Received) -> Completion:
    """What is right is nearly perfect, what is wrong is not."""
    return Completion(assessment(0.96 if is_right(received) else 0.4))


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer({"convergence": judge}) as running:
        yield running


def run(server: OpenAIServer, *words: str) -> int:
    return main(["calibrate", "labels.jsonl", *server.overrides, *words])


def read_report(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(
        (folder / "labels.calibration/calibration.json").read_text()
    )
    return report


def test_a_judge_that_is_right_is_promised_a_threshold(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    assert run(server, *ENOUGH) == 0
    out, err = capfd.readouterr()
    assert "22 answers to 14 tasks, 14 good and 8 bad, each judged once by scripted-1." in out
    assert re.search(r"^sensitivity: good answers let pass +100\.0 %  78\.5 to 100\.0", out, re.M)
    assert "of the runs called converged at most 30 % are wrong, over 1 pass" in out
    assert "Written: labels.calibration/conf/convergence/calibrated.yaml" in err
    assert len(server.requests) == 22


@pytest.mark.slow
def test_the_option_that_is_written_can_be_run_with_and_says_what_it_rests_on(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path)
    criterion = "convergence.criteria.short=It is short."
    met = [{"name": "short", "met": True, "reason": ""}]
    server.script["convergence"] = lambda received: Completion(
        assessment(0.96 if is_right(received) else 0.4, criteria=met)
    )
    assert run(server, *ENOUGH, criterion, "convergence.patience=2") == 0
    settings = compose(["convergence=calibrated"], tmp_path / "labels.calibration/conf").convergence
    assert (settings.completeness, settings.coherence, settings.consistency) == (0.9, 0.9, 0.9)
    assert settings.criteria == {"short": "It is short."}
    assert settings.patience == 2
    assert settings.when == "plan_done"
    found = settings.calibration
    assert found is not None
    assert (found.models, found.good, found.bad, found.passes) == (("scripted-1",), 14, 8, 1)
    assert sorted(found.hashes) == ["criteria", "parameters", "schema", "templates"]
    assert found.at_most <= found.max_false == 0.3


@pytest.mark.slow
def test_each_answer_is_judged_so_often_and_the_spread_is_shown(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    waver = iter([0.95, 0.97] * 100)
    server.script["convergence"] = lambda received: Completion(
        assessment(next(waver) if is_right(received) else 0.4)
    )
    assert run(server, "max_false=0.3", "passes=1", "repeat=2") == 0
    assert len(server.requests) == 44
    out = capfd.readouterr().out
    assert re.search(r"^spread of completeness in one answer +0\.0[01]\d  0\.0", out, re.M)
    assert re.search(r"^spread of coherence in one answer +0\.000", out, re.M)
    assert read_report(tmp_path)["flips"] is not None


def test_too_few_labels_promise_nothing_and_it_is_said_before_the_first_call(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    assert run(server, "repeat=1") == 4
    out, err = capfd.readouterr()
    assert err.startswith("With 14 good answers nothing can be promised")
    assert "over 3 passes takes 121" in err
    assert "No threshold is promised. At its best threshold" in out
    assert "none of them wrong" in out
    assert "They are enough for max_false=0.5" not in out
    assert not (tmp_path / "labels.calibration/conf").exists()


@pytest.mark.slow
def test_a_judge_at_chance_is_promised_nothing(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path, good=40, bad=3)
    server.script["convergence"] = Completion(assessment(1.0))
    assert run(server, *ENOUGH) == 4
    assert "it is no better than chance on these labels" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        (5, 0, "all 5 answers are labelled good"),
        (0, 5, "all 5 answers are labelled bad"),
        (0, 0, "there are no labels"),
    ],
)
def test_labels_of_one_kind_are_refused_before_anything_is_paid(
    good: int,
    bad: int,
    words: str,
    tmp_path: Path,
    server: OpenAIServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    write_labels(tmp_path, good, bad)
    assert run(server) == 2
    assert words in capfd.readouterr().err
    assert not server.requests


def test_bad_lines_are_all_named_with_their_numbers(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [
        '{"task": "a", "answer": "b", "good": true}',
        "no json",
        '{"task": "a", "answer": "c"}',
        '{"task": "a", "answer": "d", "good": "yes"}',
        "",
        '{"task": " ", "answer": "d", "good": false}',
        '["a"]',
        '{"task": "a", "answer": "b", "good": false}',
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    assert run(server) == 2
    err = capfd.readouterr().err
    for words in (
        "line 2: not JSON",
        "line 3: `good` is missing",
        "line 4: good: must be a valid boolean",
        "line 6: task: is blank",
        "line 7: a label is a JSON object, not list",
        "line 8: the same answer is called good in line 1",
    ):
        assert words in err
    assert not server.requests


def test_other_fields_of_a_label_are_left_alone_and_its_inputs_are_shown_to_the_judge(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path, 1, 1)
    with (tmp_path / "labels.jsonl").open("a") as file:
        label = {"task": "t", "answer": "right 9", "good": True, "inputs": {"notes": "the moon"}}
        file.write(json.dumps({**label, "run": "abc", "pass": 2}) + "\n")
    assert run(server, "repeat=1") == 4
    assert sum("the moon" in received.user for received in server.requests) == 1


def test_what_is_judged_is_not_asked_again_and_labels_may_be_added(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path, 3, 2)
    assert run(server, "repeat=1") == 4
    assert run(server, "repeat=1") == 4
    assert len(server.requests) == 5
    write_labels(tmp_path, 4, 3)
    assert run(server, "repeat=2") == 4
    assert len(server.requests) == 14


def test_a_label_that_is_corrected_is_not_judged_again(
    tmp_path: Path, server: OpenAIServer
) -> None:
    path = write_labels(tmp_path, 3, 3)
    assert run(server, "repeat=1") == 4
    path.write_text(path.read_text().replace("false", "true", 1))
    assert run(server, "repeat=1") == 4
    assert len(server.requests) == 6
    assert (read_report(tmp_path)["good"], read_report(tmp_path)["bad"]) == (4, 2)


@pytest.mark.slow
def test_labels_may_be_taken_away_and_judgements_of_them_are_kept(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    assert run(server, "max_false=0.3", "passes=1", "repeat=2") == 0
    write_labels(tmp_path, bad=7)
    capfd.readouterr()
    assert run(server, *ENOUGH) == 0
    assert "14 good and 7 bad, each judged once" in capfd.readouterr().out
    write_labels(tmp_path)
    assert run(server, "max_false=0.3", "passes=1", "repeat=2") == 0
    assert len(server.requests) == 44


@pytest.mark.slow
def test_models_that_judged_none_of_the_labels_are_not_those_of_the_calibration(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path, bad=9)
    last = "wrong 8"
    server.script["convergence"] = lambda received: replace(
        judge(received), model="older-1" if last in received.user else "scripted-1"
    )
    assert run(server, *ENOUGH) == 0
    assert read_report(tmp_path)["models"] == ["older-1", "scripted-1"]
    write_labels(tmp_path, bad=8)
    assert run(server, *ENOUGH) == 0
    assert read_report(tmp_path)["models"] == ["scripted-1"]


@pytest.mark.slow
def test_a_judgement_that_could_not_be_had_ends_with_5_and_promises_nothing(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    server.script["convergence"] = lambda received: (
        Failure(400) if "right 3" in received.user else judge(received)
    )
    assert run(server, *ENOUGH) == 5
    assert "1 judgement failed" in capfd.readouterr().out
    assert not (tmp_path / "labels.calibration/conf").exists()
    server.script["convergence"] = judge
    before = len(server.requests)
    assert run(server, *ENOUGH) == 0
    assert len(server.requests) == before + 1


@pytest.mark.slow
def test_a_judge_that_is_down_is_named_with_its_error(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path, 1, 1)
    server.script["convergence"] = Failure(400, body={"error": {"message": "no such grader"}})
    assert run(server, "repeat=1") == 5
    err = capfd.readouterr().err
    assert "Too few answers were judged for a result" in err
    assert "The first judgement that failed: Pass 1 lacks" in err
    assert "no such grader" in err


@pytest.mark.slow
def test_a_cap_leaves_the_rest_unmeasured_and_the_same_command_goes_on(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path)
    assert run(server, *ENOUGH, "batch.max_llm_calls=4", "batch.parallel=1") == 5
    assert run(server, *ENOUGH) == 0
    assert len(server.requests) == 22


def test_the_simulated_provider_is_refused_unless_it_is_allowed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path, 2, 2)
    words = ["calibrate", "labels.jsonl", "provider=simulated"]
    assert main(words) == 2
    assert "allow_simulated=true is for trying this out" in capfd.readouterr().err
    assert main([*words, "allow_simulated=true"]) == 4
    assert "SIMULATED: no model was called" in capfd.readouterr().out


def test_what_would_cost_more_than_may_be_spent_without_a_question_is_refused(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    price = "provider.prices={m: {input: 100000, output: 100000}}"
    assert run(server, price, "batch.confirm_above_cost=1") == 2
    assert "more than batch.confirm_above_cost=1" in capfd.readouterr().err
    assert not server.requests


@pytest.mark.slow
def test_the_option_goes_into_the_persons_own_configuration(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    (tmp_path / "own/limits").mkdir(parents=True)
    (tmp_path / "own/limits/mine.yaml").write_text("max_passes: 3\n")
    assert run(server, "--config-dir", "own", *ENOUGH) == 0
    assert "Written: own/convergence/calibrated.yaml" in capfd.readouterr().err
    written = yaml.safe_load((tmp_path / "own/convergence/calibrated.yaml").read_text())
    assert written["completeness"] == 0.9


@pytest.mark.slow
def test_an_option_that_a_person_wrote_is_not_replaced_and_one_of_an_earlier_calibration_is(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    option = tmp_path / "own/convergence/calibrated.yaml"
    option.parent.mkdir(parents=True)
    option.write_text("completeness: 0.7\n")
    option.with_name("mine.yaml").write_text("completeness: 0.8\n")
    assert run(server, "--config-dir", "own", *ENOUGH) == 2
    assert "`aeon calibrate` did not write it" in capfd.readouterr().err
    assert not server.requests
    option.unlink()
    assert run(server, "--config-dir", "own", *ENOUGH) == 0
    first = option.read_bytes()
    again = [*ENOUGH[1:], "max_false=0.4", "convergence=calibrated"]
    assert run(server, "--config-dir", "own", *again) == 0
    assert option.read_bytes() != first
    assert len(server.requests) == 22


@pytest.mark.slow
def test_an_option_that_the_labels_no_longer_confirm_is_named(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    assert run(server, *ENOUGH) == 0
    path = write_labels(tmp_path)
    bad = [{"task": f"t{n}", "answer": f"right {n}, and so on", "good": False} for n in range(9)]
    with path.open("a") as file:
        file.writelines(json.dumps(label) + "\n" for label in bad)
    capfd.readouterr()
    assert run(server, *ENOUGH) == 4
    err = capfd.readouterr().err
    assert (
        "labels.calibration/conf/convergence/calibrated.yaml comes from an earlier calibration"
        in err
    )
    assert (tmp_path / "labels.calibration/conf/convergence/calibrated.yaml").exists()


@pytest.mark.slow
def test_a_project_that_was_trusted_is_trusted_with_the_option_in_it(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path)
    (tmp_path / "conf/limits").mkdir(parents=True)
    (tmp_path / "conf/limits/mine.yaml").write_text("max_passes: 3\n")
    (tmp_path / "aeon.yaml").write_text("config_dir: conf\n")
    remember(read_content(tmp_path))
    assert run(server, *ENOUGH) == 0
    assert (tmp_path / "conf/convergence/calibrated.yaml").is_file()
    assert is_trusted(read_content(tmp_path))


@pytest.mark.slow
def test_a_project_that_changed_meanwhile_is_not_trusted_again(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    write_labels(tmp_path)
    (tmp_path / "conf/limits").mkdir(parents=True)
    mine = tmp_path / "conf/limits/mine.yaml"
    mine.write_text("max_passes: 3\n")
    (tmp_path / "aeon.yaml").write_text("config_dir: conf\n")
    remember(read_content(tmp_path))

    def change(received: Received) -> Completion:
        mine.write_text("max_passes: 9\n")
        return judge(received)

    server.script["convergence"] = change
    assert run(server, *ENOUGH) == 0
    assert "shows what has changed, and asks, before the next run" in capfd.readouterr().err
    assert not is_trusted(read_content(tmp_path))


@pytest.mark.slow
def test_a_killed_calibration_goes_on_without_asking_again(tmp_path: Path) -> None:
    write_labels(tmp_path)
    parallel = 2
    with OpenAIServer({"convergence": judge}) as server:
        words = ["calibrate", "labels.jsonl", *server.overrides, *ENOUGH]
        command = [sys.executable, "-m", "aeon", *words, f"batch.parallel={parallel}"]
        for enough in (5, 12):
            kill_after(enough, server, command, tmp_path)
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        assert len(server.requests) - 22 <= 2 * parallel
    assert read_report(tmp_path)["not_measured"] == 0


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_paid(tmp_path: Path) -> None:
    write_labels(tmp_path)
    slow = lambda received: replace(judge(received), delay=0.2)  # noqa: E731
    with OpenAIServer({"convergence": slow}) as server:
        words = ["calibrate", "labels.jsonl", *server.overrides, *ENOUGH]
        command = [sys.executable, "-m", "aeon", *words, "batch.parallel=2"]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
            while len(server.requests) < 6:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        asked = len(server.requests)
        assert asked < 22
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        assert len(server.requests) == 22
    assert not (tmp_path / "labels.calibration/judgements.jsonl.running").exists()


def test_what_holds_an_answer_back_besides_its_scores_holds_at_every_threshold(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path, good=3, bad=2)
    blocking = [{"kind": "other", "description": "It is rude.", "blocking": True}]
    server.script["convergence"] = Completion(assessment(1.0, issues=blocking))
    assert run(server, "repeat=1") == 4
    assert [one["passed"] for one in read_report(tmp_path)["tried"]] == [0] * 8


def test_a_check_that_fails_holds_an_answer_back_and_a_criterion_that_is_not_met(
    tmp_path: Path, server: OpenAIServer
) -> None:
    write_labels(tmp_path, good=3, bad=2)
    check = "convergence.checks.right={type: contains, value: right}"
    assert run(server, "repeat=1", check, "out=checked") == 4
    report = json.loads((tmp_path / "checked/calibration.json").read_text())
    assert report["tried"][-1]["rates"]["specificity"]["share"] == 1.0
    unmet = [{"name": "short", "met": False, "reason": ""}]
    server.script["convergence"] = Completion(assessment(1.0, criteria=unmet))
    criterion = "convergence.criteria.short=It is short."
    assert run(server, "repeat=1", criterion) == 4
    assert [one["passed"] for one in read_report(tmp_path)["tried"]] == [0] * 8
