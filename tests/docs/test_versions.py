"""The page of versions names every format of a file, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import aeon

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")


def test_each_format_that_is_declared_stands_in_the_table() -> None:
    code = "".join(path.read_text("utf-8") for path in Path(aeon.__file__).parent.rglob("*.py"))
    declared = set(re.findall(r'^    format: Literal\["([^"]+)"\]', code, re.MULTILINE))
    assert "aeon.run/2" in declared
    assert set(re.findall(r"^\| `(aeon\.[\w.]+/\d+)` \|", PAGE, re.MULTILINE)) == declared


def test_the_changelog_has_a_section_for_what_is_not_released() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert versions[0] == "Unreleased"
