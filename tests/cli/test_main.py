import io
import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from aeon.cli.syntax.commands import COMMANDS
from aeon.domain.result import SIMULATED_LINE
from tests.cli.conftest import RunAeon

QUIET = ("provider=simulated", "progress=none")


def run_directories(root: Path) -> list[Path]:
    return sorted((root / "outputs").glob("*/*"))


def test_a_run_prints_the_answer_alone_and_writes_its_artefacts(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("task=compare, 'a' and ${b}", *QUIET)
    (directory,) = run_directories(tmp_path)
    result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    assert ended.status == 0
    assert ended.out.splitlines()[0] == SIMULATED_LINE
    assert ended.out.rstrip("\n") == result["answer"].rstrip("\n")
    assert result["task"] == "compare, 'a' and ${b}"
    assert str(directory) in ended.err
    names = {
        "result.json",
        "history.json",
        "cycles.jsonl",
        "events.jsonl",
        "answer.md",
        "run.json",
        "store.sqlite",
    }
    names |= {".hydra", "report.html"}
    assert {path.name for path in directory.iterdir()} == names


def test_json_output_is_the_whole_result_in_one_line(aeon: RunAeon) -> None:
    ended = aeon("task=x", "output=json", *QUIET)
    result = json.loads(ended.out)
    assert ended.out.count("\n") == 1
    assert result["synthetic"] is True
    assert result["history"]["passes"]


def test_a_run_that_did_not_converge_ends_with_3_and_its_reason(aeon: RunAeon) -> None:
    ended = aeon("task=x", "ttl.base=1", *QUIET)
    assert ended.status == 3
    assert "ttl_expired" in ended.err


def test_a_run_whose_provider_fails_ends_with_1_and_says_why(
    aeon: RunAeon, scenario: Path, tmp_path: Path
) -> None:
    ended = aeon("task=x", f"provider.scenario={scenario}", *QUIET)
    assert ended.status == 1
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err
    assert (run_directories(tmp_path)[0] / "result.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no task"),
        (("task=",), "empty"),
        (("task= \n",), "empty"),
        (("design a web application",), 'task="design a web application"'),
        (("task=x", "task_file=x.md"), "both"),
        (("task_file=nowhere.md",), "nowhere.md"),
        (("task=a\udcffb",), "byte 0xff at offset 1"),
        (("task=a\ud800b",), "U+D800 at offset 1"),
        (("task=x", "inputs.a=b\udcff"), "inputs.a is not valid UTF-8"),
        (("task=x", "convergence.completness=1"), "did you mean `completeness`?"),
        (("task=x", "convergence.coherence=1.7"), "less than or equal to 1"),
        (
            ("task=x", "batch.parallel=2"),
            "only `aeon batch` reads batch.parallel\nDid you mean sweep.parallel?",
        ),
        (
            ("batch", "dataset=a.jsonl", "out=b.jsonl", "sweep.max_cost=2"),
            "only a sweep (-m) reads sweep.max_cost\nDid you mean limits.max_cost or ",
        ),
        (
            ("batch", "dataset=a.jsonl", "out=b.jsonl", "+sweep.fail_fast=true"),
            "only a sweep (-m) reads sweep.fail_fast\nLeave it out.",
        ),
        (("task=x", "provider=opnai"), "did you mean provider=openai?"),
        (("task=x", "ttl=20"), "ttl=20"),
        (("task=x", "convergence={"), "convergence={"),
        (("task=x", "ttl.base=1,2"), "--multirun"),
        (("task=x", "env=prod"), "OPENAI_API_KEY"),
        (("task=x", "provider=openai"), "OPENAI_API_KEY"),
        (("task=x", "env=prod", "provider=simulated"), "env=prod"),
        (("task=x", "provider=ollama", "provider.model=m", "limits.max_cost=1"), "no price"),
        (("task=x", "interaction=ask"), "terminal"),
        (("task=x", "answer.schema=none.json"), "none.json"),
        (("task=x", "prompts.dir=nowhere"), "nowhere"),
        (("task=x", "prompts.set=nowhere"), "nowhere"),
        (("task=x", "schemas.dir=nowhere"), "nowhere"),
        (("task=x", "provider=simulated", "provider.scenario=nowhere.yaml"), "nowhere.yaml"),
        (("task=x", "hydra.nonsense=1"), "hydra.nonsense"),
        (("task=x", "hydra/launcher=nonsense"), "hydra/launcher"),
        (("task=x", "--config-dir", "nowhere"), "nowhere"),
        (("task=x", "--config-name", "nowhere"), "nowhere"),
        (("task=x", "--nonsense"), "--nonsense"),
        (("--multirun", "task=x", "convergence.coherence=0.5,1.5"), "convergence.coherence=1.5"),
        (("--multirun", "task_file=nowhere.md,elsewhere.md"), "nowhere.md"),
        (("hydra.mode=MULTIRUN", "task=x", "ttl.base=0"), "ttl.base=0"),
        (("--cfg", "job", "provder=x"), "did you mean `provider`?"),
        (("render", "plam", "task=x"), "plam"),
        (("initt", "mine"), "`aeon init`"),
        (("render",), "aeon render: CALL is missing"),
        (("batch",), "aeon batch: dataset=, out= are missing"),
    ],
)
def test_what_cannot_be_used_ends_with_2_before_any_directory_is_made(
    aeon: RunAeon, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = aeon(*arguments)
    assert ended.status == 2
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_broken_template_names_its_file_and_line_before_any_directory_is_made(
    aeon: RunAeon, tmp_path: Path
) -> None:
    template = tmp_path / "mine" / "default" / "plan.user.j2"
    template.parent.mkdir(parents=True)
    template.write_text("one\n{{ nothing_like_it }}\n", encoding="utf-8")
    ended = aeon("task=x", f"prompts.dir={tmp_path / 'mine'}", *QUIET)
    assert ended.status == 2
    assert "mine/default/plan.user.j2:2" in ended.err
    assert not (tmp_path / "outputs").exists()


def test_an_output_directory_that_cannot_be_written_ends_with_2(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ended = aeon("task=x", "hydra.run.dir=file/run", *QUIET)
    assert ended.status == 2
    assert "hydra.run.dir" in ended.err
    assert ended.out == ""


def test_a_directory_that_holds_a_run_is_not_used_again(aeon: RunAeon, tmp_path: Path) -> None:
    first = aeon("task=x", "hydra.run.dir=mine", *QUIET)
    written = (tmp_path / "mine" / "result.json").read_bytes()
    second = aeon("task=y", "hydra.run.dir=mine", *QUIET)
    assert (first.status, second.status) == (0, 2)
    assert "already holds a run" in second.err
    assert (tmp_path / "mine" / "result.json").read_bytes() == written


def test_a_traceback_is_shown_only_to_who_asks_for_it(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    ended = aeon("task=x", "ttl.base=0")
    assert ended.status == 2
    assert "Traceback" in ended.err
    assert "ttl.base=0" in ended.err


def test_a_task_comes_from_standard_input_byte_for_byte(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "line, one\r\n'two' ${three} \\\ufeff日本語\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="ascii"))
    assert aeon("task=-", *QUIET).status == 0
    (directory,) = run_directories(tmp_path)
    assert json.loads((directory / "result.json").read_text(encoding="utf-8"))["task"] == text


def test_standard_input_that_is_not_utf8_names_the_offset(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ok \xe9"), encoding="latin-1"))
    ended = aeon("task=-")
    assert ended.status == 2
    assert "0xe9 at offset 3" in ended.err


def test_inputs_reach_the_prompts_literally(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes(b"from, a [file]\r\n")
    ended = aeon("render", "step", "task=x", "inputs.a=text, with ${all}", "input_files.b=b.md")
    assert ended.status == 0
    assert "text, with ${all}" in ended.out
    assert "from, a [file]\r\n" in ended.out


def test_inputs_are_hashed_into_the_result(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_bytes(b"file\r\n")
    result = json.loads(
        aeon("task=x", "inputs.a=text", "input_files.b=b.md", "output=json", *QUIET).out
    )
    expected = {
        name: sha256(text).hexdigest() for name, text in (("a", b"text"), ("b", b"file\r\n"))
    }
    assert result["hashes"]["inputs"] == expected


def test_flags_and_overrides_may_be_mixed(aeon: RunAeon) -> None:
    ended = aeon("task=x", "--cfg", "job", "ttl.base=7")
    assert ended.status == 0
    assert "base: 7" in ended.out


def test_help_says_what_aeon_does_and_names_the_ten_overrides_that_matter(aeon: RunAeon) -> None:
    ended = aeon("--help")
    assert ended.status == 0
    listed = ended.out.split("The ten overrides that matter")[1].split("Examples")[0].split("\n")
    assert len([line for line in listed if line[2:3].strip()]) == 10
    for override in (
        "task=",
        "provider=",
        "convergence.completeness=",
        "ttl.base=",
        "limits.max_passes=",
    ):
        assert override in ended.out
    for group in (
        "provider: anthropic, auto, azure",
        "experiment: none, quick, thorough",
        "env: ci, dev, prod",
    ):
        assert group in " ".join(ended.out.split())
    assert all(f"aeon {command}" in ended.out for command in COMMANDS)


def test_every_override_that_help_shows_is_a_key(aeon: RunAeon) -> None:
    listed = aeon("--help").out.split("The ten overrides that matter")[1].split("Examples")[0]
    keys = [line.split("=")[0].strip() for line in listed.splitlines() if line[2:3].strip()]
    composed = aeon("--cfg", "job").out
    for key in keys:
        name = key.split(".")[0] if key.startswith("input_files") else key.split(".")[-1]
        assert f"{name}:" in composed, key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--cfg", "job"), "completeness: 0.95"),
        (("--cfg", "job", "convergence=strict"), "completeness: 0.98"),
        (("--info", "searchpath"), "conf"),
        (("--info", "defaults"), "convergence"),
        (("-sc", "install=bash"), "complete"),
        (("--hydra-help",), "Hydra"),
        (("--version",), "aeon-engine"),
    ],
)
def test_what_is_only_shown_goes_to_standard_output_and_makes_nothing(
    aeon: RunAeon, tmp_path: Path, arguments: tuple[str, ...], shown: str
) -> None:
    ended = aeon(*arguments)
    assert ended.status == 0
    assert shown in ended.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_files_of_ones_own_come_before_the_packaged_ones(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "own" / "limits").mkdir(parents=True)
    (tmp_path / "own" / "limits" / "default.yaml").write_text("max_passes: 1\n", encoding="utf-8")
    assert "max_passes: 1\n" in aeon("--cfg", "job", "--config-dir", "own").out
    ended = aeon("task=design a web application", "--config-dir", "own", *QUIET)
    assert ended.status == 3
    assert "max_passes" in ended.err


def test_render_shows_prompt_schema_and_the_file_each_comes_from(aeon: RunAeon) -> None:
    ended = aeon("render", "plan", "task=compare, 'a' and ${b}")
    assert ended.status == 0
    assert "compare, 'a' and ${b}" in ended.out
    for part in ("plan.system.j2", "plan.user.j2", "plan.json", '"additionalProperties": false'):
        assert part in ended.out


def test_an_unexpected_failure_is_one_sentence_and_status_1(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(_arguments: object) -> int:
        raise RuntimeError("out of paper")

    monkeypatch.setattr("aeon.cli.commands.files.init", explode)
    ended = aeon("init", "x")
    assert ended.status == 1
    assert "RuntimeError: out of paper" in ended.err
    assert "Traceback" not in ended.err


TABLES = (
    "provider.prices={gpt-5: {input: 1.0, output: 2.0}}",
    "tools.approval={echo: never}",
    "inputs={notes: 'of, mine'}",
)


@pytest.mark.slow
@pytest.mark.parametrize("how", [(), ("-m", "hydra.sweep.dir=sweep", "ttl.base=9,10")])
def test_keys_that_a_table_has_not_yet_are_added_without_a_plus(
    aeon: RunAeon, how: tuple[str, ...]
) -> None:
    ended = aeon("task=x", "provider=simulated", "progress=none", "output=json", *TABLES, *how)
    results = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.status == 0
    assert len(results) == (2 if how else 1)
    for result in results:
        assert result["configuration"]["provider"]["prices"]["gpt-5"]["output"] == 2.0
        assert list(result["hashes"]["inputs"]) == ["notes"]


@pytest.mark.slow
def test_a_key_that_a_table_has_not_yet_can_be_swept_over(aeon: RunAeon) -> None:
    ended = aeon(
        "-m",
        "task=x",
        "tools.approval.echo=ask,never",
        "hydra.sweep.dir=sweep",
        "output=json",
        *QUIET,
    )
    found = [
        json.loads(line)["configuration"]["tools"]["approval"]["echo"]
        for line in ended.out.splitlines()
    ]
    assert found == ["ask", "never"]


def test_what_is_shown_has_the_keys_that_a_run_would_have(aeon: RunAeon) -> None:
    ended = aeon("task=x", "provider=openai", "provider.extra_body.x=1", *TABLES, "--cfg", "job")
    assert ended.status == 0
    assert "x: 1" in ended.out
    assert "notes: of, mine" in ended.out


@pytest.mark.slow
def test_a_cap_on_cost_holds_for_the_simulated_provider_too(aeon: RunAeon) -> None:
    prices = "provider.prices={simulated: {input: 1.0, output: 2.0}}"
    assert aeon("task=x", *QUIET, prices, "limits.max_cost=100").status == 0
    capped = aeon("task=x", *QUIET, prices, "limits.max_cost=0.001")
    assert capped.status == 3
    assert "max_cost" in capped.err


def test_a_flag_of_hydra_with_which_nothing_would_be_run_is_refused(aeon: RunAeon) -> None:
    ended = aeon("--experimental-rerun", "config.pickle", "task=x", "provider=simulated")
    assert ended.status == 2
    assert "--experimental-rerun: aeon takes no such word" in ended.err
