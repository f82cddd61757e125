"""Questions that a run leaves to a person who answers later: posted in the run's folder, and
answered from the folders of the runs that it resumes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from aeon.domain.errors import PersonAwaited
from aeon.domain.plan import FollowUpQuestion, OpenQuestion, PlanStep
from aeon.domain.request import current_site
from aeon.domain.values import JsonMapping
from aeon.files.fences import without_codes
from aeon.interaction.desk import Desk, is_overdue
from aeon.interaction.models import PersonAnswer
from aeon.store.session import Ask, DoStep
from aeon.tools.registry import ApprovalRequest, Approve

_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToAnswer:
    """A question for a person, of any kind; `name` is its id, `repeated` says that a tool call may
    already have been carried out."""

    kind: Literal["question", "approval", "step"]
    name: str
    text: str
    step_id: str | None
    assumption: str | None = None
    repeated: bool = False


class EarlierAnswers:
    """The answers of persons to the runs that this run resumes; `earlier` are their folders, by
    their ids, nearest first. Only unanswered questions are asked again."""

    def __init__(self, run_id: str, earlier: Mapping[str, Path]) -> None:
        self._run_id = run_id
        self._before = tuple(earlier)
        self._desks = tuple(Desk(path) for path in earlier.values())

    def before_asking(self, ask: Ask) -> Ask:
        """Return `ask`, called only for the planner's questions that nobody has answered."""

        def ask_the_rest(question: FollowUpQuestion) -> str | None:
            given = self._find(_describe_question(question))
            return given.answer if given else ask(question)

        return ask_the_rest

    def before_approving(self, approve: Approve) -> Approve:
        """Return `approve`, called only for the tool calls that nobody has allowed or refused."""

        def approve_the_rest(request: ApprovalRequest) -> bool:
            given = self._find(_describe_approval(request))
            return given.answer == "yes" if given else approve(request)

        return approve_the_rest

    def before_doing(self, do_step: DoStep) -> DoStep:
        """Return `do_step`, called only for the steps that nobody has done."""

        def do_the_rest(step: PlanStep) -> str | None:
            given = self._find(_describe_own_step(step))
            return given.answer if given else do_step(step)

        return do_the_rest

    def _find(self, asked: _ToAnswer) -> PersonAnswer | None:
        # One approval does not cover the next call: a call that may have been made is asked anew.
        desks = self._desks[:1] if asked.repeated else self._desks
        for desk in desks:
            answer = desk.list_answers().get(asked.name)
            if answer is not None and self._may_use(desk, answer, asked.kind):
                return answer
        return None

    def _may_use(self, desk: Desk, answer: PersonAnswer, kind: str) -> bool:
        """Check whether an answer counts for this run: an approval is for one call."""
        is_approved = kind == "approval" and answer.answer == "yes"
        return not is_approved or desk.use(answer.id, self._run_id, self._before)


class Deferral:
    """Questions that a run defers in its `folder`; `earlier` are the folders of the runs that it
    resumes, nearest first. A question without an answer is open for `deadline_seconds` from when it
    was first asked, forever without them. Each method raises PersonAwaited where there is no answer
    yet; thread-safe."""

    def __init__(
        self, folder: Path, earlier: Sequence[Path] = (), deadline_seconds: float | None = None
    ) -> None:
        self._desk = Desk(folder)
        self._earlier = tuple(Desk(path) for path in earlier)
        self._deadline_seconds = deadline_seconds
        self._lock = threading.Lock()
        self._posted: dict[str, OpenQuestion] = {}

    @property
    def posted(self) -> tuple[OpenQuestion, ...]:
        """The questions that this run waits for."""
        with self._lock:
            return tuple(self._posted[name] for name in sorted(self._posted))

    def ask(self, question: FollowUpQuestion) -> str | None:
        """Return the answer to a question of the planner; None where its assumption applies."""
        return self._post(_describe_question(question)).answer

    def approve(self, request: ApprovalRequest) -> bool:
        """Return whether a tool may be called."""
        return self._post(_describe_approval(request)).answer == "yes"

    def do_step(self, step: PlanStep) -> str | None:
        """Return the output of a step that a person does; None where nobody did it in time."""
        return self._post(_describe_own_step(step)).answer

    def _post(self, asked: _ToAnswer) -> PersonAnswer:
        """Post a question for a person, unless its deadline has passed."""
        desks = self._earlier[:1] if asked.repeated else self._earlier
        before = [
            (desk, question)
            for desk in desks
            for question in desk.list_questions()
            if question.id == asked.name
        ]
        first = min((question.asked_at for _, question in before), default=datetime.now(UTC))
        seconds = self._deadline_seconds
        question = OpenQuestion(
            id=asked.name,
            kind=asked.kind,
            text=asked.text,
            assumption=asked.assumption,
            step_id=asked.step_id,
            asked_at=first,
            deadline=None if seconds is None else first + timedelta(seconds=seconds),
        )
        if is_overdue(question):
            # Settled where it was asked: an answer given there just now counts, a later one not.
            desk = before[0][0] if before else self._desk
            return desk.settle_overdue(question)
        with self._lock:
            self._desk.post(question)
            self._posted[asked.name] = question
        raise PersonAwaited(f"{asked.name} waits for a person")


def _describe_question(question: FollowUpQuestion) -> _ToAnswer:
    key = question.model_dump(mode="json", exclude={"answer"})
    return _ToAnswer(
        kind="question",
        name=_make_id("question", key),
        text=question.question,
        step_id=question.step_id,
        assumption=question.assumption,
    )


def _describe_approval(request: ApprovalRequest) -> _ToAnswer:
    key = {
        "tool": request.tool.name,
        "arguments": dict(request.arguments),
        "repeated": request.repeated,
    }
    return _ToAnswer(
        kind="approval",
        name=_make_id("approval", key),
        text="\n".join((*request.describe(), "May it be called?")),
        step_id=request.step.step_id if request.step else None,
        assumption="no",
        repeated=request.repeated,
    )


def _describe_own_step(step: PlanStep) -> _ToAnswer:
    key = {"description": step.description, "context": step.incoming_context}
    return _ToAnswer(
        kind="step",
        name=_make_id("step", key),
        text="\n\n".join(describe_step(step)),
        step_id=step.step_id,
    )


def describe_step(step: PlanStep) -> Iterator[str]:
    """Yield what a person needs to do a step: its description, its inputs from other steps, and its
    state so far, where refinement has left it to them."""
    yield step.description
    if step.incoming_context:
        yield without_codes(step.incoming_context)
    why = step.clarity_reason or (step.errors[-1] if step.errors else "")
    if why:
        yield f"Why it is left to you: {why}"
    if step.step_output:
        yield f"What there is of it so far:\n{step.step_output}"


def _make_id(kind: str, key: JsonMapping) -> str:
    """Return an id that the same question has again in a resumed run, whose calls come from the
    same sites."""
    site = current_site()
    of_call = [site.pass_number, site.phase, site.step_id, site.sample]
    place = None if kind == "question" else of_call
    text = json.dumps([kind, place, key], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]}"
