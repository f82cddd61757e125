"""`aeon eval`, as a person uses it: arms on a dataset, and a table that can be trusted."""

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aeon
from aeon.cli.main import main
from aeon.domain.errors import ConfigError
from tests.support.openai_server import Completion, Failure, OpenAIServer, Received
from tests.support.scripted_model import blocked, clear, plan
from tests.support.simulated_server import content_of, simulated

pytestmark = pytest.mark.usefixtures("here")

SINGLE, CORE = 'arms.one=["mode=single"]', 'arms.core=["mode=core"]'


def dataset(folder: Path, count: int = 5) -> Path:
    """Rows that ask for their own number."""
    path = folder / "tasks.jsonl"
    rows = ({"id": f"r{n}", "task": f"say the number {n}", "target": n} for n in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def number_of(received: Received) -> int:
    return int(re.findall(r"say the number (\d+)", received.user)[0])


def answer_even_numbers(received: Received) -> Completion:
    """One direct call: the numbers that are even are said, the others are not."""
    number = number_of(received)
    answer = str(number) if number % 2 == 0 else "no idea"
    return Completion({"working": None, "answer": answer})


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A model that is right about the even numbers when asked directly, and always in a step."""
    script = {
        **simulated(),
        "plan": plan("say"),
        "step": lambda received: Completion(clear(str(number_of(received)))),
        "direct": answer_even_numbers,
    }
    with OpenAIServer(script) as running:
        yield running


def run(server: OpenAIServer, *words: str) -> int:
    return main(["eval", "dataset=tasks.jsonl", "out=out", *server.overrides, *words])


def measured(folder: Path) -> dict[str, Any]:
    evaluation: dict[str, Any] = json.loads((folder / "out" / "eval.json").read_text())
    return evaluation


@pytest.mark.slow
def test_arms_are_measured_on_the_same_rows(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 12)
    assert run(server, SINGLE, CORE) == 0
    out, err = capfd.readouterr()
    assert re.search(r"^one +6 of 12 +50\.0 %", out, re.MULTILINE)
    assert re.search(r"^core +12 of 12 +100\.0 %", out, re.MULTILINE)
    assert "6 rows improved, 0 degraded, p = 0.031. This is decisive." in out
    assert "Page: out/eval.html" in err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "eval.html",
        "eval.json",
        "junit.xml",
        "rows.csv",
        "rows.jsonl",
    ]


def test_without_arms_one_call_is_measured_against_the_adaptive_mode(tmp_path: Path) -> None:
    dataset(tmp_path, 1)
    words = ["dataset=tasks.jsonl", "out=out", "provider=simulated", "allow_simulated=true"]
    assert main(["eval", *words]) == 0
    arms = {arm["name"]: arm["overrides"] for arm in measured(tmp_path)["arms"]}
    assert arms == {"single": ["mode=single"], "adaptive": ["mode=adaptive"]}


@pytest.mark.slow
def test_arms_may_come_from_a_file_of_the_group(tmp_path: Path, server: OpenAIServer) -> None:
    dataset(tmp_path, 1)
    (tmp_path / "own" / "arms").mkdir(parents=True)
    (tmp_path / "own" / "arms" / "mine.yaml").write_text('direct: ["mode=single"]\n')
    assert run(server, "--config-dir", "own", "arms=mine") == 0
    assert [arm["name"] for arm in measured(tmp_path)["arms"]] == ["direct"]


def test_answers_are_repeated_and_arms_share_none(tmp_path: Path, server: OpenAIServer) -> None:
    dataset(tmp_path, 2)
    assert run(server, SINGLE, 'arms.two=["mode=single"]', "repeat=3") == 0
    assert len(server.requests) == 2 * 2 * 3
    assert measured(tmp_path)["arms"][0]["pass_all"] == {"1": 0.5, "2": 0.5, "3": 0.5}


@pytest.mark.slow
def test_what_is_done_is_not_asked_again_and_an_arm_may_be_added(
    tmp_path: Path, server: OpenAIServer
) -> None:
    dataset(tmp_path, 4)
    assert run(server, SINGLE) == 0
    assert run(server, SINGLE) == 0
    assert len(server.requests) == 4
    assert run(server, SINGLE, 'arms.low=["mode=single","roles.worker.temperature=0.1"]') == 0
    assert len(server.requests) == 8


@pytest.mark.slow
def test_an_arm_that_is_changed_is_refused_unless_it_is_to_be_run_again(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 4)
    assert run(server, SINGLE, CORE) == 0
    changed = 'arms.one=["mode=single","roles.worker.temperature=0.1"]'
    before = len(server.requests)
    assert run(server, changed, CORE) == 2
    assert "4 rows that it has done, of the arm one, the first in" in capfd.readouterr().err
    assert run(server, changed, CORE, "batch.changed=again") == 0
    assert len(server.requests) == before + 4


def test_an_arm_or_a_repeat_that_is_gone_is_named(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 2)
    other = 'arms.two=["mode=single"]'
    assert run(server, SINGLE, other, "repeat=2") == 0
    before = (tmp_path / "out" / "rows.jsonl").read_bytes()
    assert run(server, SINGLE, "repeat=2") == 2
    assert "it has answers of the arm two, which is not given now" in capfd.readouterr().err
    assert run(server, SINGLE, other) == 2
    assert "it has more answers to a row than repeat=1" in capfd.readouterr().err
    assert (tmp_path / "out" / "rows.jsonl").read_bytes() == before


def test_equal_tokens_that_are_left_out_are_named(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 2)
    assert run(server, SINGLE, CORE, "equal=tokens") == 0
    capfd.readouterr()
    assert run(server, SINGLE, CORE) == 2
    told = capfd.readouterr().err
    assert "of the arm one" in told
    assert "(with equal=tokens, if that was given, and then the rows in the same order)" in told


def test_with_equal_tokens_no_rows_are_added(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 1)
    assert run(server, SINGLE, CORE, "equal=tokens") == 0
    asked = len(server.requests)
    dataset(tmp_path, 2)
    assert run(server, SINGLE, CORE, "equal=tokens") == 2
    assert "its samples are for 1 answer, and now there are 2" in capfd.readouterr().err
    assert len(server.requests) == asked


def test_a_target_that_is_corrected_is_graded_without_asking_again(
    tmp_path: Path, server: OpenAIServer
) -> None:
    path = dataset(tmp_path, 2)
    assert run(server, SINGLE) == 0
    path.write_text(path.read_text().replace('"target": 1', '"target": "no idea"'))
    assert run(server, SINGLE) == 0
    assert len(server.requests) == 2
    assert measured(tmp_path)["arms"][0]["passed"] == 2


@pytest.mark.slow
def test_an_arm_below_the_threshold_ends_with_4(tmp_path: Path, server: OpenAIServer) -> None:
    dataset(tmp_path, 4)
    assert run(server, CORE, SINGLE, "threshold=0.5") == 0
    assert run(server, CORE, SINGLE, "threshold=0.6") == 4
    assert run(server, CORE, SINGLE, "threshold=0.6", "arm=core") == 0


@pytest.mark.slow
def test_an_arm_that_is_worse_than_the_baseline_ends_with_4(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 12)
    assert run(server, 'arms.it=["mode=core"]', "baseline=base.json", "bless=true") == 0
    assert (tmp_path / "base.json").is_file()
    assert run(server, 'arms.it=["mode=core"]', "baseline=base.json") == 0
    worse = ['arms.it=["mode=single"]', "baseline=base.json", "batch.changed=again"]
    assert run(server, *worse) == 4
    assert "it is worse than the baseline base.json: of 12 rows" in capfd.readouterr().out


@pytest.mark.slow
def test_a_baseline_that_other_checks_decided_is_refused(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 2)
    given = ['arms.it=["mode=single"]', "baseline=base.json", "batch.changed=again"]
    check = "convergence.checks.brief={type: word-count, value: {min: %d}}"
    assert run(server, *given, check % 1, "bless=true") == 0
    assert run(server, *given, check % 1) == 0
    asked = len(server.requests)
    assert run(server, *given, check % 3) == 2
    assert "which answers of the arm it pass has changed since" in capfd.readouterr().err
    assert len(server.requests) == asked
    assert run(server, *given, check % 3, "bless=true") == 0
    assert run(server, *given, check % 3) == 0


def test_arms_whose_rows_bring_all_checks_are_compared(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the arms configure decides nothing: the checks of a row stand in its place."""
    checks = {"one": {"type": "contains", "value": "1"}}
    (tmp_path / "tasks.jsonl").write_text(
        json.dumps({"task": "say the number 1", "checks": checks}) + "\n"
    )
    configured = "convergence.checks.tea={type: contains, value: tea}"
    other = f'arms.b=["mode=single","{configured}"]'
    assert run(server, 'arms.a=["mode=single"]', other) == 0
    assert "different checks" not in capfd.readouterr().out


OPTIONAL = 'arms.b=["mode=single","convergence.checks.tea.required=false"]'
OF_A_STEP = 'arms.b=["mode=core","plan_file=plan.yaml"]'


@pytest.mark.parametrize("other", [OPTIONAL, OF_A_STEP])
def test_arms_that_different_checks_decided_are_not_compared(
    tmp_path: Path, server: OpenAIServer, other: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Eight answers of which none has the word; one arm may do without, or asks a step for it."""
    rows = ({"id": f"r{n}", "task": f"say the number {n}"} for n in range(8))
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "plan.yaml").write_text(
        "goal: tea\n"
        "steps:\n"
        "  - {id: draft, description: draft, agent: llm, checks: {tea: {}}}\n"
        "  - {id: say, description: say, agent: llm, depends_on: [draft]}\n"
    )
    check = "convergence.checks.tea={type: contains, value: tea}"
    assert run(server, check, 'arms.a=["mode=single"]', other) == 0
    assert "b and a were decided by different checks" in capfd.readouterr().out
    (comparison,) = measured(tmp_path)["comparisons"]
    assert not comparison["has_same_checks"]


def test_what_could_not_be_measured_ends_with_5_before_4(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 4)

    def fail_one(received: Received) -> Completion | Failure:
        return Failure(400) if number_of(received) == 2 else answer_even_numbers(received)

    with OpenAIServer({"direct": fail_one}) as server:
        assert run(server, SINGLE, "threshold=0.9", "baseline=b.json", "bless=true") == 5
    out, err = capfd.readouterr()
    assert "Not measured: 1 of 4 answers." in out
    assert "Not written, since not everything was measured: b.json" in err
    (arm,) = measured(tmp_path)["arms"]
    assert (arm["passed"], arm["failed"], arm["not_measured"]) == (1, 2, 1)
    assert arm["pass_rate"] == 0.25
    assert not (tmp_path / "b.json").exists()


def test_a_cap_leaves_the_rest_unmeasured_and_the_same_command_goes_on(
    tmp_path: Path, server: OpenAIServer
) -> None:
    dataset(tmp_path, 6)
    assert run(server, SINGLE, "batch.max_llm_calls=4", "batch.parallel=1") == 5
    assert measured(tmp_path)["arms"][0]["not_measured"] == 2
    assert run(server, SINGLE) == 0
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "for single, adaptive no model is called, so nothing is measured"),
        (["allow_simulated=true", "arm=x"], "arm=x: there is no such arm, but single, adaptive"),
        (["arms.a=mode=single"], "arms.a=mode=single: an arm is a list of overrides"),
        (["arms.a=[mode=single]"], "arms.a=[mode=single]: an arm is a list of overrides"),
        (["arms.a=text"], "arms.a=text: an arm is a list of overrides, each a quoted text"),
        (['arms.a=["quick"]'], "arms.a: quick: this is not an override"),
        (['arms.a=["mode=nothing"]'], "arms.a: "),
        (['arms.a=["store=cache"]'], "arms.a: an arm may not set store: arms share no answers"),
        (['arms.a=["batch.parallel=2"]'], "arms.a: an arm may not set batch.parallel"),
        (["store=cache"], "store=cache: arms and repeats share no answers"),
        (["repeat=0"], "repeat=0: a number from 1 to 1,000"),
        (["threshold=2"], "threshold=2: must be a number from 0 to 1"),
        (["bless=true"], "bless=true: which file?"),
        (
            ["allow_simulated=true", "baseline=tasks.jsonl", "bless=true"],
            "baseline=tasks.jsonl: this is not an eval.json",
        ),
        (["allow_simulated=true", "baseline=no.json"], "baseline=no.json: there is no such file"),
        (["threshhold=0.9"], "  threshhold: unknown key; did you mean threshold=?\n"),
        (["baselin=b.json"], "  baselin: unknown key; did you mean baseline=?\n"),
        (["repeats=3"], "  repeats: unknown key; did you mean repeat=?\n"),
        (["color=red"], "  color: unknown key; allowed are task, "),
        (["sweep.parallel=2"], "only a sweep (-m) reads sweep.parallel"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_asked(
    tmp_path: Path, words: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 1)
    given = ["dataset=tasks.jsonl", "out=out", "provider=simulated"]
    assert main(["eval", *given, *words]) == 2
    assert message in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dataset_without_targets_and_checks_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"task": "say 1"}\n')
    words = ["dataset=tasks.jsonl", "out=out", "provider=simulated", "allow_simulated=true"]
    assert main(["eval", *words]) == 2
    assert "no row has a target or checks" in capfd.readouterr().err


@pytest.mark.parametrize("key", ["mode", "mode.kind"])
def test_a_row_that_sets_what_an_arm_sets_is_refused(
    tmp_path: Path, server: OpenAIServer, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both arms would answer it alike, by the row's mode."""
    rows = [
        {"task": "say the number 1", "target": 1, "overrides": {"ttl.base": 30}},
        {"task": "say the number 2", "target": 2, "overrides": {key: "single"}},
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(server, SINGLE, CORE) == 2
    told = capfd.readouterr().err
    assert f"tasks.jsonl: line 2: overrides: the row sets {key}, and the arm core sets mode" in told
    assert not server.requests
    assert not (tmp_path / "out").exists()
    assert run(server, 'arms.plain=["roles.worker.temperature=0.1"]', "mode=core") == 0


def test_money_is_asked_for_as_by_a_batch(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 40)
    prices = "provider.prices={m: {input: 9, output: 9}}"
    assert run(server, SINGLE, CORE, prices, "batch.confirm_above_cost=0.1") == 2
    assert "will cost at least" in capfd.readouterr().err
    assert not server.requests


def test_rows_that_cannot_be_run_count_for_no_call(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    path = dataset(tmp_path, 2)
    path.write_text(path.read_text() + "no JSON\n" * 3)
    assert run(server, SINGLE) == 5
    told = capfd.readouterr().err
    assert "one: 2 answers to go: 1 call each, in all at least 2 calls" in told
    assert "3 rows cannot be run." in told


def test_logs_of_inspect_need_its_extra_before_anything_is_asked(
    tmp_path: Path,
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    dataset(tmp_path, 1)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    assert run(server, SINGLE, "format=inspect") == 2
    assert 'pip install "aeon-engine[inspect]"' in capfd.readouterr().err
    assert not server.requests
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    with pytest.raises(ConfigError, match="inspect_solver needs an extra"):
        aeon.inspect_solver(["mode=single"])


@pytest.mark.parametrize("words", [["task=x"], ["batch", "dataset=tasks.jsonl", "out=out"]])
def test_the_arms_of_a_measurement_are_refused_by_others(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "provider=simulated", SINGLE]) == 2
    assert "only `aeon eval` reads arms.one" in capfd.readouterr().err


def test_the_columns_of_a_table_may_have_other_names(tmp_path: Path, server: OpenAIServer) -> None:
    (tmp_path / "quiz.csv").write_text("question,right\nsay the number 4,4\nsay the number 5,5\n")
    columns = ["batch.columns.task=question", "batch.columns.target=right"]
    words = ["dataset=quiz.csv", "out=out", *server.overrides, *columns, SINGLE]
    assert main(["eval", *words]) == 0
    assert measured(tmp_path)["arms"][0]["passed"] == 1


@pytest.mark.parametrize("more", [{}, {"target": None}, {"target": ""}])
def test_expected_output_is_a_target_too(
    tmp_path: Path, server: OpenAIServer, more: dict[str, Any]
) -> None:
    row = {"task": "say the number 4", "expected_output": 4, **more}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    assert run(server, SINGLE) == 0
    assert measured(tmp_path)["arms"][0]["passed"] == 1


@pytest.mark.slow
def test_an_interruption_shows_what_was_measured_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    dataset(tmp_path, 8)
    with OpenAIServer(simulated(delay=0.1)) as server:
        words = ["eval", "dataset=tasks.jsonl", "out=out", *server.overrides, CORE]
        command = [sys.executable, "-m", "aeon", *words, "batch.parallel=2"]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        until = time.monotonic() + 60
        while len(server.requests) < 20 and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Not measured: " in told
        assert 0 < measured(tmp_path)["arms"][0]["not_measured"] < 8
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        calls = measured(tmp_path)["arms"][0]["calls"]
        assert len(server.requests) == calls


def kill_after(requests: int, server: OpenAIServer, command: list[str], folder: Path) -> None:
    """Kill a command once the server has been asked so often."""
    with subprocess.Popen(command, cwd=folder) as process:
        until = time.monotonic() + 60
        while (
            len(server.requests) < requests and process.poll() is None and time.monotonic() < until
        ):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_measurement_goes_on_without_asking_again_what_was_answered(
    tmp_path: Path,
) -> None:
    dataset(tmp_path, 6)
    parallel = 4
    with OpenAIServer(simulated(delay=0.05)) as server:
        words = ["eval", "dataset=tasks.jsonl", "out=out", *server.overrides, CORE]
        words += ['arms.full=["mode=adaptive"]', "repeat=2", f"batch.parallel={parallel}"]
        command = [sys.executable, "-m", "aeon", *words, "execution.max_parallel=1"]
        for _ in range(4):
            enough = len(server.requests) + random.randint(5, 40)
            kill_after(enough, server, command, tmp_path)
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        asked = Counter(map(content_of, server.requests))
        calls = sum(arm["calls"] for arm in measured(tmp_path)["arms"])
    # Only what was under way when a kill came is asked again: of each of four kills, one call a row.
    assert sum(asked.values()) - calls <= 4 * parallel
    lines = (tmp_path / "out" / "rows.jsonl").read_text().splitlines()
    assert len(lines) == 6 * 2 * 2
    assert measured(tmp_path)["arms"][0]["not_measured"] == 0


@pytest.mark.slow
def test_with_equal_tokens_cheap_arms_take_samples_and_pay_no_answer_twice(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 4)
    assert run(server, SINGLE, CORE, 'arms.full=["mode=adaptive"]', "equal=tokens") == 0
    arms = measured(tmp_path)["arms"]
    spent = [arm["tokens"] for arm in arms]
    assert max(spent) - min(spent) <= 0.02 * max(spent)
    assert len(server.requests) == sum(arm["calls"] for arm in arms)
    assert "equal=tokens: all arms spent the same, within 0.0 %" in capfd.readouterr().out
    assert not (tmp_path / "out" / "rows.jsonl.running").exists()
    requests = len(server.requests)
    assert run(server, SINGLE, CORE, 'arms.full=["mode=adaptive"]', "equal=tokens") == 0
    assert len(server.requests) == requests


@pytest.mark.slow
def test_a_killed_measurement_with_equal_tokens_goes_on_without_asking_again(
    tmp_path: Path, server: OpenAIServer
) -> None:
    dataset(tmp_path, 6)
    parallel = 2
    words = ["eval", "dataset=tasks.jsonl", "out=out", *server.overrides, SINGLE]
    words += ['arms.full=["mode=adaptive"]', "equal=tokens", f"batch.parallel={parallel}"]
    command = [sys.executable, "-m", "aeon", *words, "execution.max_parallel=1"]
    # 36 calls in the first round, 30 more in the second.
    for enough in (20, 40, 50):
        kill_after(enough, server, command, tmp_path)
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    single, full = measured(tmp_path)["arms"]
    assert single["tokens"] == full["tokens"]
    assert len(server.requests) - single["calls"] - full["calls"] <= 3 * parallel


@pytest.mark.slow
def test_shards_measure_their_own_rows_and_are_merged(tmp_path: Path, server: OpenAIServer) -> None:
    dataset(tmp_path, 5)
    for number, rows in ((1, ["r0", "r2", "r4"]), (2, ["r1", "r3"])):
        words = [*server.overrides, SINGLE, CORE, f"shard={number}/2", f"out=part{number}"]
        assert main(["eval", "dataset=tasks.jsonl", *words]) == 0
        evaluation = json.loads((tmp_path / f"part{number}" / "eval.json").read_text())
        assert [row["id"] for row in evaluation["rows"]] == rows
    requests = len(server.requests)
    (tmp_path / "out").mkdir()
    parts = ["part1/rows.jsonl", "part2/rows.jsonl"]
    assert main(["batch", "merge", "out=out/rows.jsonl", *parts]) == 0
    assert run(server, SINGLE, CORE) == 0
    assert len(server.requests) == requests
    assert [arm["passed"] for arm in measured(tmp_path)["arms"]] == [3, 5]


@pytest.mark.slow
def test_a_judge_that_is_down_leaves_answers_unmeasured(tmp_path: Path) -> None:
    dataset(tmp_path, 2)
    script = {
        **simulated(),
        "plan": plan("say"),
        "step": lambda received: Completion(clear(str(number_of(received)))),
        "convergence": Failure(400),
    }
    with OpenAIServer(script) as server:
        rubric = "convergence.checks.kind={type: llm-rubric, value: it is kind}"
        assert run(server, 'arms.full=["mode=adaptive"]', rubric) == 5
    (arm,) = measured(tmp_path)["arms"]
    assert (arm["passed"], arm["not_measured"]) == (0, 2)


def test_checks_of_rows_and_of_the_configuration_are_graded(
    tmp_path: Path, server: OpenAIServer
) -> None:
    checks: list[dict[str, Any]] = [
        {"brief": {"type": "word-count", "value": {"max": 1}}},
        {"digits": {"type": "regex", "value": "^[0-9]+$"}, "named": {}},
    ]
    rows = [
        {"id": f"r{n}", "task": f"say the number {n}", "checks": checks[n % 2]} for n in range(4)
    ]
    Path("tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = "convergence.checks.named={type: not-contains, value: idea, required: false}"
    assert run(server, SINGLE, CORE, named) == 0
    single, core = measured(tmp_path)["arms"]
    assert (single["passed"], core["passed"]) == (2, 4)
    assert (single["mean_score"], core["mean_score"]) == (0.5, 1.0)


def test_a_model_whose_answers_are_of_no_use_has_failed_and_is_not_asked_again(
    tmp_path: Path,
) -> None:
    dataset(tmp_path, 2)
    with OpenAIServer({"direct": Completion("no JSON"), "repair": Completion("none")}) as server:
        assert run(server, SINGLE) == 0
        requests = len(server.requests)
        assert run(server, SINGLE) == 0
        assert len(server.requests) == requests
    (arm,) = measured(tmp_path)["arms"]
    assert (arm["failed"], arm["not_measured"]) == (2, 0)


def test_a_server_that_reports_no_usage_leaves_the_tokens_unknown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 1)
    answer = Completion({"working": None, "answer": "0"}, usage=None)
    with OpenAIServer({"direct": answer}) as server:
        assert run(server, SINGLE, 'arms.two=["mode=single"]', "equal=tokens") == 0
    out, _ = capfd.readouterr()
    assert re.search(r"^one .* unknown +1 +unknown", out, re.MULTILINE)
    assert "equal=tokens: nothing was made equal, since the tokens of one, two are unknown" in out
    assert [arm["unreported"] for arm in measured(tmp_path)["arms"]] == [1, 1]


def test_the_progress_counts_answers_to_the_last_one(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 3)
    two = 'arms.two=["mode=single"]'
    assert run(server, SINGLE, two) == 0
    told = capfd.readouterr().err
    assert "one: 3 answers to go: 1 call each, in all at least 3 calls" in told
    assert "\n0/6 answers, 6 under way, 0 calls\n" in told
    (last,) = (line for line in told.splitlines() if line.startswith("6/6 answers"))
    assert last.startswith("6/6 answers, 6 calls, 0 failed, ")
    assert not re.search(r"\brows\b", told)
    assert run(server, SINGLE, two) == 0
    told = capfd.readouterr().err
    assert "6 answers done before." in told
    assert "6/6" not in told


def test_a_run_without_an_answer_fails_even_where_checks_only_forbid(tmp_path: Path) -> None:
    checks = {"brief": {"type": "word-count", "value": {"max": 80}}}
    row = {"id": "kind", "task": "say something kind", "checks": checks}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    script = {
        **simulated(),
        "direct": Completion("no JSON"),
        "repair": Completion("none"),
        "plan": plan("say"),
        "step": Completion(blocked()),
    }
    with OpenAIServer(script) as server:
        assert run(server, SINGLE, CORE) == 0
    assert [arm["failed"] for arm in measured(tmp_path)["arms"]] == [1, 1]
    reason = "no usable answer came: the run ended step_failed"
    for name in ("rows.csv", "junit.xml"):
        assert (tmp_path / "out" / name).read_text().count(reason) >= 2


def test_a_check_that_could_not_be_had_is_run_again_and_nothing_else(
    tmp_path: Path, server: OpenAIServer
) -> None:
    dataset(tmp_path, 2)
    (tmp_path / "flaky.py").write_text(
        "from pathlib import Path\n"
        "def check(answer, context):\n"
        "    if not Path('works').exists():\n"
        "        raise RuntimeError('not today')\n"
        "    return True\n"
    )
    flaky = "convergence.checks.flaky={type: python, value: 'flaky:check'}"
    assert run(server, CORE, flaky) == 5
    requests = len(server.requests)
    (tmp_path / "works").touch()
    assert run(server, CORE, flaky) == 0
    assert len(server.requests) == requests
    assert measured(tmp_path)["arms"][0]["passed"] == 2


@pytest.mark.slow
def test_equal_tokens_wait_for_what_is_not_measured_and_then_pay_only_for_that(
    tmp_path: Path,
) -> None:
    dataset(tmp_path, 4)
    is_down = True

    def answer(received: Received) -> Completion | Failure:
        fails = is_down and number_of(received) == 3
        return Failure(400) if fails else answer_even_numbers(received)

    script = {
        **simulated(),
        "plan": plan("say"),
        "step": lambda received: Completion(clear(str(number_of(received)))),
        "direct": answer,
    }
    with OpenAIServer(script) as server:
        assert run(server, SINGLE, CORE, "equal=tokens") == 5
        refused = len(server.requests) - sum(arm["calls"] for arm in measured(tmp_path)["arms"])
        is_down = False
        assert run(server, SINGLE, CORE, "equal=tokens") == 0
        single, core = measured(tmp_path)["arms"]
        assert single["tokens"] == core["tokens"]
        assert len(server.requests) <= single["calls"] + core["calls"] + max(refused, 1)
    assert not (tmp_path / "out" / "rows.jsonl.running").exists()


def test_arms_may_each_name_a_provider(
    tmp_path: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(tmp_path, 2)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    one, two = (
        f'arms.{model}=["mode=single","provider=openai","provider.base_url={server.url}",'
        f'"provider.model={model}"]'
        for model in ("small", "large")
    )
    assert main(["eval", "dataset=tasks.jsonl", "out=out", one, two]) == 0
    assert {request.body["model"] for request in server.requests} == {"small", "large"}
    assert [arm["passed"] for arm in measured(tmp_path)["arms"]] == [1, 1]


def test_a_cap_on_money_needs_the_prices_of_every_arm(
    tmp_path: Path, server: OpenAIServer, capfd: pytest.CaptureFixture[str]
) -> None:
    dataset(tmp_path, 2)
    other = 'arms.other=["mode=single","provider.model=unpriced"]'
    prices = "provider.prices={m: {input: 9, output: 9}}"
    assert run(server, SINGLE, other, prices, "batch.max_cost=1") == 2
    assert "arms.other: " in capfd.readouterr().err
    assert not server.requests
