"""`provider=custom provider.adapter=module:Class`: an adapter of one's own, from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon.config.folder_content import read_content
from aeon.config.trusted_folders import remember
from aeon.domain.result import SIMULATED_LINE
from tests.cli.conftest import RunAeon

MODULE = '''
"""Answers as the simulated provider does, under another name."""

from dataclasses import replace
from os import environ

from aeon.domain.errors import ServerFailed
from aeon.simulated.adapter import SimulatedAdapter
from aeon.domain.request import LLMResponse
from aeon.llm.settings import SimulatedProvider

print("imported")


class Mine:
    def __init__(self, seed=1, failures=0):
        print("made")
        self.asked, self.failures = [], failures
        self._inner = SimulatedAdapter(SimulatedProvider(seed=seed))

    def complete(self, request):
        print("asked")
        self.asked.append(request.parameters.model)
        if len(self.asked) <= self.failures:
            raise ServerFailed("busy")
        with open("asked.txt", "a") as file:
            file.write(f"{request.call} {request.parameters.model}\\n")
        return LLMResponse(text=self._inner.complete(request).text)

    def close(self):
        open("closed.txt", "w").close()


class MadeUp(Mine):
    synthetic = True


class Raises(Mine):
    def complete(self, request):
        raise KeyError("no such thing")


class Leaves(Mine):
    def complete(self, request):
        raise SystemExit(5)


class ReturnsText(Mine):
    def complete(self, request):
        return "text"


class Coroutine:
    async def complete(self, request): ...


class NoAdapter:
    pass


def function(): ...
'''
CUSTOM = ("provider=custom", "provider.adapter=my_models:Mine")
RUN = (
    "task=plan a move",
    "progress=none",
    "provider.retry.initial_seconds=0",
    "provider.retry.jitter_seconds=0",
)


@pytest.fixture(autouse=True)
def module(aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_models.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("my_models", None)


def run_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    newest = max(folder.rglob("result.json"), key=lambda path: path.stat().st_mtime_ns)
    return newest.parent, json.loads(newest.read_bytes())


def asked(folder: Path) -> list[str]:
    path = folder / "asked.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def test_a_run_asks_the_class_in_the_working_directory(aeon: RunAeon, module: Path) -> None:
    ended = aeon(*RUN, *CUSTOM, "provider.options.seed=1")
    assert ended.status == 0, ended.err
    for printed in ("imported", "made", "asked"):
        assert printed not in ended.out.splitlines()
        assert printed in ended.err.splitlines()
    _, result = run_of(module)
    assert len(asked(module)) == result["usage"]["total"]["requests"] > 0
    assert {line.split()[1] for line in asked(module)} == {"my_models:Mine"}
    assert result["provider"]["kind"] == "custom"
    assert result["provider"]["models"]["planner"] == ["my_models:Mine"]
    assert result["usage"]["unreported"] == ["my_models:Mine"]
    assert result["synthetic"] is False
    assert result["configuration"]["provider"]["options"] == {"seed": 1}
    assert (module / "closed.txt").exists()


@pytest.mark.slow
def test_limits_retries_and_prices_stand_around_it(aeon: RunAeon, module: Path) -> None:
    ended = aeon(*RUN, *CUSTOM, "provider.options={failures: 2}", "limits.max_llm_calls=4")
    _, result = run_of(module)
    assert result["termination_reason"] == "max_llm_calls", ended.err
    assert len(asked(module)) == 4
    assert "max_cost" in aeon(*RUN, *CUSTOM, "limits.max_cost=1").err
    free = "provider.prices={*: {input: 0, output: 0}}"
    assert aeon(*RUN, *CUSTOM, "limits.max_cost=1", free).status != 2


@pytest.mark.slow
def test_an_adapter_that_says_so_calls_no_model(aeon: RunAeon, module: Path) -> None:
    chosen = ("provider=custom", "provider.adapter=my_models:MadeUp")
    ended = aeon(*RUN, *chosen)
    assert ended.out.startswith(SIMULATED_LINE)
    directory, result = run_of(module)
    assert result["synthetic"] is True
    assert json.loads((directory / "run.json").read_bytes())["synthetic"] is True
    replayed = aeon("store.mode=replay", f"store.path={directory}", "progress=none")
    assert replayed.out == ended.out
    refused = aeon(*RUN, *chosen, "env=prod")
    assert (refused.status, "says that it calls none" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nothing:Mine", "cannot be imported: ModuleNotFoundError: No module named 'nothing'"),
        ("my_models:Missing", "cannot be imported: AttributeError"),
        ("my_models", "write package.module:Class"),
        ("my_models:NoAdapter", "no adapter, for it has no method complete(request)"),
        ("subprocess:Popen", "no adapter, for it has no method complete(request)"),
        ("my_models:function", "no adapter, for it is not a class"),
        ("my_models:Coroutine", "complete is a coroutine function"),
    ],
)
def test_what_is_no_adapter_is_refused_before_any_call(
    aeon: RunAeon, module: Path, reference: str, said: str
) -> None:
    ended = aeon(*RUN, "provider=custom", f"provider.adapter={reference}")
    assert ended.status == 2
    assert f"provider.adapter={reference}: {said}" in ended.err
    assert not list(module.rglob("result.json"))


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ([], "names no adapter"),
        (
            ["provider.adapter=my_models:Mine", "provider.options.sed=1"],
            "cannot be made: TypeError",
        ),
        (["provider.adapter=my_models:Mine", "provider.modle=x"], "provider.modle"),
    ],
)
def test_what_is_missing_or_wrong_around_it_is_said(
    aeon: RunAeon, overrides: list[str], said: str
) -> None:
    ended = aeon(*RUN, "provider=custom", *overrides)
    assert (ended.status, said in ended.err) == (2, True), ended.err


def test_it_is_no_fallback(aeon: RunAeon) -> None:
    ended = aeon(*RUN, "provider=openai", "provider.fallbacks=[custom]")
    assert (ended.status, "provider.fallbacks.0" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Raises", "KeyError: 'no such thing'"),
        ("Leaves", "SystemExit: 5"),
        ("ReturnsText", "TypeError: complete returned str, not an LLMResponse"),
    ],
)
def test_an_adapter_that_breaks_ends_the_run_and_is_named(
    aeon: RunAeon, module: Path, name: str, said: str
) -> None:
    ended = aeon(*RUN, "provider=custom", f"provider.adapter=my_models:{name}")
    assert ended.status == 1
    assert f"provider.adapter=my_models:{name}: {said}" in ended.err
    _, result = run_of(module)
    assert result["error"]["type"] == "ProviderError"
    assert result["usage"]["total"]["requests"] > 0


def test_the_doctor_asks_it(aeon: RunAeon) -> None:
    ended = aeon("doctor", *CUSTOM)
    assert ended.status == 0, ended.out
    assert "Provider: custom, my_models:Mine" in ended.out
    assert "Every role works." in ended.out
    broken = aeon("doctor", "provider=custom", "provider.adapter=my_models:Raises")
    assert (broken.status, "KeyError" in broken.out) == (1, True)


@pytest.mark.slow
def test_a_run_is_resumed_from_another_folder_and_asks_only_what_is_new(
    aeon: RunAeon, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aeon(*RUN, *CUSTOM, "limits.max_llm_calls=4")
    directory, _ = run_of(module)
    before = asked(module)
    elsewhere = module / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    sys.modules.pop("my_models", None)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(module)])
    ended = aeon(f"resume={directory}", "limits.max_llm_calls=100", "progress=none")
    assert ended.status == 0, ended.err
    _, result = run_of(elsewhere)
    assert len(before) == 4
    assert len(before) + len(asked(elsewhere)) == result["usage"]["total"]["requests"]


@pytest.mark.slow
def test_a_replay_needs_no_class_and_a_cassette_brings_none(aeon: RunAeon, module: Path) -> None:
    first = aeon(*RUN, *CUSTOM, "provider.options.seed=1")
    directory, _ = run_of(module)
    assert aeon("cassette", "export", str(directory), "run.aeon").status == 0
    (module / "my_models.py").unlink()
    sys.modules.pop("my_models", None)
    made = len(asked(module))
    for recording in (directory, "run.aeon"):
        ended = aeon("store.mode=replay", f"store.path={recording}", "progress=none")
        assert (ended.status, ended.out) == (0, first.out), ended.err
        shown = aeon("store.mode=replay", f"store.path={recording}", "--cfg", "job").out
        assert ("adapter: my_models:Mine" in shown) == (recording != "run.aeon")
    assert len(asked(module)) == made


@pytest.mark.slow
def test_another_class_or_other_options_are_asked_anew(aeon: RunAeon, module: Path) -> None:
    shared = ("store.mode=cache", f"store.path={module / 'shared.sqlite'}")
    counts = []
    for more in ([], [], ["provider.options.seed=1"], ["provider.adapter=my_models:MadeUp"]):
        aeon(*RUN, *CUSTOM, *shared, *more)
        counts.append(len(asked(module)))
    once = counts[0]
    assert once > 0
    assert counts == [once, once, 2 * once, 3 * once]


def test_a_trusted_project_may_name_it_and_an_untrusted_one_loads_nothing(
    aeon: RunAeon, module: Path
) -> None:
    (module / "aeon.yaml").write_text(
        "config_dir: conf\noverrides: {provider: mine}\n", encoding="utf-8"
    )
    (module / "conf" / "provider").mkdir(parents=True)
    (module / "conf" / "provider" / "mine.yaml").write_text(
        "defaults: [custom, _self_]\nadapter: my_models:Mine\noptions: {seed: 1}\n",
        encoding="utf-8",
    )
    refused = aeon(*RUN)
    assert refused.status == 2
    assert "imported" not in refused.err
    remember(read_content(module))
    ended = aeon(*RUN)
    assert ended.status == 0, ended.err
    assert "imported" in ended.err.splitlines()


def test_the_new_key_is_explained(aeon: RunAeon) -> None:
    assert "The class, as package.module:Class" in aeon("docs", "provider.adapter").out
    schema = json.loads(aeon("schema", "provider").out)
    keys = schema["$defs"]["CustomProvider"]["properties"]
    assert keys["adapter"]["description"].startswith("The class, as package.module:Class")
