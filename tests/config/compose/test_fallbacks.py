"""`provider.fallbacks`: names of provider files, composed into the endpoints they stand for."""

import re
from pathlib import Path

import pytest

from aeon.config.load import compose
from aeon.config.provider import resolve_provider
from aeon.domain.errors import ConfigError
from aeon.llm.settings import LocalProvider, OpenAIFallback, OpenAIProvider

ENVIRON = {"OPENAI_API_KEY": "a", "GROQ_API_KEY": "b"}


def fallbacks(*overrides: str, config_dir: Path | None = None) -> tuple[object, ...]:
    provider = compose(["provider=openai", *overrides], config_dir).provider
    assert isinstance(provider, OpenAIProvider)
    return provider.fallbacks


def test_there_are_none_unless_named() -> None:
    assert fallbacks() == ()


def test_a_name_is_the_file_of_that_name_whole() -> None:
    (groq,) = fallbacks(
        "provider.fallbacks=[groq]", "provider.model=of-the-first", "provider.max_concurrency=7"
    )
    assert isinstance(groq, OpenAIFallback)
    assert (groq.name, groq.api_key_env, groq.max_concurrency) == ("groq", "GROQ_API_KEY", 128)
    assert groq.model not in ("of-the-first", "")


def test_a_mapping_stands_over_its_file_key_by_key() -> None:
    first, second, third = fallbacks(
        "provider.fallbacks=[{provider: ollama, model: llama3.1, retry: {attempts: 1}}, openai, local]"
    )
    assert isinstance(first, OpenAIFallback)
    assert (first.name, first.model, first.retry.attempts, first.retry.factor) == (
        "ollama",
        "llama3.1",
        1,
        2.0,
    )
    assert isinstance(second, OpenAIFallback)
    assert isinstance(third, LocalProvider)


def test_a_file_of_ones_own_can_be_named_and_build_on_a_packaged_one(tmp_path: Path) -> None:
    (tmp_path / "provider").mkdir()
    text = "defaults: [openai, _self_]\nname: mine\nmodel: m\nbase_url: http://127.0.0.1:9/v1\nrequire_key: false\n"
    (tmp_path / "provider" / "mine.yaml").write_text(text)
    (mine,) = fallbacks("provider.fallbacks=[mine]", config_dir=tmp_path)
    assert isinstance(mine, OpenAIFallback)
    assert (mine.name, mine.base_url, mine.timeout_seconds) == (
        "mine",
        "http://127.0.0.1:9/v1",
        600,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[nope]", "provider.fallbacks.0=nope: "),
        ("[groq, simulated]", "provider.fallbacks.1=simulated: a fallback must call a model"),
        ("[auto]", "provider.fallbacks.0=auto: a fallback must call a model"),
        ("[{model: m}]", "no provider is named"),
        ("[3]", "provider.fallbacks.0=3: no provider is named"),
        ("groq", "provider.fallbacks=groq: must be a list"),
        ("3", "provider.fallbacks=3: must be a list"),
        (
            "[{provider: openai, modle: m}]",
            "provider.fallbacks.0.modle: unknown key; did you mean `model`?",
        ),
        (
            "[groq, {provider: openai, modle: m}]",
            "provider.fallbacks.1.modle: unknown key; did you mean `model`?",
        ),
        ("[{provider: openai, max_concurrency: 0}]", "provider.fallbacks.0.max_concurrency=0: "),
        ("[{provider: openai, fallbacks: [groq]}]", "a fallback has none of its own"),
    ],
)
def test_what_cannot_be_a_fallback_is_named_by_its_place(given: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        fallbacks(f"provider.fallbacks={given}")
    assert said in raised.value.message


def test_the_keys_of_the_fallbacks_are_needed_from_the_start() -> None:
    settings = compose(["provider=openai", "provider.fallbacks=[groq]"])
    with pytest.raises(ConfigError, match=r"provider\.fallbacks\.0\.api_key_env=GROQ_API_KEY"):
        resolve_provider(settings, {"OPENAI_API_KEY": "a"})
    provider = resolve_provider(settings, ENVIRON).provider
    assert isinstance(provider, OpenAIProvider)
    (groq,) = provider.fallbacks
    assert isinstance(groq, OpenAIFallback)
    assert groq.base_url is not None


def test_what_a_hint_says_of_a_fallback_can_be_done() -> None:
    with pytest.raises(ConfigError) as raised:
        resolve_provider(
            compose(["provider=openai", "provider.fallbacks=[groq]"]), {"OPENAI_API_KEY": "a"}
        )
    (element,) = re.findall(r"\{provider: groq, require_key: false\}", raised.value.hint)
    followed = compose(["provider=openai", f"provider.fallbacks=[{element}]"])
    assert len(resolve_provider(followed, {"OPENAI_API_KEY": "a"}).provider.fallbacks) == 1  # type: ignore[union-attr]
    with pytest.raises(ConfigError) as raised:
        resolve_provider(compose(["provider=openai", "provider.fallbacks=[ollama]"]), ENVIRON)
    (element,) = re.findall(r"\{provider: ollama, model: NAME\}", raised.value.hint)
    assert resolve_provider(
        compose(["provider=openai", f"provider.fallbacks=[{element}]"]), ENVIRON
    )


def test_a_key_given_to_a_fallback_that_is_a_name_is_told_where_it_belongs() -> None:
    with pytest.raises(ConfigError, match="no provider is named") as raised:
        compose(["provider=openai", "provider.fallbacks=[ollama]", "provider.fallbacks.0.model=m"])
    assert "[{provider: ollama, model: llama3.1}]" in raised.value.hint


def test_auto_takes_its_fallbacks_along_to_a_model_and_never_to_made_up_answers() -> None:
    settings = compose(["provider=auto", "provider.fallbacks=[groq]"])
    assert len(resolve_provider(settings, ENVIRON).provider.fallbacks) == 1  # type: ignore[union-attr]
    assert resolve_provider(settings, {}).provider.kind == "simulated"


def test_a_cap_on_cost_needs_a_price_of_every_fallback() -> None:
    given = ["provider=openai", "limits.max_cost=1"]
    ollama = "provider.fallbacks=[{provider: ollama, model: llama3.1%s}]"
    assert resolve_provider(compose(given), ENVIRON).limits.max_cost == 1
    with pytest.raises(ConfigError, match=r"no price is configured for llama3\.1"):
        resolve_provider(compose([*given, ollama % ""]), ENVIRON)
    free = ", prices: {*: {input: 0, output: 0}}"
    assert resolve_provider(compose([*given, ollama % free]), ENVIRON).limits.max_cost == 1
