"""Equal tasks of one process are profiled once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.errors import ServerFailed
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Message
from aeon.llm.stack.stored import ProfileMemo
from tests.support.scripted_model import ScriptedModel, profile

PHASE_A = CallSite(phase="PROFILE")
REQUEST = LLMRequest(
    call="task_profile", messages=(Message("user", "make tea"),), schema={}, site=PHASE_A
)


def test_the_answer_to_an_equal_profile_is_given_again():
    model, memo = ScriptedModel(task_profile=[profile(2), profile(5)]), dict[str, LLMResponse]()
    first = ProfileMemo(model, memo).complete(REQUEST)
    assert (
        ProfileMemo(model, memo).complete(replace(REQUEST, site=replace(PHASE_A, sequence=9)))
        == first
    )
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, messages=(Message("user", "make coffee"),)),
        replace(REQUEST, schema={"type": "object"}),
        replace(REQUEST, parameters=replace(REQUEST.parameters, model="another")),
        replace(REQUEST, site=CallSite(phase="PROFILE", cycle=7)),
        replace(REQUEST, call="plan", site=CallSite(phase="PLAN", cycle=1)),
    ],
)
def test_another_request_an_update_and_every_other_call_are_asked(other: LLMRequest):
    model, memo = ScriptedModel(), dict[str, LLMResponse]()
    adapter = ProfileMemo(model, memo)
    for request in (REQUEST, other, other):
        adapter.complete(request)
    assert model.requests.count(other) == (2 if other.site != PHASE_A else 1)


def test_another_sample_is_asked_for():
    model, memo = ScriptedModel(), dict[str, LLMResponse]()
    ProfileMemo(model, memo).complete(REQUEST)
    ProfileMemo(model, memo, sample=1).complete(REQUEST)
    assert len(model.requests) == 2


def test_a_failure_is_not_kept():
    model, memo = (
        ScriptedModel(task_profile=[ServerFailed("503"), profile(2)]),
        dict[str, LLMResponse](),
    )
    with pytest.raises(ServerFailed):
        ProfileMemo(model, memo).complete(REQUEST)
    assert '"reasoning_depth": 2' in ProfileMemo(model, memo).complete(REQUEST).text


def test_the_runs_of_one_aeon_share_it_and_each_can_be_replayed_alone(tmp_path: Path):
    with Aeon.from_config(["provider=simulated"], environ={}) as aeon:
        first = aeon.run("make tea", directory=tmp_path / "first")
        spent = aeon.spent.calls
        second = aeon.run("make tea", directory=tmp_path / "second")
        assert aeon.spent.calls - spent == spent - 1
    assert second.usage.total.requests == first.usage.total.requests
    replay = ["provider=simulated", "store.mode=replay", f"store.path={tmp_path / 'second'}"]
    with Aeon.from_config(replay, environ={}) as aeon:
        assert aeon.run("make tea").answer == second.answer
