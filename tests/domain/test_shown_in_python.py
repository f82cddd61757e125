"""Results and histories as a person meets them in Python: printed, in a notebook, as frames."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import aeon
from aeon import Aeon, ConfigError, RunResult

HOSTILE = "<script>alert(1)</script> \x1b[31m \u202e | </pre></details> plan"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    with Aeon.from_config(["provider=simulated"], environ={}) as program:
        program.run(HOSTILE, directory=folder)
    return folder


@pytest.fixture(scope="module")
def result(run: Path) -> RunResult:
    return aeon.load(run)


def test_a_finished_run_is_loaded_as_it_was_returned(tmp_path: Path) -> None:
    with Aeon.from_config(["provider=simulated", "mode=core"], environ={}) as program:
        returned = program.run("plan a move", directory=tmp_path / "run")
    assert aeon.load(str(tmp_path / "run")) == returned


def test_what_is_no_finished_run_is_said_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(aeon.ArtefactError, match="holds no result") as caught:
        aeon.load(tmp_path)
    assert "outputs/" in caught.value.hint
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(aeon.ArtefactError) as caught:
        aeon.load(tmp_path)
    assert f"resume={tmp_path}" in caught.value.hint


def test_a_history_prints_as_a_table_of_its_passes(result: RunResult) -> None:
    head, names, *lines = str(result.history).splitlines()
    assert head == repr(result.history)
    assert names.split()[:3] == ["pass_number", "complete_steps", "steps"]
    assert [int(line.split()[0]) for line in lines] == [
        record.pass_number for record in result.history.passes
    ]
    last = result.history.passes[-1]
    assert len(repr(last)) < 300
    assert f"pass_number={last.pass_number}" in repr(last)


class Tags(HTMLParser):
    """The tags of a text, with those that are open at its end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_a_result_with_every_text_escaped(result: RunResult) -> None:
    tags = Tags(shown := result._repr_html_())
    assert tags.seen == {"p", "table", "tr", "th", "td", "bdi", "details", "summary", "pre"}
    assert tags.open == []
    assert "[SIMULATED: no model was called]" in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert result.history._repr_html_() in shown


@pytest.mark.slow
def test_frames_have_a_row_for_each_pass_step_call_and_run(run: Path, result: RunResult) -> None:
    pytest.importorskip("pandas")
    passes, steps = result.history.to_frame(), result.history.to_frame("steps")
    assert list(passes.pass_number) == [record.pass_number for record in result.history.passes]
    assert passes.completeness.iloc[-1] == result.scores["completeness_score"]  # type: ignore[index]
    assert len(steps) == sum(len(record.steps) for record in result.history.passes)
    assert set(steps.status) <= {"complete", "pending", "invalid"}
    (row,) = result.to_frame().to_dict("records")
    assert (row["run_id"], row["task"]) == (result.run_id, HOSTILE)
    assert row["total_tokens"] == result.usage.total.total_tokens
    calls = aeon.load_record(run).to_frame()
    assert calls.groupby("pass_number").input_tokens.sum().to_dict() == {
        number: usage.input_tokens for number, usage in result.usage.by_pass.items()
    }


def test_without_pandas_it_is_said_how_to_get_it(
    result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for make in (result.to_frame, result.history.to_frame):
        with pytest.raises(ConfigError, match="needs the package pandas") as caught:
            make()
        assert caught.value.hint == "pip install 'aeon-engine[pandas]'"
