"""The two files of a run that waits for a person: what it asks, and what was answered.
docs/people.md explains them."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from aeon.domain.plan import OpenQuestion
from aeon.domain.values import Value

QUESTIONS = "questions.json"
ANSWERS = "answers.json"


class QuestionList(Value):
    """`questions.json`: everything that the run in this folder has left to a person, in the order
    in which it was asked."""

    format: Literal["aeon.questions/1"] = "aeon.questions/1"
    questions: tuple[OpenQuestion, ...] = ()


class PersonAnswer(Value):
    """How a question was settled. `answer` is a text; of an approval `yes` or `no`; None where the
    assumption holds. `by`: a person, or the deadline, which had passed. `used_by` is the run that
    has called the tool of an approval, which is for one call."""

    id: str = Field(min_length=1)
    answer: str | None = None
    answered_at: AwareDatetime
    by: Literal["person", "deadline"] = "person"
    used_by: str | None = None


class AnswerList(Value):
    """`answers.json`: what was answered. By its `seal` the answers are known as those of the person
    who resumes the run; None where they have no folder of state."""

    format: Literal["aeon.answers/1"] = "aeon.answers/1"
    answers: tuple[PersonAnswer, ...] = ()
    seal: str | None = None
