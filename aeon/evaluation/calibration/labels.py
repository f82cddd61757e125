"""Answers that a person labelled good or bad: reads them, and makes the rows in which each is
judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import BaseModel, ConfigDict, StringConstraints

from aeon.batch.dataset import Row, digest
from aeon.domain.errors import ConfigError
from aeon.evaluation.judging import GivenAnswers
from aeon.files.explain import explain
from aeon.files.tables import read_rows
from aeon.files.text import encode_json, require_unicode

_MOST_PROBLEMS = 20
_HINT = (
    'A line is {"task": "...", "answer": "...", "good": true}, and inputs by name if it had any.'
)
_Text = Annotated[str, StringConstraints(min_length=1)]


class Label(BaseModel):
    """A labelled answer: its task and inputs, the answer, and whether a person finds it good."""

    model_config = ConfigDict(frozen=True, strict=True)

    task: _Text
    answer: _Text
    good: bool
    inputs: dict[str, str] = {}

    @property
    def id(self) -> str:
        """An id that identifies it among other answers, wherever it stands in its file."""
        return digest(encode_json({"asked": self.asked, "answer": self.answer}).decode()).hex()

    @property
    def asked(self) -> tuple[object, ...]:
        """The task and inputs that it answers."""
        return (self.task, *sorted(self.inputs.items()))


def read_labels(path: Path) -> list[Label]:
    """Read the labels of a JSON Lines file, each answer once. Raises ConfigError that names each
    line without a label, and each two lines that contradict each other."""
    labels: dict[str, Label] = {}
    lines: dict[str, int] = {}
    problems = []
    for line, given in read_rows(path):
        try:
            label = _read_label(given)
        except ValueError as error:
            problems.append(f"line {line}: {error}")
            continue
        first = labels.setdefault(label.id, label)
        lines.setdefault(label.id, line)
        if first.good != label.good:
            words = "good" if first.good else "bad"
            earlier = lines[label.id]
            problems.append(f"line {line}: the same answer is called {words} in line {earlier}")
    if problems:
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if problems[_MOST_PROBLEMS:] else []
        text = "\n  ".join([f"{path}:", *problems[:_MOST_PROBLEMS], *more])
        raise ConfigError(text, hint=_HINT)
    return list(labels.values())


def _read_label(given: object) -> Label:
    """Return the label in a line. Raises ValueError."""
    if isinstance(given, ValueError):
        raise given
    if not isinstance(given, dict):
        raise ValueError(f"a label is a JSON object, not {type(given).__name__}")
    try:
        label = Label.model_validate(given)
    except pydantic.ValidationError as error:
        mistakes = [mistake.sentence() for mistake in explain(error, given, Label)]
        raise ValueError("; ".join(mistakes)) from None
    for name in ("task", "answer"):
        if not require_unicode(getattr(label, name), name).strip():
            raise ValueError(f"{name}: is blank")
    return label


def require_both_kinds(labels: Sequence[Label], path: Path) -> None:
    """Raise ConfigError for labels that cannot show how often a judge is wrong."""
    good = sum(label.good for label in labels)
    if not labels:
        raise ConfigError(f"{path}: there are no labels", hint=_HINT)
    if good == len(labels):
        raise ConfigError(
            f"{path}: all {good} answers are labelled good, so "
            "they cannot show how often the judge lets a bad one pass",
            hint="Add answers that are bad: those of earlier "
            "passes, of a weaker model, or spoiled.",
        )
    if good == 0:
        raise ConfigError(
            f"{path}: all {len(labels)} answers are labelled bad, so they "
            "cannot show whether the judge lets a good one pass",
            hint="Add answers that are good.",
        )


def list_judged_rows(path: Path, labels: Sequence[Label], repeat: int) -> GivenAnswers:
    """Return each labelled answer of a file as a row in which it is judged, `repeat` times; the
    first judgements of all answers come first."""
    rows = list[Row]()
    for number in range(1, repeat + 1):
        for label in labels:
            place = len(rows) + 1
            name = name_judgement(label, number)
            inputs = dict(label.inputs)
            rows.append(Row(place, place, name, label.task, inputs, answer=label.answer))
    return GivenAnswers.of(path, rows)


def name_judgement(label: Label, number: int) -> str:
    """Return the id of the row with an answer's judgement of this number, from 1."""
    return f"{number}/{label.id}"
