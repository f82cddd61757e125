"""`provider=NAME` for servers of many makes: each is one configuration file, and every file is tested."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon import Aeon, ConfigError
from aeon.config.load import compose
from aeon.config.provider import resolve_provider
from aeon.llm.settings import OpenAIProvider
from tests.integration.wire import TASK, script

FOLDER = Path(__file__).parents[2] / "conf" / "provider"
OTHER_KINDS = ("auto", "custom", "local", "simulated")
PRESETS = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem not in OTHER_KINDS)


@cache
def held(name: str) -> dict[str, Any]:
    """What a preset's file itself says, over that of openai."""
    held: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return held


HOSTED = [name for name in PRESETS if held(name).get("require_key", True)]
OWN = [name for name in PRESETS if name not in HOSTED]
WITHOUT_MODEL = [name for name in PRESETS if not held(name)["model"]]


def key_of(name: str) -> str:
    return str(held(name)["api_key_env"])


def composed(name: str, *more: str) -> OpenAIProvider:
    provider = compose([f"provider={name}", *more]).provider
    assert isinstance(provider, OpenAIProvider)
    return provider


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_goes_by_its_own_name_and_has_a_key_of_its_own(name: str) -> None:
    assert composed(name).name == name
    assert composed(name).api_key_env == key_of(name)
    assert [other for other in PRESETS if key_of(other) == key_of(name)] == [name]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_begins_by_saying_what_it_is_how_to_start_and_what_it_supports(name: str) -> None:
    opening = FOLDER.joinpath(f"{name}.yaml").read_text().split("\n\n")[0]
    assert opening.startswith("# ")
    if name != "openai":
        assert any(word in opening for word in ("Start:", "Sign up", "Make a key"))
        assert "upports" in opening or "schema" in opening


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_its_models_take_and_whence_that_is_known(name: str) -> None:
    if name != "azure":  # it has OpenAI's models
        assert "models" in held(name)
    assert not held(name).get("models") or "ource" in FOLDER.joinpath(f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "openai"])
def test_openais_own_variables_never_send_a_preset_elsewhere(name: str) -> None:
    other = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-openai"}
    provider = composed(name, "provider.model=m")
    assert provider.address(other) == provider.base_url
    assert provider.api_key_env not in other


@pytest.mark.parametrize("name", HOSTED)
def test_a_hosted_preset_wants_its_key_and_names_the_variable(name: str) -> None:
    address = {"AZURE_OPENAI_BASE_URL": "https://example.openai.azure.com/openai/v1/"}
    with pytest.raises(ConfigError, match=key_of(name)):
        resolve_provider(compose([f"provider={name}", "provider.model=m"]), address)


@pytest.mark.parametrize("name", OWN)
def test_a_server_of_ones_own_wants_none(name: str) -> None:
    settings = resolve_provider(compose([f"provider={name}", "provider.model=m"]), {})
    assert str(settings.provider.base_url).startswith("http://localhost:")


@pytest.mark.parametrize("name", WITHOUT_MODEL)
def test_where_no_model_is_everybodys_one_must_be_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"provider.model: no model is named") as refused:
        resolve_provider(compose([f"provider={name}"]), {})
    assert "provider.model=NAME; NAME is what the server calls it" in refused.value.hint


def test_azure_needs_the_address_of_its_resource() -> None:
    azure = compose(["provider=azure", "provider.model=mine"])
    with pytest.raises(ConfigError, match="AZURE_OPENAI_BASE_URL"):
        resolve_provider(azure, {"AZURE_OPENAI_API_KEY": "k"})
    environ = {
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_OPENAI_BASE_URL": "https://r.openai.azure.com/openai/v1/",
    }
    assert resolve_provider(azure, environ).provider.base_url == environ["AZURE_OPENAI_BASE_URL"]


def test_presets_hold_settings_alone() -> None:
    for path in FOLDER.glob("*.yaml"):
        assert not any("sk-" in str(value) for value in held(path.stem).values()), path


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "azure"])
def test_a_whole_run_goes_through_a_preset(name: str, start_server) -> None:
    server = start_server(script())
    overrides = [f"provider={name}", f"provider.base_url={server.url}", "provider.model=m"]
    overrides += ["provider.structured_output=json_schema"]  # the one form that this server takes
    with Aeon.from_config(overrides, environ={key_of(name): "sk-own"}) as aeon:
        result = aeon.run(TASK)
    assert result.converged
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-own"}
