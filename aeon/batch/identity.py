"""What tells the rows of one configuration from those of another."""

from __future__ import annotations

from typing import TypeVar

from aeon.app.aeon import Aeon
from aeon.config.settings import Settings, engine_settings, hash_of_json
from aeon.domain.values import Value

_Part = TypeVar("_Part", bound=Value)
_OF_PROVIDER = (
    *(
        "requests_per_minute",
        "tokens_per_minute",
        "max_concurrency",
        "timeout_seconds",
        "timeout_per",
    ),
    *("retry", "breaker", "patience_seconds", "stream", "api_key_env", "require_key"),
)
"""How requests travel, which decides no answer; an address says who answers, and is none of them."""
_WHOLE, _PART = 32, 4  # digits of the digest of all, then of each part's
_APART = ("batch.columns", "prompts", "schemas")


def identify(aeon: Aeon) -> str:
    """What tells the rows of one configuration from those of another: a digest of all, and a short one of each part, in
    hex. How requests travel and what is observed may change on the way."""
    columns = aeon.settings.batch.columns.model_dump(mode="json")
    apart = dict(
        zip(_APART, (columns, aeon.hashes["prompts"], aeon.hashes["schemas"]), strict=True)
    )
    parts = {**engine_settings(_without_travel(aeon.settings)), **apart}
    digests = [hash_of_json(part) for _, part in sorted(parts.items())]
    return hash_of_json(digests)[:_WHOLE] + "".join(digest[:_PART] for digest in digests)


def differing_parts(one: str, other: str) -> list[str]:
    """The parts of the configuration in which two identities differ; none where they are of two versions of Aeon."""
    names = sorted({*engine_settings(Settings()), *_APART})
    places = range(_WHOLE, _WHOLE + _PART * len(names), _PART)
    if not len(one) == len(other) == places.stop:
        return []
    return [
        name
        for name, at in zip(names, places, strict=True)
        if one[at : at + _PART] != other[at : at + _PART]
    ]


def _without_travel(settings: Settings) -> Settings:
    provider = _with_defaults(settings.provider, *_OF_PROVIDER)
    if fallbacks := getattr(provider, "fallbacks", ()):
        others = tuple(_with_defaults(other, *_OF_PROVIDER) for other in fallbacks)
        provider = provider.model_copy(update={"fallbacks": others})
    execution = _with_defaults(settings.execution, "max_parallel")
    changed = {
        "provider": provider,
        "execution": execution,
        "store": _with_defaults(settings.store, "retry_unusable", "on_error"),
        "observability": Settings().observability,
    }
    return settings.model_copy(update=changed)


def _with_defaults(part: _Part, *names: str) -> _Part:
    fields = type(part).model_fields
    return part.model_copy(
        update={name: fields[name].get_default() for name in names if name in fields}
    )
