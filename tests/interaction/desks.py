"""Folders of runs that ask something."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aeon.domain.plan import OpenQuestion
from aeon.interaction.desk import Desk

ASKED = datetime(2026, 11, 23, 10, tzinfo=UTC)


def question(name: str = "question-1", **fields: Any) -> OpenQuestion:
    values = {"kind": "question", "text": "Which city?", "assumption": "Oslo", "asked_at": ASKED}
    return OpenQuestion(id=name, **{**values, **fields})


def approval(name: str = "approval-1", **fields: Any) -> OpenQuestion:
    return question(name, kind="approval", text="May it be called?", assumption="no", **fields)


def step(name: str = "step-1", **fields: Any) -> OpenQuestion:
    return question(
        name, kind="step", text="Measure the room", assumption=None, step_id="m", **fields
    )


def in_the_past(**fields: Any) -> dict[str, Any]:
    return {"deadline": datetime.now(UTC) - timedelta(seconds=1), **fields}


def make_desk(folder: Path, *questions: OpenQuestion, run_id: str = "a1b2") -> Desk:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"run_id": run_id}))
    desk = Desk(folder)
    for each in questions:
        desk.post(each)
    return desk
