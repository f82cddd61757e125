"""Whether an endpoint can be reached at all, as far as its settings and the environment tell."""

from __future__ import annotations

from collections.abc import Mapping

from aeon.config.compose.origin import ProviderOrigin
from aeon.domain.errors import ConfigError
from aeon.llm.settings import NO_NAME, AutoProvider, CustomProvider, EndpointSettings, OpenAIProvider

OPENAI_ADDRESS_ENV = "OPENAI_BASE_URL"
_LISTING: Mapping[str, str] = {"ollama": "ollama list", "lm_studio": "lms ps"}
"""The commands that list a server's models, by the name of its endpoint."""


def check_endpoint(
    endpoint: EndpointSettings,
    environ: Mapping[str, str],
    place: str = "provider",
    *,
    without_model: str = "provider=simulated",
) -> None:
    """Raise ConfigError, naming the key below `place`, for a model, address, key or header that is missing.

    `without_model` are the overrides to advise for trying Aeon without a model.
    """
    if not endpoint.model:
        raise ConfigError(
            f"{place}.model: no model is named, and {endpoint.name} has none that everybody has",
            hint=f"{_way(endpoint, place, 'model', 'NAME')}; NAME is what the server calls it"
            + (f" (see `{_LISTING[endpoint.name]}`)" if endpoint.name in _LISTING else "")
            + ". All keys: `aeon docs configuration`.",
        )
    # Only where nothing else is named is OpenAI itself meant: another's key must not go there.
    if endpoint.address(environ) is None and endpoint.base_url_env != OPENAI_ADDRESS_ENV:
        raise ConfigError(
            f"{place}.base_url: no address for {endpoint.name}"
            + (f", and the environment has no {endpoint.base_url_env}" if endpoint.base_url_env else ""),
            hint=_way(endpoint, place, "base_url", "https://HOST/v1")
            + (f", or set {endpoint.base_url_env}." if endpoint.base_url_env else "."),
        )
    if not environ.get(endpoint.api_key_env) and endpoint.needs_key(environ):
        raise ConfigError(
            f"{place}.api_key_env={endpoint.api_key_env}: the environment has no {endpoint.api_key_env}",
            hint=f"Set {endpoint.api_key_env} in the environment or in a .env file; for a server that needs no key, "
            f"{_way(endpoint, place, 'require_key', 'false')}; to try Aeon without a model, {without_model}.",
        )
    for header, variable in endpoint.extra_headers_env.items():
        if not environ.get(variable):
            raise ConfigError(f"{place}.extra_headers_env.{header}={variable}: the environment has no {variable}")


def _way(endpoint: EndpointSettings, place: str, key: str, value: str) -> str:
    """How a person sets a key: one of a fallback stands beside its name, for a name alone has no keys to override."""
    if place == "provider":
        return f"{place}.{key}={value}"
    return f"{{provider: {endpoint.name}, {key}: {value}}} in the place of {endpoint.name} in provider.fallbacks"


def check_chain(
    provider: OpenAIProvider, environ: Mapping[str, str], *, without_model: str = "provider=simulated"
) -> None:
    """The same for a provider and each of its fallbacks."""
    check_endpoint(provider, environ, without_model=without_model)
    for index, fallback in enumerate(provider.fallbacks):
        if isinstance(fallback, EndpointSettings):
            check_endpoint(fallback, environ, f"provider.fallbacks.{index}", without_model=without_model)


def reached(provider: OpenAIProvider, environ: Mapping[str, str]) -> OpenAIProvider:
    """The provider and its fallbacks with the addresses that are in force."""
    fallbacks = tuple(
        fallback.model_copy(update={"base_url": fallback.address(environ)})
        if isinstance(fallback, EndpointSettings)
        else fallback
        for fallback in provider.fallbacks
    )
    return provider.model_copy(update={"base_url": provider.address(environ), "fallbacks": fallbacks})


def own_adapter(provider: AutoProvider | CustomProvider, recorded: ProviderOrigin | None) -> CustomProvider:
    """The settings of an adapter of one's own; of a recorded run the model is taken that its answers are kept under,
    unless one is said, and never which class is loaded."""
    if isinstance(provider, AutoProvider):
        provider = CustomProvider(prices=provider.prices, retry=provider.retry)
    if recorded is None or recorded.kind != "custom" or provider.model != NO_NAME:
        return provider
    return provider.model_copy(update={"model": recorded.model})
