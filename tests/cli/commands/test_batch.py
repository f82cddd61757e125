"""`aeon batch`, as a person uses it: every row once, whatever happens on the way."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from aeon.batch.dataset import digest
from aeon.cli.commands import batch_progress
from aeon.cli.main import main
from aeon.cli.progress.plain import Display
from tests.support.openai_server import Answer, Failure, OpenAIServer, Received
from tests.support.simulated_server import content_of, simulated

pytestmark = pytest.mark.usefixtures("here")


def dataset(folder: Path, count: int = 5, name: str = "tasks.jsonl") -> Path:
    path = folder / name
    path.write_text(
        "".join(
            json.dumps({"id": f"r{n}", "task": f"name {n} rivers"}) + "\n" for n in range(count)
        )
    )
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def run(*arguments: str | Path) -> int:
    return main(["batch", *map(str, arguments), "provider=simulated"])


@pytest.mark.slow
def test_each_row_has_a_line_with_what_its_run_gave(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert run(f"dataset={dataset(tmp_path)}", f"out={out}") == 0
    found = rows(out)
    assert sorted(row["id"] for row in found) == ["r0", "r1", "r2", "r3", "r4"]
    for row in found:
        assert (row["ended"], row["converged"], row["of"], row["synthetic"]) == (
            "converged",
            True,
            5,
            True,
        )
        assert row["answer"]
        assert row["calls"] > 0
        assert row["scores"]["completeness_score"] >= 0.9
    told = capfd.readouterr().err
    assert "\n0/5 rows, 5 under way, 0 calls\n" in told  # before the first row has ended
    assert "5 of 5 rows: 5 converged." in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out.jsonl",
        "out.jsonl.html",
        "tasks.jsonl",
    ]


def test_a_batch_tells_how_far_it_is_while_no_row_ends(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_progress, "_SECONDS_BETWEEN", 0.01)
    told = threading.Event()
    printed: list[list[str]] = []

    def write(display: Display, lines: list[str]) -> None:
        printed.append(lines)
        if len(printed) >= 4:
            told.set()

    monkeypatch.setattr(Display, "print", write)

    write_answer = simulated()["direct"]

    def answer(request: Received) -> Answer:
        assert told.wait(30)
        return write_answer(request)

    with OpenAIServer({"direct": answer}) as server:
        given = (f"dataset={dataset(tmp_path, 1)}", f"out={tmp_path / 'out.jsonl'}", "mode=single")
        assert main(["batch", *given, *server.overrides]) == 0
    assert "0/1 rows" in printed[3][0]


@pytest.mark.slow
def test_rows_that_are_done_are_not_run_again_and_another_configuration_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out, given = tmp_path / "out.jsonl", dataset(tmp_path, 3)
    run(f"dataset={given}", f"out={out}")
    before = out.read_bytes()
    assert run(f"dataset={given}", f"out={out}") == 0
    assert out.read_bytes() == before
    assert "3 rows done before" in capfd.readouterr().err
    assert run(f"dataset={given}", f"out={out}", "convergence.completeness=0.7") == 2
    assert "another configuration: convergence.completeness\n" in capfd.readouterr().err


def test_a_bad_row_is_reported_with_its_line_and_the_rest_is_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "tasks.jsonl", tmp_path / "out.jsonl"
    bad = [
        "no JSON",
        '{"id": "k", "task": "t", "overrides": {"no.such": 1}}',
        '{"id": "e", "task": " "}',
    ]
    path.write_text(
        "\n".join(
            ['{"id": "a", "task": "name rivers"}', *bad, '{"id": "z", "task": "name lakes"}', ""]
        )
    )
    assert run(f"dataset={path}", f"out={out}") == 1
    assert {row["id"]: row["ended"] for row in rows(out)} == {
        **{"a": "converged", "z": "converged"},
        **{"line-2": "invalid", "k": "invalid", "e": "invalid"},
    }
    told = capfd.readouterr().err
    for words in (
        "row 2 (line-2), invalid: line 2: not JSON",
        "row 3 (k), invalid: line 3: ",
        "overrides: a row may not set no.such",
        "row 4 (e), invalid: ",
    ):
        assert words in told


def test_a_row_may_have_overrides_of_its_own(tmp_path: Path) -> None:
    path, out = tmp_path / "tasks.csv", tmp_path / "out.jsonl"
    path.write_text('id,task,overrides\na,name rivers,\nb,name lakes,"{""mode"": ""core""}"\n')
    run(f"dataset={path}", f"out={out}")
    scores = {row["id"]: row["scores"] is not None for row in rows(out)}
    assert scores == {"a": True, "b": False}  # in core mode nothing is assessed


@pytest.mark.slow
def test_a_row_that_sets_more_than_a_row_may_is_invalid_and_the_batch_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = [
        {"tools.builtin.allowed_hosts": ["elsewhere.test"]},
        {"tools.approval": {}},
        {"tools.builtin.only": None},
        {"limits.max_cost": None},
        {"limits": {"max_llm_calls": 1000}},
        {"limits.max_llm_calls": 40, "convergence.completeness": 0.5},
    ]
    path, out = tmp_path / "tasks.jsonl", tmp_path / "out.jsonl"
    lines = ({"id": f"r{n}", "task": "name rivers", "overrides": of} for n, of in enumerate(asked))
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    own = ("tools=builtin", "tools.approval.*=never", "limits.max_llm_calls=50")
    paid = ("limits.max_cost=2", "provider.prices={simulated: {input: 0, output: 0}}")
    assert run(f"dataset={path}", f"out={out}", *own, *paid) == 1
    ended = {row["id"]: row["ended"] for row in rows(out)}
    assert ended == {**{f"r{n}": "invalid" for n in range(5)}, "r5": "converged"}
    told = capfd.readouterr().err
    for words in (
        "a row may not set tools.builtin.allowed_hosts",
        "a row may not set tools.approval",
        "a row may not set tools.builtin.only",
        "limits.max_cost=null: a row may not go beyond limits.max_cost=2",
        "limits.max_llm_calls=1000: a row may not go beyond limits.max_llm_calls=50",
    ):
        assert words in told


@pytest.mark.slow
def test_shards_take_every_row_once_and_are_merged_in_the_order_of_the_dataset(
    tmp_path: Path,
) -> None:
    given, parts = dataset(tmp_path, 7), [tmp_path / f"part{n}.jsonl" for n in (1, 2, 3)]
    for number, part in enumerate(parts, start=1):
        assert (
            run(f"dataset={given}", f"out={part}", f"shard={number}/3", "batch.order=dataset") == 0
        )
    assert [row["row"] for row in rows(parts[0])] == [1, 4, 7]
    assert main(["batch", "merge", "out=all.jsonl", *map(str, parts)]) == 0
    assert [row["id"] for row in rows(tmp_path / "all.jsonl")] == [f"r{n}" for n in range(7)]
    assert main(["batch", "merge", "out=less.jsonl", *map(str, parts[1:])]) == 2
    assert not (tmp_path / "less.jsonl").exists()


@pytest.mark.slow
def test_another_shard_does_not_go_into_the_same_results(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given, out = dataset(tmp_path, 4), tmp_path / "out.jsonl"
    assert run(f"dataset={given}", f"out={out}", "shard=1/2") == 0
    before = out.read_bytes()
    assert run(f"dataset={given}", f"out={out}", "shard=2/2") == 2
    assert "out= has rows of another shard" in capfd.readouterr().err
    assert out.read_bytes() == before
    assert run(f"dataset={given}", f"out={out}", "shard=1/2") == 0
    assert run(f"dataset={given}", f"out={out}") == 0


def test_a_kept_record_is_a_run_that_can_be_inspected(tmp_path: Path) -> None:
    run(f"dataset={dataset(tmp_path, 2)}", "out=out.jsonl", "batch.records=all")
    assert rows(tmp_path / "out.jsonl")[0]["record"].startswith("out.jsonl.records#r")
    assert main(["batch", "record", "out.jsonl", "r1", "r1"]) == 0
    assert main(["inspect", "r1", "output=json"]) == 0
    assert main(["batch", "record", "out.jsonl", "r9", "r9"]) == 2


def test_the_records_of_shards_are_found_by_their_merge(tmp_path: Path) -> None:
    given = dataset(tmp_path, 2)
    for number in (1, 2):
        assert (
            run(
                f"dataset={given}", f"out=p{number}.jsonl", f"shard={number}/2", "batch.records=all"
            )
            == 0
        )
    assert main(["batch", "merge", "out=all.jsonl", "p1.jsonl", "p2.jsonl"]) == 0
    assert main(["batch", "record", "all.jsonl", "r1", "r1"]) == 0
    (tmp_path / "moved").mkdir()
    for name in ("all.jsonl", "p1.jsonl.records"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert main(["batch", "record", "moved/all.jsonl", "r0", "r0"]) == 0
    assert main(["inspect", "r0", "output=json"]) == 0


def test_results_may_go_to_standard_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(f"dataset={dataset(tmp_path, 3)}", "out=-", "batch.order=dataset", "batch.records=none")
        == 0
    )
    assert [json.loads(text)["row"] for text in capfd.readouterr().out.splitlines()] == [1, 2, 3]


@pytest.mark.slow
def test_a_failed_row_goes_on_from_what_it_was_answered_and_its_record_goes(tmp_path: Path) -> None:
    down = [True]
    with OpenAIServer(simulated()) as server:
        script = simulated()

        def answer(received: Received) -> Any:
            return Failure(401) if down[0] else script["convergence"](received)

        server.script = {**script, "convergence": answer}
        command = [
            f"dataset={dataset(tmp_path, 2)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}", "provider.prices={m: {input: 1, output: 1}}"]
        assert main(["batch", *command]) == 1
        assert {row["ended"] for row in rows(tmp_path / "out.jsonl")} == {"failed"}
        down[0], before = False, len(server.requests)
        assert before >= 4
        cost = {row["id"]: row["cost"] for row in rows(tmp_path / "out.jsonl")}
        assert main(["batch", *command]) == 0
        first = {content_of(request) for request in server.requests[:before]}
        again = {
            request.name for request in server.requests[before:] if content_of(request) in first
        }
    assert again == {"convergence"}  # what was refused, and nothing else
    found = rows(tmp_path / "out.jsonl")
    assert all(row["ended"] == "converged" and row["cost"] > cost[row["id"]] for row in found)
    assert main(["batch", "record", "out.jsonl", "r1", "r1"]) == 2
    assert not (tmp_path / "out.jsonl.running").exists()


@pytest.mark.slow
def test_a_key_that_is_refused_row_after_row_stops_the_batch_and_the_same_command_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(dict.fromkeys(simulated(), Failure(401))) as server:
        command = [
            "batch",
            f"dataset={dataset(tmp_path, 12)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}", "batch.parallel=1"]
        assert main(command) == 1
        assert [row["ended"] for row in rows(tmp_path / "out.jsonl")] == ["failed"] * 8
        told = capfd.readouterr().err
        assert told.count("Stopped: 8 rows in a row failed by ") == 1
        assert "answered 401" in told.partition("Stopped: ")[2]
        assert not (tmp_path / "out.jsonl.running").exists()  # no row was answered anything
        server.script = dict(simulated())
        assert main(command) == 0
    assert len(rows(tmp_path / "out.jsonl")) == 12


@pytest.mark.slow
def test_a_row_that_goes_on_and_is_refused_keeps_what_it_was_answered(tmp_path: Path) -> None:
    with OpenAIServer(simulated()) as server:
        command = [
            "batch",
            f"dataset={dataset(tmp_path, 1)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}"]
        assert main([*command, "batch.max_llm_calls=5"]) == 3
        server.script = dict.fromkeys(simulated(), Failure(401))
        assert main(command) == 1
        before, server.script = len(server.requests), dict(simulated())
        assert main(command) == 0
    first = {content_of(request) for request in server.requests[:5]}
    assert not [request for request in server.requests[before:] if content_of(request) in first]


def test_a_row_that_an_answer_let_fail_is_asked_anew(tmp_path: Path) -> None:
    with OpenAIServer({**simulated(), "plan": "no JSON", "repair": "no JSON"}) as server:
        command = [
            f"dataset={dataset(tmp_path, 1)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}"]
        assert main(["batch", *command]) == 1
        server.script = dict(simulated())
        assert main(["batch", *command]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["core", "adaptive"])
def test_a_row_that_ended_for_a_step_without_a_usable_answer_goes_on_with_the_next_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], mode: str
) -> None:
    bad = {"step": "no JSON", "repair": "no JSON"}
    with OpenAIServer({**simulated(), **bad}) as server:
        command = [
            f"dataset={dataset(tmp_path, 1)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}", f"mode={mode}"]
        assert main(["batch", *command]) == 3
        (before,) = rows(tmp_path / "out.jsonl")
        assert before["unusable_steps"]
        assert "1 row had answers that could not be used" in capfd.readouterr().err
        asked = {content_of(request) for request in server.requests if request.name == "plan"}
        server.start_over(dict(simulated()))
        assert main(["batch", *command]) == 0
        assert not asked & {content_of(request) for request in server.requests}
    (after,) = rows(tmp_path / "out.jsonl")
    assert (after["ended"] in ("completed", "converged"), after["unusable_steps"]) == (True, [])
    assert not (tmp_path / "out.jsonl.running").exists()


def test_what_a_kill_left_of_rows_that_are_done_is_removed(tmp_path: Path) -> None:
    given, left = dataset(tmp_path, 2), tmp_path / "out.jsonl.running" / f"{digest('r0').hex()}-0"
    assert run(f"dataset={given}", "out=out.jsonl") == 0
    left.mkdir(parents=True)
    (left / "run.json").write_text("{}")
    assert run(f"dataset={given}", "out=out.jsonl") == 0
    assert not left.parent.exists()


@pytest.mark.slow
def test_a_batch_whose_reader_has_gone_away_stops_and_says_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = tmp_path / "passing"
    passing.mkdir()
    monkeypatch.setenv("TMPDIR", str(passing))
    with OpenAIServer(simulated(delay=0.05)) as server:
        command = [
            sys.executable,
            "-m",
            "aeon",
            "batch",
            f"dataset={dataset(tmp_path, 30)}",
            "out=-",
            "provider=openai",
        ]
        command += [f"provider.base_url={server.url}", "provider.model=m", "batch.parallel=2"]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            told = process.stderr.read().decode()
        assert process.returncode == 1
        assert "Error" not in told
        assert "rows:" not in told
        assert list(passing.iterdir()) == []
        assert len(server.requests) < 15 * 10


@pytest.mark.parametrize("out", ["pipe", "/dev/stdout", "."])
def test_results_go_to_no_other_kind_of_file(
    tmp_path: Path, out: str, capfd: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo("pipe")
    assert run(f"dataset={dataset(tmp_path)}", f"out={out}") == 2
    assert f"out={out}: is not a regular file" in capfd.readouterr().err


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_a_shard_that_is_none_is_refused(
    tmp_path: Path, shard: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(f"dataset={dataset(tmp_path)}", "out=out.jsonl", f"shard={shard}") == 2
    assert f"shard={shard}: must be i/n" in capfd.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_two_shards_in_one_command_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(f"dataset={dataset(tmp_path)}", "out=out.jsonl", "shard=1/2", "shard=2/2") == 2
    assert "shard= is given twice" in capfd.readouterr().err


def test_a_key_of_the_command_that_is_mistyped_is_suggested(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(f"dataset={dataset(tmp_path)}", "out=out.jsonl", "shards=1/2") == 2
    assert "  shards: unknown key; did you mean shard=?\n" in capfd.readouterr().err


@pytest.mark.slow
def test_a_batch_that_would_cost_more_than_wanted_stops_after_its_first_rows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(simulated()) as server:
        arguments = [
            f"dataset={dataset(tmp_path, 40)}",
            "out=out.jsonl",
            "batch.parallel=2",
            "provider=openai",
        ]
        arguments += [
            f"provider.base_url={server.url}",
            "provider.model=m",
            "provider.prices={m: {input: 0, output: 1000}}",
        ]
        assert main(["batch", *arguments, "batch.confirm_above_cost=1"]) == 2
        assert len(rows(tmp_path / "out.jsonl")) == 8
        assert "more than batch.confirm_above_cost=1" in capfd.readouterr().err
        before = len(server.requests)
        assert main(["batch", *arguments, "batch.confirm_above_cost=1"]) == 2
        assert len(server.requests) == before  # the rows that are done tell what the others cost
        told = capfd.readouterr().err
        cost = sum(row["cost"] for row in rows(tmp_path / "out.jsonl"))
        assert f"by its first rows about {cost / 8 * 32:.4f}" in told


@pytest.mark.slow
def test_what_all_rows_come_to_is_told_by_those_that_were_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = dataset(tmp_path, 10)
    given.write_text("no JSON\n" * 8 + given.read_text())
    with OpenAIServer(simulated()) as server:
        command = [
            "batch",
            f"dataset={given}",
            "out=out.jsonl",
            f"provider.base_url={server.url}",
            "batch.parallel=1",
        ]
        command += [
            "provider=openai",
            "provider.model=m",
            "provider.prices={m: {input: 0, output: 1000}}",
        ]
        assert main([*command, "batch.confirm_above_cost=1"]) == 2
    found, told = rows(tmp_path / "out.jsonl"), capfd.readouterr().err
    ran = [row for row in found if row["ended"] != "invalid"]
    assert (len(found), len(ran)) == (16, 8)
    assert (
        f"By the first rows all 10: about {sum(row['calls'] for row in ran) / 8 * 10:,.0f} calls"
        in told
    )


@pytest.mark.slow
def test_rows_that_failed_do_not_tell_what_the_others_cost(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = simulated()["plan"]
    assert callable(answer)

    def refuse_first(asked: Received) -> Any:
        is_early = any(f"name {n} rivers" in json.dumps(asked.body) for n in range(10))
        return Failure(400) if is_early else answer(asked)

    command = [
        "batch",
        f"dataset={dataset(tmp_path, 26)}",
        "out=out.jsonl",
        "batch.parallel=1",
        "provider=openai",
    ]
    command += ["provider.model=m", "provider.prices={m: {input: 0, output: 1000}}"]
    with OpenAIServer(dict.fromkeys(simulated(), refuse_first)) as server:
        assert (
            main([*command, f"provider.base_url={server.url}", "batch.confirm_above_cost=3"]) == 2
        )
    found, told = rows(tmp_path / "out.jsonl"), capfd.readouterr().err
    ran = [row for row in found if row["ended"] == "converged"]
    assert len(ran) == 8
    assert len(found) == 18
    assert (
        f"By the first rows all 26: about {sum(row['calls'] for row in ran) / 8 * 26:,.0f} calls"
        in told
    )
    assert f"by its first rows about {sum(row['cost'] for row in ran) / 8 * 26:.4f}" in told


def test_a_batch_that_is_done_asks_nothing_about_money(tmp_path: Path) -> None:
    with OpenAIServer(simulated()) as server:
        command = [
            "batch",
            f"dataset={dataset(tmp_path, 2)}",
            "out=out.jsonl",
            "provider=openai",
            "provider.model=m",
        ]
        command += [f"provider.base_url={server.url}"]
        assert main(command) == 0
        assert main([*command, "batch.confirm_above_cost=1"]) == 0


def test_a_batch_whose_prompts_alone_cost_more_than_wanted_asks_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(simulated()) as server:
        arguments = [
            f"dataset={dataset(tmp_path, 40)}",
            "out=out.jsonl",
            f"provider.base_url={server.url}",
        ]
        arguments += ["provider=openai", "provider.model=m", "batch.confirm_above_cost=1"]
        assert main(["batch", *arguments, "provider.prices={m: {input: 9, output: 9}}"]) == 2
        assert "will cost at least" in capfd.readouterr().err
        assert main(["batch", *arguments]) == 2
        told = capfd.readouterr().err
        assert "without prices the cost of the batch is unknown; provider.prices={MODEL: " in told
        assert not server.requests


def test_rows_that_cannot_be_run_count_for_no_call_and_no_cost(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = dataset(tmp_path, 3)
    given.write_text(given.read_text() + "no JSON\n" * 9)
    command = ["batch", f"dataset={given}", "out=out.jsonl", "mode=single", "provider=openai"]
    command.append("provider.prices={m: {input: 1, output: 1}}")
    with OpenAIServer(simulated()) as server:
        command += [f"provider.base_url={server.url}", "provider.model=m"]
        assert main([*command, "batch.confirm_above_cost=1e-9"]) == 2
        told = capfd.readouterr().err
        least = float(re.findall(r"cost at least (\d\.\d+)", told)[0])
        assert "3 rows to go: 1 call each, in all at least 3 calls" in told
        assert "9 rows cannot be run." in told
        assert main([*command, f"batch.confirm_above_cost={2 * least}"]) == 1
        assert "12 of 12 rows" in capfd.readouterr().err
        # Only rows that cannot be run are left.
        assert main([*command, "batch.confirm_above_cost=0"]) == 1


def test_a_batch_that_is_refused_leaves_its_results_as_they_are(tmp_path: Path) -> None:
    given = dataset(tmp_path, 3)
    given.write_text("no JSON\n" + given.read_text())
    command = ["batch", f"dataset={given}", "out=out.jsonl", "mode=single", "provider=openai"]
    with OpenAIServer(simulated()) as server:
        command += [f"provider.base_url={server.url}", "provider.model=m"]
        assert main(command) == 1
        before = (tmp_path / "out.jsonl").read_bytes()
        assert len(rows(tmp_path / "out.jsonl")) == 4
        assert main([*command, "shard=2/3"]) == 2
        given.write_text(given.read_text() + '{"id": "new", "task": "name a lake"}\n')
        assert main([*command, "batch.confirm_above_cost=1"]) == 2
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_killed_batch_goes_on_without_asking_again_what_was_answered(tmp_path: Path) -> None:
    given, out, parallel = dataset(tmp_path, 12), tmp_path / "out.jsonl", 4
    with OpenAIServer(simulated(delay=0.05)) as server:
        command = [
            sys.executable,
            "-m",
            "aeon",
            "batch",
            f"dataset={given}",
            f"out={out}",
            "provider=openai",
        ]
        command += [
            f"provider.base_url={server.url}",
            "provider.model=m",
            f"batch.parallel={parallel}",
        ]
        for _ in range(4):
            requests = len(server.requests) + random.randint(5, 40)
            with subprocess.Popen([*command, "execution.max_parallel=1"], cwd=tmp_path) as process:
                until = time.monotonic() + 60
                while (
                    len(server.requests) < requests
                    and process.poll() is None
                    and time.monotonic() < until
                ):
                    time.sleep(0.01)
                process.send_signal(signal.SIGKILL)
        assert (
            subprocess.run(
                [*command, "execution.max_parallel=1"], cwd=tmp_path, check=False
            ).returncode
            == 0
        )
        asked = Counter(map(content_of, server.requests))
    assert sorted(row["id"] for row in rows(out)) == sorted(f"r{n}" for n in range(12))
    # Only what was under way when a kill came is asked again: of each of four kills, one call a row.
    assert sum(asked.values()) - len(asked) <= 4 * parallel
    assert not list(tmp_path.glob("out.jsonl.running*"))


@pytest.mark.slow
def test_a_full_disk_stops_a_batch_and_the_same_command_goes_on(tmp_path: Path) -> None:
    given, out = dataset(tmp_path, 60), tmp_path / "out.jsonl"
    command = [
        sys.executable,
        "-m",
        "aeon",
        "batch",
        f"dataset={given}",
        f"out={out}",
        "provider=simulated",
    ]
    command += [
        "mode=core",
        "plan_file=plan.yaml",
        "batch.records=none",
        "observability=none",
        "store.mode=off",
    ]
    (tmp_path / "plan.yaml").write_text(
        "goal: say\ntask: say\nsteps:\n  - {id: s1, description: say it}\n"
    )

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))

    stopped = subprocess.run(
        command, cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert stopped.returncode == 1
    assert "cannot be written: File too large" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    before = rows(out)
    assert 0 < len(before) < 60  # and each line is whole
    subprocess.run(command, cwd=tmp_path, check=False)
    assert sorted(row["id"] for row in rows(out)) == sorted(f"r{n}" for n in range(60))
    assert [row for row in rows(out) if row["id"] in {done["id"] for done in before}] == before


@pytest.mark.slow
def test_a_row_whose_answers_cannot_be_stored_stops_a_batch_before_more_is_paid_for(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.jsonl"
    command = [
        sys.executable,
        "-m",
        "aeon",
        "batch",
        f"dataset={dataset(tmp_path, 6)}",
        f"out={out}",
        "progress=none",
    ]
    command += [
        "provider=openai",
        "provider.model=m",
        "batch.parallel=2",
        "execution.max_parallel=1",
    ]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with OpenAIServer(simulated()) as server:
        command += [f"provider.base_url={server.url}"]
        stopped = subprocess.run(
            command, cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True, check=False
        )
        assert stopped.returncode == 1
        assert "store.sqlite cannot be written: " in stopped.stderr
        assert "Free space; then repeat the command to resume." in stopped.stderr
        assert "the run continues" not in stopped.stderr
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
        asked = Counter(map(content_of, server.requests))
    assert 0 < sum(asked.values()) - len(asked) <= 2  # what was under way in either row
    assert sorted(row["ended"] for row in rows(out)) == ["converged"] * 6


def test_a_table_of_which_no_row_can_be_run_is_refused_before_anything_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "tasks.csv"
    given.write_text("key,question\na,name rivers\nb,name lakes\n")
    assert run("dataset=tasks.csv", "out=out.jsonl") == 2
    told = capfd.readouterr().err
    assert "no row can be run: line 3: there is no task in the column 'task'" in told
    assert "The columns are key, question. batch.columns.task=COLUMN names that of the task" in told
    assert list(tmp_path.iterdir()) == [given]
    assert run("dataset=tasks.csv", "out=out.jsonl", "batch.columns.task=question") == 0


def test_standard_input_is_named_where_it_has_no_rows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO()))
    assert run("dataset=-", "out=out.jsonl") == 2
    assert "Error: dataset=-: there are no rows\n" in capfd.readouterr().err


@pytest.mark.parametrize("out", ["out.xlsx", "out.csv", "out.json"])
def test_results_are_json_lines_and_a_merge_makes_a_table(
    out: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("dataset=tasks.jsonl", f"out={out}") == 2
    assert (
        "Give out=out.jsonl; then `aeon batch merge out=out.csv out.jsonl`"
        in capfd.readouterr().err
    )


def test_a_record_that_is_not_there_is_said_to_be_missing_for_its_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str) -> str:
        assert main(["batch", "record", *words]) == 2
        return capfd.readouterr().err

    run(f"dataset={dataset(tmp_path, 1)}", "out=none.jsonl", "batch.records=none")
    run(f"dataset={dataset(tmp_path, 1)}", "out=all.jsonl", "batch.records=all")
    assert "the row 'r0', converged, left no record" in told("none.jsonl", "r0", "d")
    Path("bad.jsonl").write_text('{"id": "bad"}\n{"id": "good", "task": "t"}\n')
    assert main(["batch", "dataset=bad.jsonl", "out=bad.out.jsonl", "provider=simulated"]) == 1
    assert "It was never run: line 1: there is no task" in told("bad.out.jsonl", "bad", "d")
    assert "there is no row with the id 'r9'" in told("all.jsonl", "r9", "d")
    assert main(["batch", "record", "all.jsonl", "r0", "first"]) == 0
    assert not list(tmp_path.glob("all.jsonl.records-*"))  # what SQLite makes to read it is gone
    kept = (tmp_path / "all.jsonl.records").read_bytes()
    (tmp_path / "all.jsonl.records").write_bytes(b"no database")
    assert "all.jsonl.records: this is no file of records" in told("all.jsonl", "r0", "d")
    (tmp_path / "all.jsonl.records").write_bytes(kept)
    (tmp_path / "all.jsonl.records").unlink()
    assert "all.jsonl.records: the record is missing" in told("all.jsonl", "r0", "d")


def test_a_merge_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = tmp_path / "part.jsonl"
    shard.write_text("{}\n", encoding="utf-8")
    assert main(["batch", "merge", f"out={tmp_path}/./part.jsonl", str(shard)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert shard.read_text(encoding="utf-8") == "{}\n"


def test_a_folder_that_is_missing_has_a_hint_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"dataset={dataset(tmp_path)}", "out=no/folder/out.jsonl") == 2
    told = capsys.readouterr().err
    assert "there is no folder no/folder" in told
    assert "mkdir -p no/folder" in told


def test_a_baseline_that_no_row_would_report_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [f"dataset={dataset(tmp_path, 2)}", f"out={tmp_path / 'out.jsonl'}"]
    assert run(*given, "answer.baseline=true") == 2
    told = capfd.readouterr().err
    assert "no row of a batch reports a baseline" in told
    assert "aeon eval" in told
