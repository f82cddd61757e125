"""`docs/people.md` shows the formats of its two files as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_schemas_on_the_page_are_those_that_are_published() -> None:
    page = (ROOT / "docs" / "people.md").read_text(encoding="utf-8")
    shown = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    folder = ROOT / "schemas" / "artefacts"
    published = [folder / f"{name}.json" for name in ("questions", "answers")]
    assert shown == [json.loads(path.read_text(encoding="utf-8")) for path in published]
