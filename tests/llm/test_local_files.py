"""What is wrong with a local provider's settings is said before a model is loaded, with the extra or without it."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from aeon.app.process import process_stack
from aeon.config.load import compose
from aeon.config.provider import resolve_provider
from aeon.domain.errors import ConfigError, ProviderError
from aeon.llm.local import adapter as local_files
from aeon.llm.settings import LocalProvider, Price
from tests.support.requests import request


def settings(**given: Any) -> LocalProvider:
    return LocalProvider.model_validate(given)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The modules that there are, whatever is installed here."""
    there = {"llama_cpp", "huggingface_hub"}
    monkeypatch.setattr(
        local_files, "find_spec", lambda name: find_spec("json") if name in there else None
    )
    return there


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "some-model.Q4_K_M.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    return path


def problem(given: LocalProvider) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        process_stack(given, {})
    return raised.value


def test_a_missing_extra_says_how_to_install_it(installed: set[str], model_file: Path) -> None:
    installed.clear()
    error = problem(settings(model_path=model_file))
    assert "llama_cpp cannot be imported" in error.message
    assert "pip install 'aeon-engine[local]'" in error.hint


def test_the_hubs_library_is_only_missed_for_the_hub(installed: set[str], model_file: Path) -> None:
    installed.discard("huggingface_hub")
    local_files.check(settings(model_path=model_file))
    assert "huggingface_hub" in problem(settings(repo_id="owner/name", filename="m.gguf")).message


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("given", [{}, {"repo_id": "owner/name"}, {"filename": "m.gguf"}])
def test_a_model_has_to_be_named(given: dict[str, str]) -> None:
    error = problem(settings(**given))
    assert "no model is named" in error.message
    assert "provider.model_path=model.gguf" in error.hint


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["repo_id", "filename", "revision"])
def test_a_file_and_a_repository_are_too_much(model_file: Path, name: str) -> None:
    assert (
        "a file and a repository are both named"
        in problem(settings(model_path=model_file, **{name: "x"})).message
    )


@pytest.mark.usefixtures("installed")
def test_a_file_that_is_not_there_or_a_folder_is_named(tmp_path: Path) -> None:
    missing = problem(settings(model_path=tmp_path / "missing.gguf"))
    assert "missing.gguf: cannot be read: No such file" in missing.message
    assert "Is a directory" in problem(settings(model_path=tmp_path)).message


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04 a zip", b"<html>"])
def test_a_file_of_another_kind_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    error = problem(settings(model_path=path))
    assert "model.gguf: not a GGUF file" in error.message
    assert "converted" in error.hint


@pytest.mark.usefixtures("installed")
def test_a_home_folder_may_be_abbreviated(
    model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(model_file.parent))
    short = settings(model_path=f"~/{model_file.name}")
    local_files.check(short)
    assert local_files.locate_model(short) == model_file


def test_the_name_is_the_files_unless_it_is_given() -> None:
    assert settings(model_path="models/some-model.Q4_K_M.gguf").model == "some-model.Q4_K_M"
    assert settings(repo_id="owner/name", filename="part/m.gguf", model=None).model == "m"
    assert settings(model_path="m.gguf", model="mine").model == "mine"
    assert settings().model == "local"


def test_it_costs_nothing_unless_a_price_is_given() -> None:
    assert settings(model_path="m.gguf", prices={}).prices == {"m": Price(input=0, output=0)}
    assert (
        settings(model_path="m.gguf", prices={"m": {"input": 1, "output": 2}}).prices["m"].output
        == 2
    )


@pytest.mark.usefixtures("installed")
def test_a_library_that_is_there_and_broken_is_said_with_the_first_call(
    model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    adapter = process_stack(settings(model_path=model_file), {})
    with pytest.raises(ProviderError, match=r"the model could not be loaded: .*llama_cpp"):
        adapter.complete(request())


def test_production_takes_it_for_a_model() -> None:
    given = compose(["env=prod", "provider=local", "provider.model_path=m.gguf"])
    assert resolve_provider(given, {}).provider == settings(model_path="m.gguf")


@pytest.mark.parametrize("key", ["roles.grader.model", "reasoning.deep.model"])
def test_another_model_for_a_role_or_a_mode_is_refused_at_the_start(key: str) -> None:
    given = ["provider=local", "provider.model_path=m.gguf"]
    with pytest.raises(
        ConfigError, match=re.escape(f"{key}=gpt-5: provider=local has one model, m")
    ) as raised:
        resolve_provider(compose([*given, f"{key}=gpt-5"]), {})
    assert key in raised.value.hint
    assert resolve_provider(compose([*given, f"{key}=m"]), {})


def test_what_a_run_costs_is_known_without_a_price() -> None:
    given = ["provider=local", "provider.model_path=m.gguf", "limits.max_cost=1"]
    assert resolve_provider(compose(given), {}).limits.max_cost == 1
