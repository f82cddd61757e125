"""Settles the provider of a run, once, from the settings and the environment."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from aeon.config.environment import Environment
from aeon.config.origin import Origin, ProviderOrigin
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.values import list_query_secrets, show_address
from aeon.files.secret_forms import mask_value
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


def resolve_provider(
    settings: Settings, environ: Mapping[str, str], recorded: Origin | None = None
) -> Settings:
    """Return the settings with a definite provider, whose addresses are those in force. `auto`
    becomes openai with a key or an address, else simulated; or the provider of the `recorded` run,
    whose answers are reused.

    Raises ConfigError for settings that a provider lacks, and where `env=prod` would not call a
    model.
    """
    provider = settings.provider
    calls_models = settings.store.mode != "replay"
    if settings.env == "prod" and isinstance(provider, AutoProvider | SimulatedProvider):
        raise ConfigError(
            f"provider={provider.kind}: env=prod calls a real "
            "model and never falls back to the simulated provider",
            hint="Use provider=openai or another that calls "
            "a model, or env=dev for trying things out.",
        )
    if isinstance(provider, AutoProvider | OpenAIProvider) and calls_models:
        _refuse_withheld_addresses(provider, environ)
    if isinstance(provider, AutoProvider | CustomProvider):
        provider = settle_provider(provider, environ, recorded.provider if recorded else None)
    if isinstance(provider, OpenAIProvider):
        if calls_models:
            _check_endpoints(provider, environ)
        provider = _put_addresses_in_force(provider, environ)
        _mask_addressed_secrets(provider)
    settings = settings.model_copy(update={"provider": provider})
    models = _list_models(settings)
    if isinstance(provider, LocalProvider):
        _refuse_other_models(provider, models)
    check_prices(price_book(provider), settings.limits.max_cost, models.values())
    return settings


def _mask_addressed_secrets(provider: OpenAIProvider) -> None:
    for name, value in list_addressed_secrets(provider).items():
        mask_value(name, value)


def _check_endpoints(provider: OpenAIProvider, environ: Mapping[str, str]) -> None:
    check_endpoint(provider, environ)
    for index, fallback in enumerate(provider.fallbacks):
        if isinstance(fallback, EndpointSettings):
            check_endpoint(fallback, environ, f"provider.fallbacks.{index}")


def _put_addresses_in_force(provider: OpenAIProvider, environ: Mapping[str, str]) -> OpenAIProvider:
    fallbacks = tuple(
        each.model_copy(update={"base_url": each.address(environ)})
        if isinstance(each, EndpointSettings)
        else each
        for each in provider.fallbacks
    )
    address = provider.address(environ)
    return provider.model_copy(update={"base_url": address, "fallbacks": fallbacks})


def _list_models(settings: Settings) -> dict[str, str]:
    """Return the models that parts of a run set themselves, by the keys that name them."""
    groups = {"roles": settings.roles, "reasoning": settings.reasoning}
    return {
        f"{group}.{name}.model": part.model
        for group, parts in groups.items()
        for name, part in parts
        if part.model is not None
    }


def _refuse_other_models(provider: LocalProvider, models: Mapping[str, str]) -> None:
    for key, model in models.items():
        if model != provider.model:
            raise ConfigError(
                f"{key}={model}: provider=local has one model, {provider.model}",
                hint=f"Set {key} to null, or use a server that has both models.",
            )


def _refuse_withheld_addresses(
    provider: AutoProvider | OpenAIProvider, environ: Mapping[str, str]
) -> None:
    """Raise ConfigError for an endpoint whose address would come from a `.env` that the person has
    not trusted."""
    if not isinstance(environ, Environment) or environ.file is None:
        return
    for endpoint in (provider, *provider.fallbacks):
        if not isinstance(endpoint, EndpointSettings) or endpoint.address(environ):
            continue
        name = endpoint.base_url_env or ""
        if address := environ.withheld.get(name, "").strip():
            key = endpoint.api_key_env
            from_file = key in environ.added
            origin = "that file" if from_file else "your environment"
            sent = f"the key {key} from {origin}" if environ.get(key) else "your task"
            raise ConfigError(
                f"{name} of {environ.file}, which you have not trusted, would have {sent} sent to "
                f"{show_address(address)!a}; nothing was sent",
                hint=f"`aeon trust {environ.file.parent}` shows the file and asks; or give the "
                f"address yourself: {name}=URL in the environment, or provider.base_url=URL.",
            )


def settle_provider(
    given: AutoProvider | CustomProvider,
    environ: Mapping[str, str],
    recorded: ProviderOrigin | None,
) -> OpenAIProvider | SimulatedProvider | CustomProvider:
    """Return what `auto` becomes, by the environment or as in the `recorded` run, with the values
    that were given; of an adapter of one's own, with the recorded name of its model."""
    if recorded is not None and recorded.kind == "custom":
        return _settle_custom(given, recorded)
    if isinstance(given, CustomProvider):
        return given
    address = given.address(environ)
    # No server gets another server's key.
    if recorded is not None and not address and recorded.api_key_env in (None, given.api_key_env):
        address = recorded.base_url
        given = given.model_copy(update={"base_url": address})
    if not _calls_models(given, address, environ, recorded):
        return _settle_simulated(given)
    # The user's own server may need no key; OpenAI's does.
    needs_key = given.require_key and not address
    return OpenAIProvider.model_validate(
        {**_select_values(given, OpenAIProvider), "require_key": needs_key}
    )


def _calls_models(
    given: AutoProvider,
    address: str | None,
    environ: Mapping[str, str],
    recorded: ProviderOrigin | None,
) -> bool:
    if recorded is not None:
        return recorded.kind != "simulated"
    return bool(address or given.client or environ.get("OPENAI_API_KEY"))


def _settle_simulated(given: AutoProvider) -> SimulatedProvider:
    # A provider that makes up its answers needs no waiting, unless the user has configured it.
    usual = RetrySettings()
    waits = {name: value for name, value in given.retry if value != getattr(usual, name)}
    retry = SIMULATED_RETRY.model_copy(update=waits)
    # Without a server no files are accepted.
    own = {"model": "simulated", "retry": retry, "accepts": ()}
    return SimulatedProvider.model_validate({**_select_values(given, SimulatedProvider), **own})


def _select_values(given: AutoProvider, kind: type[BaseModel]) -> dict[str, object]:
    """Return the values of `auto` that a provider of this kind has too."""
    names = AutoProvider.model_fields.keys() & kind.model_fields.keys() - {"kind"}
    return {name: getattr(given, name) for name in names}


def _settle_custom(
    given: AutoProvider | CustomProvider, recorded: ProviderOrigin
) -> CustomProvider:
    """Settle the model: the one under which the recorded answers are stored; the class to load
    never comes from a recording."""
    if isinstance(given, AutoProvider):
        given = CustomProvider(prices=given.prices, retry=given.retry)
    if given.model != NO_NAME:
        return given
    return given.model_copy(update={"model": recorded.model})


def check_endpoint(
    endpoint: EndpointSettings, environ: Mapping[str, str], place: str = "provider"
) -> None:
    """Raise ConfigError, naming the key below `place`, for a missing model, address, key or
    header."""

    def give(key: str, value: str) -> str:
        if place == "provider":
            return f"provider.{key}={value}"
        # An element with a key of its own is a mapping, not a name.
        return f"provider.fallbacks=[{{provider: {endpoint.name}, {key}: {value}}}]"

    if not endpoint.model:
        hint = (
            f"{give('model', 'NAME')}; NAME is what the server "
            "calls it. All keys: `aeon docs configuration`."
        )
        raise ConfigError(
            f"{place}.model: no model is named, and {endpoint.name} has no usual one", hint=hint
        )
    # OpenAI itself is the default only if nothing else is named: no other key may go there.
    if endpoint.address(environ) is None and endpoint.base_url_env != "OPENAI_BASE_URL":
        or_set = f", or set {endpoint.base_url_env}" if endpoint.base_url_env else ""
        hint = f"{give('base_url', 'https://HOST/v1')}{or_set}."
        raise ConfigError(f"{place}.base_url: no address for {endpoint.name}", hint=hint)
    for key, name in _list_needed_variables(endpoint, environ).items():
        if not environ.get(name, "").strip():
            in_file = isinstance(environ, Environment) and name in environ.withheld
            trusting = "Your .env has it: `aeon trust` lets it take effect. " if in_file else ""
            raise ConfigError(
                f"{place}.{key}={name}: the environment has no {name}",
                hint=f"{trusting}Set {name} in the environment or in a .env file; "
                f"for a server that needs no key, {give('require_key', 'false')}; "
                "to try Aeon without a model, env=dev provider=simulated.",
            )


def _list_needed_variables(
    endpoint: EndpointSettings, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment variables that an endpoint needs, by the key that names each."""
    key = {"api_key_env": endpoint.api_key_env} if endpoint.needs_key(environ) else {}
    headers = endpoint.extra_headers_env.items()
    return key | {f"extra_headers_env.{header}": name for header, name in headers}


def list_addressed_secrets(provider: object) -> dict[str, str]:
    """Return what the queries of a provider's addresses may have for keys, each with a name to show
    instead."""
    endpoints = (provider, *getattr(provider, "fallbacks", ()))
    values = dict.fromkeys(
        value
        for endpoint in endpoints
        for value in list_query_secrets(getattr(endpoint, "base_url", None) or "")
    )
    return {f"base_url query {number}": value for number, value in enumerate(values, start=1)}
