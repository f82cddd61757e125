"""The keys that configuration files offer, with their comments, and files of which none can be read."""

from pathlib import Path

import pytest

from aeon.config.compose.reference import KeyEntry, entries_of
from aeon.config.load import compose
from aeon.domain.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ttl").mkdir()
    return tmp_path


def test_keys_have_the_comments_above_and_behind_them(folder: Path) -> None:
    path = folder / "ttl" / "mine.yaml"
    path.write_text(
        "defaults: [default]\n# The first.\nbase: 3  # Units.\ninner: {own: '${base}'}\n"
    )
    assert [entry for entry in entries_of("ttl", [folder]) if entry.file == path] == [
        KeyEntry("ttl.base", 3, "The first. Units.", path),
        KeyEntry("ttl.inner", {"own": "${base}"}, "", path),
        KeyEntry("ttl.inner.own", "${base}", "", path),
    ]


@pytest.mark.slow
def test_nesting_that_would_end_the_process_is_refused_with_its_file(folder: Path) -> None:
    path = folder / "ttl" / "mine.yaml"
    path.write_text("base: " + "[" * 100_000)
    with pytest.raises(ConfigError, match=r"mine\.yaml:1: nested more than 200 levels deep"):
        compose(["ttl=mine"], folder)
    assert path not in {entry.file for entry in entries_of("ttl", [folder])}
