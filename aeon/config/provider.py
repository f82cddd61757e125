"""Settling which provider a run uses, once, from the settings and the environment."""

from __future__ import annotations

from collections.abc import Mapping

from aeon.config.load import find_recorded_origin
from aeon.config.origin import ProviderOrigin
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.llm.prices import check_prices, price_book
from aeon.llm.settings import (
    NO_NAME,
    SIMULATED_RETRY,
    AutoProvider,
    CustomProvider,
    EndpointSettings,
    LocalProvider,
    OpenAIProvider,
    RetrySettings,
    SimulatedProvider,
)

_OPENAI_ADDRESS_ENV = "OPENAI_BASE_URL"
_LIST_MODELS: Mapping[str, str] = {"ollama": "ollama list", "lm_studio": "lms ps"}
"""The commands that list a server's models, by the name of its endpoint."""


def resolve_provider(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with a definite provider, whose addresses are those in force.

    `auto` becomes openai when OPENAI_API_KEY, OPENAI_BASE_URL or `provider.base_url` is set, else simulated; or what it
    was in the run whose answers are used again. Raises ConfigError when `env=prod` would not call a model, when an
    endpoint lacks its model, address or key, or when `limits.max_cost` is set and a model has no price.
    """
    provider = settings.provider
    if settings.env == "prod" and isinstance(provider, AutoProvider | SimulatedProvider):
        raise ConfigError(
            f"provider={provider.kind}: env=prod calls a real model and never falls back to the simulated provider",
            hint="Use provider=openai or another that calls a model, or env=dev for trying things out.",
        )
    if isinstance(provider, AutoProvider | CustomProvider):
        before = find_recorded_origin(settings)
        provider = _settle(provider, environ, before.provider if before else None)
    if isinstance(provider, OpenAIProvider):
        if settings.store.mode != "replay":  # which calls nothing
            _check_endpoints(provider, environ, in_production=settings.env == "prod")
        provider = _with_addresses(provider, environ)
    settings = settings.model_copy(update={"provider": provider})
    if isinstance(provider, LocalProvider):
        _require_one_model(settings, provider.model)
    check_prices(price_book(provider), settings.limits.max_cost, _overriding_models(settings).values())
    return settings


def _settle(
    given: AutoProvider | CustomProvider, environ: Mapping[str, str], recorded: ProviderOrigin | None
) -> OpenAIProvider | SimulatedProvider | CustomProvider:
    if isinstance(given, CustomProvider) or (recorded is not None and recorded.kind == "custom"):
        return _own_adapter(given, recorded)
    address = given.address(environ)
    # No server gets the key of another.
    same_key = recorded is not None and recorded.api_key_env in (None, given.api_key_env)
    if recorded is not None and recorded.base_url and same_key and not address:
        given = given.model_copy(update={"base_url": recorded.base_url})
        address = recorded.base_url
    has_model = recorded.kind != "simulated" if recorded else bool(address or environ.get("OPENAI_API_KEY"))
    if has_model:
        values = {name: getattr(given, name) for name in OpenAIProvider.model_fields if name != "kind"}
        # A server of one's own may need no key; OpenAI's does.
        return OpenAIProvider(**{**values, "require_key": given.require_key and not address})
    shared = set(SimulatedProvider.model_fields) & set(AutoProvider.model_fields) - {"kind", "model", "retry"}
    return SimulatedProvider(**{name: getattr(given, name) for name in sorted(shared)}, retry=_short_waits(given.retry))


def _own_adapter(given: AutoProvider | CustomProvider, recorded: ProviderOrigin | None) -> CustomProvider:
    """The settings of an adapter of one's own. Of a recorded run the model is taken that its answers are stored under,
    unless one is given, and never which class is loaded."""
    if isinstance(given, AutoProvider):
        given = CustomProvider(prices=given.prices, retry=given.retry)
    if recorded is None or recorded.kind != "custom" or given.model != NO_NAME:
        return given
    return given.model_copy(update={"model": recorded.model})


def _short_waits(retry: RetrySettings) -> RetrySettings:
    """What a person has set, and else the waits of a provider that nobody has to wait for."""
    usual, given = RetrySettings().model_dump(), retry.model_dump()
    return SIMULATED_RETRY.model_copy(update={name: given[name] for name in given if given[name] != usual[name]})


def _check_endpoints(provider: OpenAIProvider, environ: Mapping[str, str], *, in_production: bool) -> None:
    """Check a provider and each of its fallbacks; what `env=prod` refuses is not advised."""
    without_model = "env=dev provider=simulated" if in_production else "provider=simulated"
    check_endpoint(provider, environ, without_model=without_model)
    for index, fallback in enumerate(provider.fallbacks):
        if isinstance(fallback, EndpointSettings):
            check_endpoint(fallback, environ, f"provider.fallbacks.{index}", without_model=without_model)


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
    variable = endpoint.base_url_env
    if not endpoint.model:
        command = _LIST_MODELS.get(endpoint.name)
        listing = f" (see `{command}`)" if command else ""
        raise ConfigError(
            f"{place}.model: no model is named, and {endpoint.name} has none that everybody has",
            hint=f"{_override(endpoint, place, 'model', 'NAME')}; NAME is what the server calls it{listing}."
            " All keys: `aeon docs configuration`.",
        )
    # Only where nothing else is named is OpenAI itself meant: another's key must not go there.
    if endpoint.address(environ) is None and variable != _OPENAI_ADDRESS_ENV:
        raise ConfigError(
            f"{place}.base_url: no address for {endpoint.name}"
            + (f", and the environment has no {variable}" if variable else ""),
            hint=_override(endpoint, place, "base_url", "https://HOST/v1")
            + (f", or set {variable}." if variable else "."),
        )
    if not environ.get(endpoint.api_key_env, "").strip() and endpoint.needs_key(environ):
        raise ConfigError(
            f"{place}.api_key_env={endpoint.api_key_env}: the environment has no {endpoint.api_key_env}",
            hint=f"Set {endpoint.api_key_env} in the environment or in a .env file; for a server that needs no key, "
            f"{_override(endpoint, place, 'require_key', 'false')}; to try Aeon without a model, {without_model}.",
        )
    for header, variable in endpoint.extra_headers_env.items():
        if not environ.get(variable, "").strip():
            raise ConfigError(f"{place}.extra_headers_env.{header}={variable}: the environment has no {variable}")


def _override(endpoint: EndpointSettings, place: str, key: str, value: str) -> str:
    """How a person sets a key: one of a fallback stands beside its name, for a name alone has no keys to override."""
    if place == "provider":
        return f"{place}.{key}={value}"
    return f"{{provider: {endpoint.name}, {key}: {value}}} in the place of {endpoint.name} in provider.fallbacks"


def _with_addresses(provider: OpenAIProvider, environ: Mapping[str, str]) -> OpenAIProvider:
    """The provider and its fallbacks with the addresses that are in force."""
    fallbacks = tuple(
        fallback.model_copy(update={"base_url": fallback.address(environ)})
        if isinstance(fallback, EndpointSettings)
        else fallback
        for fallback in provider.fallbacks
    )
    return provider.model_copy(update={"base_url": provider.address(environ), "fallbacks": fallbacks})


def _require_one_model(settings: Settings, model: str) -> None:
    """ConfigError when a role or a reasoning mode names another model than the one that is in memory."""
    for key, named in _overriding_models(settings).items():
        if named != model:
            raise ConfigError(
                f"{key}={named}: provider=local has one model, {model}",
                hint=f"Set {key} to null, or use a server that has both models.",
            )


def _overriding_models(settings: Settings) -> dict[str, str]:
    """The models that roles and reasoning modes name instead of the provider's own, by configuration key."""
    groups = {"roles": settings.roles, "reasoning": settings.reasoning}
    named = {
        f"{group}.{name}.model": getattr(of_group, name).model
        for group, of_group in groups.items()
        for name in type(of_group).model_fields
    }
    return {key: model for key, model in named.items() if model is not None}
