"""The wrappers around a provider's adapter, assembled here and nowhere else.

Outermost first:

    RunLimits     the run's caps, on what it asks for: a stored answer counts too
    Store         a kept answer for a request that was paid before
    (Spend)       real money and tokens: what the store answers never arrives here
    (Fallback)    over endpoints, each of them:
      Retry         a backoff holds no slot of the limiter inside it
      (Breaker)     open: the fallback's turn, never a retry
      (RateLimit)   requests and tokens a minute
      vendor        the only place that knows an SDK

Those in parentheses have their place and are not built yet. The vendor's adapter lives as long as the process, the
wrappers of `run_stack` as long as a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aeon.errors import ConfigError
from aeon.events import Emit, ignore
from aeon.kernel.settings import LimitSettings
from aeon.llm.interface import LLMAdapter
from aeon.llm.limits import RunLimits
from aeon.llm.retry import Retry
from aeon.llm.settings import (
    LocalProvider,
    OpenAIProvider,
    Price,
    ProviderSettings,
    RetrySettings,
    SimulatedProvider,
)
from aeon.llm.stored import stored
from aeon.store.session import Session
from aeon.store.settings import StoreSettings

Environ = Mapping[str, str]


def process_stack(settings: ProviderSettings, environ: Environ) -> LLMAdapter:
    """The provider's adapter, for the life of the process; it connects with its first call.

    `settings` are definite: `auto` is resolved with the configuration. `environ` holds the key and the secret headers
    that they name. Raises `ConfigError` for a variable that is missing or cannot be sent, a base URL that is none, or a
    scenario that cannot be read.
    """
    factory = FACTORIES.get(settings.kind)
    if factory is None:
        raise ConfigError(
            f"provider={settings.kind} names no adapter: there are {', '.join(sorted(FACTORIES))}",
            hint="provider=auto becomes one of them in aeon.config.resolve_provider.",
        )
    return factory(settings, environ)


def run_stack(
    adapter: LLMAdapter,
    *,
    limits: LimitSettings,
    retry: RetrySettings,
    prices: Mapping[str, Price] | None = None,
    emit: Emit = ignore,
    stop: Callable[[], bool] = lambda: False,
    session: Session | None = None,
    store: StoreSettings | None = None,
    provider: ProviderSettings | None = None,
) -> RunLimits:
    """One run's wrappers around a process's adapter: RunLimits > Store > Retry > adapter.

    `stop` says whether the run was asked to stop; `emit` is told of retries. Calls that name no model are priced as the
    adapter's own `model`. `session` is the run's use of the store, as `store` says; what is asked is resolved over
    `provider`, the settings of the adapter.
    """
    inner: LLMAdapter = Retry(adapter, retry, emit=emit, stop=stop)
    if session is not None:
        inner = stored(inner, session, store or StoreSettings(), provider, stop)
    return RunLimits(inner, limits, prices, model=getattr(adapter, "model", ""))


def close(adapter: LLMAdapter) -> None:
    """Close what an adapter holds open, if it holds anything."""
    closing: Callable[[], None] | None = getattr(adapter, "close", None)
    if closing is not None:
        closing()


def _openai(settings: OpenAIProvider, environ: Environ) -> LLMAdapter:
    from aeon.llm.adapters.openai import OpenAIAdapter

    key = environ.get(settings.api_key_env, "").strip()
    if settings.require_key and not key:
        raise ConfigError(
            f"no key for the openai provider: the environment variable {settings.api_key_env} is not set",
            hint=f"Set {settings.api_key_env} (a .env file is read), or provider.require_key=false for a server that "
            "wants no key, or provider=simulated to call no model.",
        )
    settings = settings.model_copy(update={"base_url": settings.address(environ)})
    return OpenAIAdapter(settings, key or None, _headers(settings, environ))


def _headers(settings: OpenAIProvider, environ: Environ) -> dict[str, str]:
    """The extra headers, their values from the environment."""
    missing = sorted({name for name in settings.extra_headers_env.values() if not environ.get(name, "").strip()})
    if missing:
        raise ConfigError(
            f"provider.extra_headers_env needs {', '.join(missing)}, not set in the environment",
            hint="Set the variable, or remove the header from provider.extra_headers_env.",
        )
    return {header: environ[name].strip() for header, name in settings.extra_headers_env.items()}


def _simulated(settings: SimulatedProvider, environ: Environ) -> LLMAdapter:  # noqa: ARG001
    from aeon.llm.adapters.simulated import SimulatedAdapter

    return SimulatedAdapter(settings)


def _local(settings: LocalProvider, environ: Environ) -> LLMAdapter:  # noqa: ARG001
    from aeon.llm.adapters.local import LocalAdapter

    return LocalAdapter(settings)


FACTORIES: dict[str, Callable[..., LLMAdapter]] = {"local": _local, "openai": _openai, "simulated": _simulated}
"""The adapter of each provider `kind`, made from its settings and the environment."""
