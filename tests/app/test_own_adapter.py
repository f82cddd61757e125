"""`Aeon(adapter=...)`: an adapter of one's own, given in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ConfigError
from aeon.config.load import compose
from aeon.domain.errors import AuthenticationFailed, ServerFailed
from aeon.llm.settings import CustomProvider
from tests.support.scripted_model import ScriptedModel

NAME = "tests.support.scripted_model:ScriptedModel"
FAST = ("provider.retry.initial_seconds=0", "provider.retry.jitter_seconds=0")


class Busy(ServerFailed):
    """An error of one's own."""


class Closing(ScriptedModel):
    model = "mine-1"
    closed = False

    def close(self) -> None:
        self.closed = True


def test_an_object_answers_instead_of_the_configured_provider_and_stays_the_callers(
    tmp_path: Path,
) -> None:
    model = Closing()
    with Aeon.from_config(
        ["provider=openai", "provider.prices={scripted: {input: 1, output: 1}}"], adapter=model
    ) as aeon:
        result = aeon.run("make tea", directory=tmp_path / "run")
        assert aeon.settings.provider.kind == "custom"
        assert aeon.spent.usage.requests == len(model.requests)
    assert not model.closed
    assert result.exit_status == 0
    assert result.provider.kind == "custom"
    assert not result.synthetic
    assert result.usage.total.cost
    assert {request.parameters.model for request in model.requests} == {"mine-1"}
    origin = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert origin["provider"]["adapter"] == f"{__name__}:Closing"
    recorded = origin["settings"]["provider"]
    assert (recorded["kind"], recorded["adapter"], recorded["model"]) == ("custom", None, "custom")
    assert recorded["prices"]["scripted"]["input"] == 1


@pytest.mark.parametrize("settings", [None, compose(["provider=simulated", "limits.max_passes=1"])])
def test_settings_may_be_given_or_left_out(settings: Any) -> None:
    model = ScriptedModel()
    with Aeon(settings, {}, adapter=model) as aeon:
        assert isinstance(aeon.settings.provider, CustomProvider)
        assert aeon.settings.provider.model == NAME
        assert aeon.run("make tea").exit_status == 0
    assert model.requests


@pytest.mark.parametrize("wrong", [object(), "text", ScriptedModel])
def test_an_object_that_is_no_adapter_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="no adapter"):
        Aeon.from_config(adapter=wrong)


def test_an_object_and_a_configured_class_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match="the configuration also names one"):
        Aeon.from_config(["provider=custom", f"provider.adapter={NAME}"], adapter=ScriptedModel())
    with Aeon.from_config(["provider=custom", "provider.model=named"], adapter=Closing()) as aeon:
        assert aeon.settings.provider.model == "named"


def test_its_errors_are_what_they_are_in_the_tree_and_a_replay_raises_them_again(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(plan=[Busy("busy"), AuthenticationFailed("no key")])
    with Aeon.from_config(FAST, adapter=model) as aeon:
        result = aeon.run("make tea", directory=tmp_path / "refused")
    assert (result.exit_status, result.error and result.error.message) == (1, "no key")
    assert len([request for request in model.requests if request.call == "plan"]) == 2
    with Aeon.from_config(
        [*FAST, "provider.retry.attempts=1", "provider.patience_seconds=0"],
        adapter=ScriptedModel(plan=Busy("busy")),
    ) as aeon:
        first = aeon.run("make tea", directory=tmp_path / "busy")
    with Aeon.from_config(
        ["store.mode=replay", f"store.path={tmp_path / 'busy'}"], environ={}
    ) as aeon:
        again = aeon.run("make tea")
    assert first.error is not None
    assert again.error is not None
    assert again.error.message == first.error.message


def test_a_run_is_resumed_with_an_object_and_never_without(tmp_path: Path) -> None:
    first = ScriptedModel()
    with Aeon.from_config(
        ["provider=simulated", "provider.seed=3", "limits.max_llm_calls=3"], adapter=first
    ) as aeon:
        aeon.run("make tea", directory=tmp_path / "run")
    resumed = [f"resume={tmp_path / 'run'}", "limits.max_llm_calls=100"]
    with pytest.raises(ConfigError, match="names no adapter") as caught:
        Aeon.from_config(resumed, environ={"OPENAI_API_KEY": "k"})
    assert "adapter=..." in caught.value.hint
    second = ScriptedModel()
    with Aeon.from_config(resumed, environ={}, adapter=second) as aeon:
        result = aeon.run()
    assert result.exit_status == 0
    assert result.parent is not None
    assert result.parent.saved.model_calls == 3
    whole = ScriptedModel()
    with Aeon.from_config(adapter=whole) as aeon:
        aeon.run("make tea")
    assert len(second.requests) == len(whole.requests) - 3


@pytest.mark.parametrize("composed", [True, False])
def test_a_replay_of_it_needs_no_object(tmp_path: Path, composed: bool) -> None:
    made = Aeon.from_config(adapter=Closing()) if composed else Aeon(compose(), adapter=Closing())
    with made as aeon:
        first = aeon.run("make tea", directory=tmp_path / "run")
    with Aeon.from_config(
        ["store.mode=replay", f"store.path={tmp_path / 'run'}"], environ={}
    ) as aeon:
        again = aeon.run("make tea")
    assert (again.answer, again.exit_status) == (first.answer, 0)
