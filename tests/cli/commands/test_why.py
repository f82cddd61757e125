"""`aeon config why KEY`: what is in force, where it stands, and what it took the place of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon
from tests.cli.test_trust import hash_in


def test_the_value_in_force_comes_first_then_what_it_took_the_place_of(aeon: RunAeon) -> None:
    ended = aeon("config", "why", "ttl.base", "ttl=small", "ttl.base=7")
    value, in_force, *earlier = ended.out.splitlines()
    assert (ended.status, value) == (0, "ttl.base = 7")
    assert in_force == "  7  ttl.base=7 (on the command line)"
    assert "conf/ttl/small.yaml:" in earlier[0]
    assert earlier[0].endswith(" (chosen by ttl=small)")
    assert all(line.startswith("  instead of ") for line in earlier)


def test_of_a_group_each_override_of_a_key_in_it_is_named(aeon: RunAeon) -> None:
    ended = aeon("config", "why", "convergence", "convergence.completeness=0.9")
    value, in_force, *_ = ended.out.splitlines()
    assert '"completeness": 0.9' in value
    assert in_force == (
        '  {"completeness": 0.9}  convergence.completeness=0.9 (on the command line)'
    )


def test_what_the_project_sets_is_said_to_be_of_its_file(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aeon.yaml").write_text("overrides:\n  ttl.base: 9\n", encoding="utf-8")
    monkeypatch.setenv("AEON_TRUST", hash_in(aeon("trust")))
    lines = aeon("config", "why", "ttl.base").out.splitlines()
    assert lines[:2] == ["ttl.base = 9", "  9  ttl.base=9 (in aeon.yaml)"]


def test_a_key_that_there_is_not_is_a_mistake(aeon: RunAeon) -> None:
    ended = aeon("config", "why", "ttl.bass")
    assert ended.status == 2
    assert "ttl.bass: there is no such key" in ended.err
