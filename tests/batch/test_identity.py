"""What tells the rows of one batch from those of another."""

from pathlib import Path

import pytest

from aeon.app.aeon import Aeon
from aeon.batch.identity import find_differing_keys, identify

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
        "provider.patience_seconds=9",
        "provider.base_url=http://127.0.0.1:7/v1",
        "execution.max_parallel=2",
    ],
)
def test_how_requests_travel_may_change_on_the_way(override: str) -> None:
    (batch, configuration), (changed_batch, changed_configuration) = digests(), digests(override)
    assert changed_batch == batch
    assert changed_configuration != configuration


def test_a_person_may_answer_now_or_later() -> None:
    assert digests("interaction=ask")[0] == digests("interaction=defer")[0]
    assert digests("interaction=none")[0] != digests("interaction=defer")[0]


def test_how_those_of_a_fallback_travel_may_change_too() -> None:
    before, after = (
        digests(FALLBACK % f"model: m, timeout_seconds: {seconds}")[0] for seconds in (5, 6)
    )
    assert after == before


@pytest.mark.parametrize(
    "override",
    [
        "provider.base_url=http://127.0.0.2:9/v1",
        "provider.base_url=http://127.0.0.1:9/v2",
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
    ("override", "key"),
    [
        ("convergence.completeness=0.5", "convergence.completeness"),
        ("provider.model=b", "provider.model"),
        ("batch.columns.task=question", "batch.columns.task"),
        ("limits.max_llm_calls=9", "limits.max_llm_calls"),
        ("++convergence.criteria={is it short: yes}", "convergence.criteria.is_it_short"),
    ],
)
def test_the_keys_that_differ_are_known(override: str, key: str) -> None:
    before, after = digests()[0], digests(override)[0]
    assert find_differing_keys(before, after) == find_differing_keys(after, before) == [key]


def test_an_identity_holds_what_differs_from_what_aeon_comes_with_and_no_value() -> None:
    identity = digests("convergence.completeness=0.875")[0]
    assert len(identity) < 400
    assert "0.875" not in identity
    assert "limits" not in identity


def test_of_another_versions_identity_no_keys_are_known() -> None:
    usual = digests()[0]
    assert find_differing_keys(usual, f"{'0' * 32}{usual[32:]}") == []


def test_what_is_observed_may_change_on_the_way() -> None:
    assert digests("observability=none")[0] == digests()[0]


def test_a_group_is_not_named_beside_its_key():
    assert find_differing_keys("v limits=a", "v limits.max_passes=b x=c") == [
        "limits.max_passes",
        "x",
    ]


def test_rows_that_other_code_of_a_check_decided_are_another_batch(
    tmp_path: Path,
) -> None:
    (tmp_path / "answer_test.sh").write_text("exit 0\n", encoding="utf-8")
    check = (
        "convergence.checks={tests: {type: command, value: [sh, answer_test.sh], "
        f"files: [{tmp_path / 'answer_test.sh'}]}}}}"
    )
    before, _ = digests(check)
    assert digests(check)[0] == before
    (tmp_path / "answer_test.sh").write_text("exit 1\n", encoding="utf-8")
    after, _ = digests(check)
    assert find_differing_keys(before, after) == ["convergence.checks.tests.code"]
