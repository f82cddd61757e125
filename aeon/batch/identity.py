"""Identifies a configuration, to distinguish its rows from those of another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar
from urllib.parse import urlsplit

from aeon.app.aeon import Aeon
from aeon.config.compose.literal import Composition
from aeon.config.load import compose_settings
from aeon.config.settings import Settings, engine_settings, hash_of_json
from aeon.domain.values import JsonObject, Value, flatten

_Part = TypeVar("_Part", bound=Value)
_OF_PROVIDER = (
    "requests_per_minute",
    "tokens_per_minute",
    "max_concurrency",
    "timeout_seconds",
    "timeout_per",
    "retry",
    "breaker",
    "patience_seconds",
    "stream",
    "api_key_env",
    "require_key",
    "prompt_cache",
    "background",
)
"""Settings of the transport, which affect no answer. An address does, but for its port."""
# Digits of the digest of all, and of each key's.
_WHOLE = 32
_PART = 6


def identify(aeon: Aeon) -> str:
    """Return the identity of a configuration: a digest of all, in hex, and for each key that
    differs from Aeon's default, its name and a short digest. The code that checks call counts,
    settings of transport and observability do not."""
    values = _values_of(aeon.settings)
    values |= {name: aeon.hashes[name] for name in ("prompts", "schemas")}
    code = {f"convergence.checks.{one.name}.code": one.code for one in aeon.checks.checks}
    values |= {key: digest for key, digest in code.items() if digest}
    usual = _values_of(compose_settings(Composition()))
    digests = {key: hash_of_json(value) for key, value in values.items()}
    own = sorted(key for key, value in values.items() if key not in usual or usual[key] != value)
    named = (f" {key}={digests[key][:_PART]}" for key in own)
    return hash_of_json(digests)[:_WHOLE] + "".join(named)


def find_differing_keys(one: str, other: str) -> list[str]:
    """Return the keys of the configuration in which two identities differ; none where the versions
    of Aeon differ."""
    before, after = (dict(_keys_of(identity)) for identity in (one, other))
    differing = {key for key in before | after if before.get(key) != after.get(key)}
    # A group without values of its own stands for itself, until a key of it is set.
    groups = {key.rpartition(".")[0] for key in differing}
    return sorted(differing - groups)


def _keys_of(identity: str) -> Iterator[tuple[str, str]]:
    for text in identity.split(" ")[1:]:
        key, _, digest = text.rpartition("=")
        yield key, digest


def _values_of(settings: Settings) -> JsonObject:
    columns = {"batch": {"columns": settings.batch.columns.model_dump(mode="json")}}
    parts = engine_settings(_without_travel(settings)) | columns
    parts = {name: part for name, part in parts.items() if name not in ("prompts", "schemas")}
    # A user's own name may hold anything; its blanks would end the key.
    return {key.replace(" ", "_"): value for key, value in flatten(parts)}


def _without_travel(settings: Settings) -> Settings:
    provider = _without_port(_with_defaults(settings.provider, *_OF_PROVIDER))
    if fallbacks := getattr(provider, "fallbacks", ()):
        others = tuple(_without_port(_with_defaults(each, *_OF_PROVIDER)) for each in fallbacks)
        provider = provider.model_copy(update={"fallbacks": others})
    execution = _with_defaults(settings.execution, "max_parallel")
    interaction = settings.interaction
    if interaction.kind == "ask":
        # A person answers, whether now or later.
        interaction = interaction.model_copy(update={"kind": "defer"})
    changed = {
        "interaction": interaction,
        "provider": provider,
        "execution": execution,
        "convergence": _with_defaults(settings.convergence, "calibration"),
        "observability": Settings().observability,
    }
    return settings.model_copy(update=changed)


def _without_port(provider: _Part) -> _Part:
    """Return the provider without its port, which may change when its server restarts."""
    address = getattr(provider, "base_url", None)
    if not address:
        return provider
    url = urlsplit(address)
    host = url.netloc.rpartition("@")[2]
    alone = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return provider.model_copy(update={"base_url": url._replace(netloc=alone).geturl()})


def _with_defaults(part: _Part, *names: str) -> _Part:
    fields = type(part).model_fields
    return part.model_copy(
        update={name: fields[name].get_default() for name in names if name in fields}
    )
