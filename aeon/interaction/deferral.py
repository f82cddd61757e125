"""What a run leaves to a person who answers later: it is asked in the run's folder, and looked for
in the folders of the runs that it goes on with."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from aeon.domain.errors import PersonAwaited
from aeon.domain.plan import FollowUpQuestion, OpenQuestion, PlanStep
from aeon.domain.request import current_site
from aeon.files.fences import without_codes
from aeon.interaction.desk import Desk, is_overdue
from aeon.interaction.models import PersonAnswer
from aeon.tools.registry import ApprovalRequest

_ID_CHARACTERS = 8


class Deferral:
    """Questions that the run of an id defers in its `folder`; `earlier` are the folders of the runs
    that it goes on with, by their ids, nearest first. A question without an answer is open for
    `deadline_seconds` from when it was first asked, for ever without them. Each method raises
    PersonAwaited where there is no answer yet; thread-safe."""

    def __init__(
        self,
        folder: Path,
        run_id: str,
        earlier: Mapping[str, Path] = MappingProxyType({}),
        deadline_seconds: float | None = None,
    ) -> None:
        self._desk = Desk(folder)
        self._run_id = run_id
        self._before = tuple(earlier)
        self._earlier = tuple(Desk(path) for path in earlier.values())
        self._deadline_seconds = deadline_seconds
        self._lock = threading.Lock()
        self._posted: dict[str, OpenQuestion] = {}

    @property
    def posted(self) -> tuple[OpenQuestion, ...]:
        """What this run waits for."""
        with self._lock:
            return tuple(self._posted[name] for name in sorted(self._posted))

    def ask(self, question: FollowUpQuestion) -> str | None:
        """The answer to a question of the planner; None where its assumption holds."""
        key = question.model_dump(mode="json", exclude={"answer"})
        return self._find_answer(
            "question", key, question.question, question.step_id, question.assumption
        ).answer

    def approve(self, request: ApprovalRequest) -> bool:
        """Whether a tool may be called."""
        step_id = request.step.step_id if request.step else None
        key = {
            "tool": request.tool.name,
            "arguments": dict(request.arguments),
            "repeated": request.repeated,
        }
        text = "\n".join((*request.describe(), "May it be called?"))
        # Who allowed a call has not allowed the next: what may have been carried out is asked anew.
        desks = self._earlier[:1] if request.repeated else self._earlier
        return self._find_answer("approval", key, text, step_id, "no", desks).answer == "yes"

    def do_step(self, step: PlanStep) -> str | None:
        """The output of a step that a person does; None where nobody did it in time."""
        key = {"description": step.description, "context": step.incoming_context}
        text = "\n\n".join(describe_step(step))
        return self._find_answer("step", key, text, step.step_id, None).answer

    def _find_answer(
        self,
        kind: Literal["question", "approval", "step"],
        key: Mapping[str, Any],
        text: str,
        step_id: str | None,
        assumption: str | None,
        desks: Sequence[Desk] | None = None,
    ) -> PersonAnswer:
        name = _make_id(kind, key)
        earlier = self._earlier if desks is None else desks
        for desk in earlier:
            answer = desk.list_answers().get(name)
            if answer is not None and self._may_use(desk, answer, kind):
                return answer
        asked = [
            (desk, question)
            for desk in earlier
            for question in desk.list_questions()
            if question.id == name
        ]
        first = min((question.asked_at for _, question in asked), default=datetime.now(UTC))
        seconds = self._deadline_seconds
        question = OpenQuestion(
            id=name,
            kind=kind,
            text=text,
            assumption=assumption,
            step_id=step_id,
            asked_at=first,
            deadline=None if seconds is None else first + timedelta(seconds=seconds),
        )
        if is_overdue(question):
            # Where it was asked, so that an answer given there just now counts, and a later one does not.
            desk = asked[0][0] if asked else self._desk
            return desk.settle_overdue(question)
        with self._lock:
            self._desk.post(question)
            self._posted[name] = question
        raise PersonAwaited(f"{name} waits for a person")

    def _may_use(self, desk: Desk, answer: PersonAnswer, kind: str) -> bool:
        """Whether an answer counts for this run: an approval is for one call."""
        is_approved = kind == "approval" and answer.answer == "yes"
        return not is_approved or desk.use(answer.id, self._run_id, self._before)


def describe_step(step: PlanStep) -> Iterator[str]:
    """What a person needs to do a step: its description, what others gave it, and what it has come
    to so far, where refinement has left it to them."""
    yield step.description
    if step.incoming_context:
        yield without_codes(step.incoming_context)
    why = step.clarity_reason or (step.errors[-1] if step.errors else "")
    if why:
        yield f"Why it is left to you: {why}"
    if step.step_output:
        yield f"What there is of it so far:\n{step.step_output}"


def _make_id(kind: str, key: Mapping[str, Any]) -> str:
    """The same for the same question in a resumed run, whose calls come from the same places."""
    site = current_site()
    of_call = [site.pass_number, site.phase, site.step_id, site.sample]
    place = None if kind == "question" else of_call
    text = json.dumps([kind, place, key], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]}"
