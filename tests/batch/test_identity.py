"""What tells the rows of one batch from those of another."""

import pytest

from aeon.app.aeon import Aeon
from aeon.batch.identity import differing_parts, identify

FALLBACK = "provider.fallbacks=[{kind: openai, base_url: 'http://127.0.0.1:8', %s}]"


def digests(*overrides: str) -> tuple[str, str]:
    """That of the batch, and that of the configuration."""
    given = ["provider=openai", "provider.base_url=http://127.0.0.1:9/v1", *overrides]
    with Aeon.from_config(given, environ={}) as aeon:
        return identify(aeon), aeon.hashes["configuration"]


@pytest.mark.parametrize(
    "override",
    [
        "provider.requests_per_minute=60",
        "provider.tokens_per_minute=9000",
        "provider.max_concurrency=2",
        "provider.timeout_seconds=5",
        "provider.timeout_per=attempt",
        "provider.api_key_env=NEW_KEY",
        "provider.require_key=false",
        "provider.stream=always",
        "provider.breaker.failures=9",
        "provider.retry.attempts=9",
        "execution.max_parallel=2",
    ],
)
def test_how_requests_travel_may_change_on_the_way(override: str) -> None:
    (batch, configuration), (changed_batch, changed_configuration) = digests(), digests(override)
    assert changed_batch == batch
    assert changed_configuration != configuration


def test_how_those_of_a_fallback_travel_may_change_too() -> None:
    before, after = (
        digests(FALLBACK % f"model: m, timeout_seconds: {seconds}")[0] for seconds in (5, 6)
    )
    assert after == before


@pytest.mark.parametrize(
    "override",
    [
        "provider.base_url=http://127.0.0.1:7/v1",
        "provider.model=another",
        "provider.temperature=0.5",
        "provider.extra_body={top_p: 0.5}",
        "execution.max_steps=3",
        "convergence.completeness=0.7",
        "batch.columns.task=question",
        FALLBACK % "model: m",
    ],
)
def test_what_decides_an_answer_makes_another_batch(override: str) -> None:
    assert digests(override)[0] != digests()[0]


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("convergence.completeness=0.5", "convergence"),
        ("provider.model=b", "provider"),
        ("batch.columns.task=question", "batch.columns"),
        ("limits.max_llm_calls=9", "limits"),
    ],
)
def test_the_parts_that_differ_are_known(override: str, part: str) -> None:
    assert differing_parts(digests()[0], digests(override)[0]) == [part]


def test_of_another_versions_identity_no_parts_are_known() -> None:
    assert differing_parts(digests()[0], "0" * 64) == []


def test_what_is_observed_may_change_on_the_way() -> None:
    assert digests("observability=none")[0] == digests()[0]
