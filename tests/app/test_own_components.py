"""Components of a person's own take the place of packaged ones, by a key or by an argument, and keep everything else:
directory, journals, store, resume, page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.config.settings import ComponentSettings
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.memory.run_memory import InMemory
from aeon.refinement.own_components import INTERFACES
from tests.contract import test_written_from_the_text as text
from tests.support.scripted_model import ScriptedModel, worked

HERE = "tests.app.test_own_components"
TEXT = "tests.contract.test_written_from_the_text"
FIVE = (
    f"components.planner={TEXT}:Planner",
    f"components.validator={TEXT}:Validator",
    f"components.convergence={TEXT}:Engine",
    f"components.adaptive_depth={TEXT}:Depth",
    f"components.supervisor={HERE}:Repairing",
)
STEP = {"step_output": "repaired", "clarity_state": "CLEAR"}
REPAIRED = {**STEP, "clarity_reason": None, "handoff_to_next": None}


class Repairing(text.Repairer):
    def __init__(self) -> None:
        super().__init__(REPAIRED)


class Notes(InMemory):
    """A memory of one's own, which counts those that are open."""

    opened: list[str] = []  # noqa: RUF012 - what the tests look at

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.opened.append(run_id)

    def close(self) -> None:
        self.opened.remove(self.run_id)


class Counting:
    """A judge around the packaged one."""

    def __init__(self, build: Any, llm: Any, at_most: int = 99) -> None:
        self._judge = build(llm)
        self._left = at_most

    def assess(self, *evidence: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("too many assessments")
        return self._judge.assess(*evidence, **more)


class NotAJudge:
    def assess(self, report: object) -> None: ...


class Waiting:
    async def assess(self, *_: object) -> None: ...


class Failing:
    def __init__(self) -> None:
        raise OSError("no licence")


class Asking(Counting):
    def __init__(self, build: Any, llm: Any) -> None:
        build(llm).assess(*[None] * 4)


@pytest.fixture(autouse=True)
def nothing_open() -> Iterator[None]:
    Notes.opened.clear()
    yield
    assert Notes.opened == []


def run(directory: Path, *overrides: str, task: str | None = "do it", **given: Any) -> RunResult:
    with Aeon.from_config(("provider=simulated", *overrides), environ={}, **given) as aeon:
        return aeon.run(task, directory=directory)


def test_a_key_for_each_component_there_is():
    assert set(INTERFACES) == set(ComponentSettings.model_fields)


def test_five_components_written_from_the_text_keep_directory_journals_store_and_page(
    tmp_path: Path,
):
    model = ScriptedModel(step=["no JSON", worked])
    overrides = ["provider=custom", *FIVE]
    with Aeon.from_config(overrides, environ={}, adapter=model) as aeon:
        result = aeon.run("do it", directory=tmp_path / "a")
    assert result.converged
    assert result.history.passes[-1].steps[0].step_output == "repaired"
    assert {call.partition(":")[0] for call in model.calls} == {"step"}
    left = {path.name for path in (tmp_path / "a").iterdir()}
    assert {"run.json", "result.json", "events.jsonl", "cycles.jsonl", "report.html"} <= left
    assert (tmp_path / "a" / "store.sqlite").is_file()


def test_a_run_with_own_components_is_resumed_with_them(tmp_path: Path):
    first = run(tmp_path / "a", *FIVE)
    with Aeon.from_config([f"resume={tmp_path / 'a'}"], environ={}) as aeon:
        assert not [text for text in aeon.warnings if "components" in text]
        resumed = aeon.run(directory=tmp_path / "b")
        assert aeon.spent.calls == 0
    assert resumed.answer == first.answer
    assert resumed.parent is not None
    assert resumed.parent.saved.model_calls > 0


def test_run_result_and_page_name_the_component(tmp_path: Path):
    run(tmp_path / "a", f"components.convergence={HERE}:Counting")
    origin = json.loads((tmp_path / "a" / "run.json").read_text())
    assert origin["components"] == {"convergence": f"{HERE}:Counting"}
    result = json.loads((tmp_path / "a" / "result.json").read_text())
    assert result["configuration"]["components"]["convergence"] == f"{HERE}:Counting"
    page = (tmp_path / "a" / "report.html").read_text()
    assert f"convergence: {HERE}:Counting" in page


def test_options_are_given_to_the_factory(tmp_path: Path):
    factory = f"{{factory: '{HERE}:Counting', options: {{at_most: 0}}}}"
    result = run(tmp_path / "a", f"components.convergence={factory}")
    assert result.error is not None
    expected = "convergence engine: Counting.assess raised RuntimeError: too many assessments"
    assert result.error.message == expected


def test_an_object_given_in_python_is_shared_by_all_runs(tmp_path: Path):
    engine = text.Engine()
    with Aeon.from_config(["provider=simulated"], environ={}, convergence=engine) as aeon:
        results = [aeon.run("do it"), aeon.run("do it")]
    assert all(result.converged for result in results)
    assert results[0].explanation == "as it stands"


def test_a_class_given_in_python_makes_one_for_each_run():
    made: list[object] = []

    class Noted(text.Engine):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    with Aeon.from_config(["provider=simulated"], environ={}, convergence=Noted) as aeon:
        tried = len(made)
        aeon.run("do it")
        aeon.run("do it")
    assert len(made) == tried + 2


def test_an_argument_replaces_what_is_configured(tmp_path: Path):
    overrides = ("components.convergence=nothing_of_this_name:Judge",)
    result = run(tmp_path / "a", *overrides, convergence=text.Engine())
    assert result.explanation == "as it stands"


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'judge'"):
        Aeon.from_config(["provider=simulated"], environ={}, judge=text.Engine())  # type: ignore[call-arg]


WRONG = {
    "nothing_of_this_name:Judge": "ModuleNotFoundError",
    f"{HERE}:Missing": "has no attribute 'Missing'",
    f"{HERE}:STEP": "it is of type dict, which cannot be called",
    f"{HERE}:Failing": "cannot be made: OSError: no licence",
    f"{HERE}:Asking": "cannot be made: ",
    f"{HERE}:Notes": "cannot be made: TypeError: .*run_id",
    "collections:Counter": r"Counter has no method assess\(validation_report, plan, steps",
    f"{HERE}:NotAJudge": r"it is called as assess\(.*: too many positional arguments",
    f"{HERE}:Waiting": "assess is a coroutine function",
}


@pytest.mark.parametrize("reference", WRONG)
def test_what_is_no_component_is_refused_before_anything_is_asked(reference: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=WRONG[reference]) as refused:
        run(tmp_path / "a", f"components.convergence={reference}")
    assert refused.value.message.startswith(f"components.convergence={reference}: ")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("given", [NotAJudge(), text.Planner(), 3])
def test_an_argument_that_is_no_component_is_refused(given: Any, tmp_path: Path):
    with pytest.raises(ConfigError, match=r"^convergence=.* \(given in Python\): "):
        run(tmp_path / "a", convergence=given)


def test_a_memory_of_ones_own_is_opened_and_closed_with_its_run(tmp_path: Path):
    result = run(tmp_path / "a", f"components.memory={HERE}:Notes", "++memory.entries.tone=warm")
    assert result.error is None
    assert json.loads((tmp_path / "a" / "run.json").read_text())["components"] == {
        "memory": f"{HERE}:Notes"
    }


def test_a_resumed_run_says_that_a_component_differs(tmp_path: Path):
    run(tmp_path / "a", f"components.convergence={HERE}:Counting")
    overrides = [f"resume={tmp_path / 'a'}", f"components.convergence={TEXT}:Engine"]
    with Aeon.from_config(overrides, environ={}) as aeon:
        (said,) = [text for text in aeon.warnings if "components" in text]
    assert said.startswith(
        f"components.convergence is {TEXT}:Engine, and was {HERE}:Counting in {tmp_path / 'a'}"
    )


def test_a_resumed_run_says_that_a_component_that_a_program_gave_is_missing(tmp_path: Path):
    run(tmp_path / "a", convergence=text.Engine())
    with Aeon.from_config([f"resume={tmp_path / 'a'}"], environ={}) as aeon:
        (said,) = [text for text in aeon.warnings if "components" in text]
    named = f"{TEXT}:Engine (given in Python)"
    assert said.startswith(f"components.convergence is the packaged one, and was {named} in ")


def test_the_same_component_given_again_is_no_change(tmp_path: Path):
    run(tmp_path / "a", convergence=text.Engine())
    overrides = [f"resume={tmp_path / 'a'}"]
    with Aeon.from_config(overrides, environ={}, convergence=text.Engine()) as aeon:
        assert not [text for text in aeon.warnings if "components" in text]
        assert aeon.run(directory=tmp_path / "b").converged


def test_runs_at_the_same_time_have_components_of_their_own():
    judges: list[object] = []

    class Noting(text.Engine):
        def assess(self, *evidence: Any, **more: Any) -> Any:
            judges.append(self)
            return super().assess(*evidence)

    with Aeon.from_config(["provider=simulated"], environ={}, convergence=Noting) as aeon:
        results = list(aeon.run_many(["one", "two", "three"]))
    assert all(result.converged for result in results)
    assert len(set(map(id, judges))) == 3
