"""A key or a password that was typed where it does not belong is in no message."""

from __future__ import annotations

import pytest

from tests.cli.conftest import RunAeon

KEY = "sk-0123456789-of-mine"


@pytest.mark.parametrize(
    "override", [f"ttl.base={KEY}", f"provider.model=[{KEY}", f"task_file={KEY}", f"ttl={KEY}"]
)
def test_an_override_is_quoted_without_a_key_of_the_environment(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ended = aeon(override)
    assert ended.status == 2
    assert KEY not in ended.err + ended.out
    assert "[value of OPENAI_API_KEY]" in ended.err


@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}", "{}?key=of-mine"])
def test_an_address_is_quoted_without_its_user_and_its_query(aeon: RunAeon, form: str) -> None:
    address = form.format("http://me:pass-of-mine@models.example/v1?key=of-mine")
    ended = aeon("task=x", "provider=openai", f"provider.base_url={address}")
    assert ended.status == 2
    assert "models.example/v1" in ended.err
    assert "of-mine" not in ended.err + ended.out
