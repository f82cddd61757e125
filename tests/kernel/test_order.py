"""What a run tells depends on its answers alone, not on which of its parallel steps ended first (RULES 14)."""

from __future__ import annotations

import threading

from aeon.domain.errors import AuthenticationFailed, ServerFailed
from tests.kernel.build import advisories, kernel, run
from tests.support.scripted_model import ScriptedModel, clear, plan, planned

STEPS = ("a", "b", "c")


class Backwards:
    """Step answers that arrive last step first."""

    def __init__(self, answer) -> None:
        self._answer = answer
        self._gates = {name: threading.Event() for name in STEPS}

    def __call__(self, request):
        name = request.site.step_id
        later = STEPS[STEPS.index(name) + 1 :]
        if later:
            self._gates[later[0]].wait(90)
        threading.Timer(0.02, self._gates[name].set).start()
        return self._answer(name)


def test_the_error_that_ends_a_run_is_that_of_the_first_step_in_plan_order():
    errors = {
        "a": ServerFailed("a: 500"),
        "b": AuthenticationFailed("b: 401"),
        "c": ServerFailed("c: 500"),
    }
    outcome = run(ScriptedModel(plan=plan(*STEPS), step=Backwards(errors.get)))
    assert outcome.error.message == "a: 500"


def test_advisories_of_one_batch_come_in_plan_order():
    steps = [planned(name, tool=f"tool-{name}") for name in STEPS]
    outcome = run(ScriptedModel(plan=plan(*steps), step=Backwards(clear)))
    assert [message.split("'")[1] for message in advisories(outcome, "unknown_tool")] == [
        "tool-a",
        "tool-b",
        "tool-c",
    ]


def test_memory_is_written_in_plan_order():
    written = []

    class Telling:
        def write(self, key, value):
            written.append(key)

        def read(self, key):
            return None

        def search(self, prefix):
            return {}

    run(ScriptedModel(plan=plan(*STEPS), step=Backwards(clear)), memory=Telling())
    assert written == ["step/a/output", "step/b/output", "step/c/output"]


def test_a_tool_step_that_fails_is_no_second_unknown_tool():
    outcome = run(ScriptedModel(plan=plan(planned("a", tool="kettle")), step=ServerFailed("down")))
    (advisory,) = advisories(outcome, "unknown_tool")
    assert "Tool 'kettle' not found in registry" in advisory
    assert "ServerFailed: down" in outcome.state.plan.step("a").errors[-1]


def test_the_state_may_be_asked_for_before_the_run_begins():
    state = kernel(ScriptedModel()).state
    assert state.plan is None
    assert state.passes == ()
