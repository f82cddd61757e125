"""What may be a key in an address."""

from __future__ import annotations

import pytest

from aeon.domain.values import list_query_secrets


@pytest.mark.parametrize(
    ("query", "secrets"),
    [
        ("?token=secret%2Bone", ["secret%2Bone", "secret+one"]),
        ("?barekey1", ["barekey1"]),
        ("?sig=abc==", ["abc=="]),
        ("?api-version=2024-10-21&Deployment=gpt-4o-mini&provider=anthropic", []),
        ("?api-version=1&api_key=k&empty=", ["k"]),
        ("", []),
    ],
)
def test_what_a_query_may_have_for_keys(query: str, secrets: list[str]):
    assert list_query_secrets(f"https://host/v1{query}") == secrets
