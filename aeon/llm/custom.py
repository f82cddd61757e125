"""The adapter that you bring: `provider=custom provider.adapter=module:Class`, or an object given
in Python."""

from __future__ import annotations

import inspect
from dataclasses import replace

from aeon.domain.errors import AnswerError, ConfigError, ProviderError, StopRequested
from aeon.domain.request import FileForm, LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.files.reference import call_factory, load_object
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.llm.protocols import close, find_model, is_synthetic
from aeon.llm.settings import NO_NAME, CustomProvider, LimitedProvider, ProviderSettings

KEY = "provider.adapter"
GROUP = "aeon.adapters"
"""The entry points by which a package registers adapters."""
_PAGE = "`aeon docs python` has an example."


class CustomAdapter:
    """Calls an adapter from outside Aeon and enforces the interface. Passes Aeon's own errors on;
    raises ProviderError for every other exception, and when the result is not an LLMResponse."""

    def __init__(self, inner: LLMAdapter, settings: CustomProvider, *, owned: bool) -> None:
        self._inner = inner
        self._settings = settings
        self._owned = owned
        self.synthetic = is_synthetic(inner)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. An answer without usage counts as one request of unknown usage."""
        request = replace(request, parameters=request.parameters.over(self._settings.parameters))
        try:
            with redirect_prints_to_stderr():
                response = self._inner.complete(request)
            if not isinstance(response, LLMResponse):
                raise TypeError(f"complete returned {type(response).__name__}, not an LLMResponse")
        except (ProviderError, AnswerError, StopRequested):
            raise
        except (Exception, SystemExit) as error:
            failed = ProviderError(
                f"{KEY}={self._settings.adapter}: {type(error).__name__}: {error}",
                hint="Only ConnectionFailed, ServerFailed and RateLimited of "
                f"aeon.domain.errors are retried. {_PAGE}",
                usage=Usage.of_unanswered(request),
            )
            failed.usage_reported = False  # it may have been sent, and paid for
            raise failed from error
        usage = response.usage
        return replace(
            response,
            usage=usage if usage.requests else replace(usage, requests=1),
            usage_reported=response.usage_reported and usage != Usage(),
            model=response.model or request.parameters.model or "",
            synthetic=response.synthetic or self.synthetic,
        )

    def close(self) -> None:
        """Close the adapter, unless the caller passed it in and owns it."""
        if self._owned:
            close(self._inner)


def load_adapter(settings: CustomProvider) -> CustomAdapter:
    """Load the adapter class that the settings name and create it. Raises ConfigError for a class
    that is missing, is no adapter, or cannot be created with `provider.options`."""
    if not settings.adapter:
        raise ConfigError(
            f"{KEY}: provider=custom names no adapter",
            hint=f"Name your class: {KEY}=package.module:Class. To resume a run that got its adapter "
            "in Python, use "
            f'Aeon.from_config(["resume=DIR"], adapter=...). {_PAGE}',
        )
    named = f"{KEY}={settings.adapter}"
    found = load_object(KEY, settings.adapter, "Class", GROUP)
    _check(named, found, "a class")
    names = ", ".join(settings.options) or "none"
    made: LLMAdapter = call_factory(
        named,
        found,
        options=settings.options,
        hint=f"It is called with provider.options as keyword arguments: {names}.",
    )
    return CustomAdapter(made, settings, owned=True)


def describe_given(adapter: LLMAdapter, provider: ProviderSettings) -> CustomProvider:
    """Return the settings of an adapter object given in Python.

    Retries, rates and prices come from `provider`; `accepts` counts only with `provider=custom`.
    The model's name is that of `provider=custom`, else the adapter's `model`, else its class.
    Raises ConfigError for an object that is no adapter, and if the configuration names an adapter
    too.
    """
    kind = adapter if inspect.isclass(adapter) else type(adapter)
    name = f"{kind.__module__}:{kind.__qualname__}"
    _check(f"adapter={name}", adapter, "an object")
    model = find_model(adapter)
    accepts: tuple[FileForm, ...] = ()
    if isinstance(provider, CustomProvider):
        if provider.adapter:
            raise ConfigError(
                f"adapter={name}: the configuration also names one, {KEY}={provider.adapter}",
                hint=f"Leave one of them out; {KEY}=null clears the setting of a file or "
                "a recorded run.",
            )
        model = model if provider.model == NO_NAME else provider.model
        accepts = provider.accepts
    shared = provider.model_dump(include=set(LimitedProvider.model_fields))
    own = {"accepts": accepts, "adapter": name, "model": model or name}
    return CustomProvider.model_validate({**shared, **own})


def _check(named: str, found: object, expected: str) -> None:
    problem = None
    if inspect.isclass(found) != (expected == "a class"):
        problem = f"no adapter, for it is not {expected}"
    elif not isinstance(found, LLMAdapter) or not callable(found.complete):
        problem = "no adapter, for it has no method complete(request)"
    elif inspect.iscoroutinefunction(found.complete):
        problem = "complete is a coroutine function, and is called from threads"
    if problem:
        raise ConfigError(f"{named}: {problem}", hint=_PAGE)
