"""The questions and the answers in the folder of a run, for any program that shows questions and
takes answers: a terminal, a server.

    Desk(folder).list_open()                    the open questions
    Desk(folder).settle({"question-1f2e3d4c": "Oslo"})   one or more answers, all of them or none
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pydantic

from aeon.config.origin import FILE as ORIGIN
from aeon.config.own_runs import is_own, make_seal, require_own
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.domain.plan import OpenQuestion
from aeon.domain.values import Value
from aeon.files.explain import first_mistake
from aeon.files.secret_forms import mask
from aeon.files.text import (
    encode_json,
    lock_file,
    open_linked_file,
    read_regular_file,
    require_unicode,
)
from aeon.interaction.models import ANSWERS, QUESTIONS, AnswerList, PersonAnswer, QuestionList
from aeon.observability.artefacts import replace_file

MOST_BYTES = 64 * 2**20
"""The most bytes of each of the two files."""
_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.02
_YES_OR_NO = {"yes": "yes", "y": "yes", "no": "no", "n": "no"}
_AFTER_DEADLINE = {
    "question": "the assumption holds",
    "approval": "the tool is not called",
    "step": "the step fails",
}
D = TypeVar("D", bound=Value)


class Desk:
    """The questions of the run in a folder, and their answers. Several programs may use it at the
    same time: each file is replaced whole, by one program at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list_questions(self) -> tuple[OpenQuestion, ...]:
        """Return all questions of the run. Raises ConfigError for a file that cannot be read."""
        return self._read(QUESTIONS, QuestionList).questions

    def list_answers(self) -> dict[str, PersonAnswer]:
        """Return the answers, by the ids of their questions. Raises ConfigError for a file that
        cannot be read."""
        return {answer.id: answer for answer in self._read(ANSWERS, AnswerList).answers}

    def list_open(self) -> tuple[OpenQuestion, ...]:
        """Return the questions that can still be answered. Raises ConfigError."""
        answered = self.list_answers()
        return tuple(
            question
            for question in self.list_questions()
            if question.id not in answered and not is_overdue(question)
        )

    def post(self, question: OpenQuestion) -> None:
        """Add a question, unless it exists. Raises ConfigError and ArtefactError."""
        with self._alone():
            questions = self.list_questions()
            if all(question.id != each.id for each in questions):
                self._write(QUESTIONS, QuestionList(questions=(*questions, question)))

    def settle(self, given: Mapping[str, str]) -> tuple[PersonAnswer, ...]:
        """Answer questions, all of them or none. An approval is answered yes or no, a step with its
        output; an empty answer to a question accepts its assumption. Raises ConfigError for a
        question that does not exist, is settled or past its deadline, and for an answer that does
        not fit; ArtefactError when the answers cannot be written."""
        with self._alone():
            questions = {question.id: question for question in self.list_questions()}
            settled = self.list_answers()
            now = datetime.now(UTC)
            new = tuple(
                PersonAnswer(
                    id=name,
                    answer=_fit_answer(_find_open(questions, settled, name, self.folder), text),
                    answered_at=now,
                )
                for name, text in given.items()
            )
            if new:
                self._write_answers((*settled.values(), *new))
        return new

    def settle_overdue(self, question: OpenQuestion) -> PersonAnswer:
        """Settle a question by its assumption, since its deadline has passed, unless it was
        answered before. Raises ConfigError and ArtefactError."""
        with self._alone():
            settled = self.list_answers()
            if question.id in settled:
                return settled[question.id]
            answer = "no" if question.kind == "approval" else None
            now = datetime.now(UTC)
            settlement = PersonAnswer(id=question.id, answer=answer, answered_at=now, by="deadline")
            self._write_answers((*settled.values(), settlement))
        return settlement

    def use(self, name: str, run_id: str, before: Collection[str]) -> bool:
        """Reserve an approval for a run, which resumes the runs `before`, and return whether it may
        use it: not if another one has. Raises ConfigError and ArtefactError."""
        with self._alone():
            settled = self.list_answers()
            used_by = settled[name].used_by
            if used_by is None:
                settled[name] = settled[name].model_copy(update={"used_by": run_id})
                self._write_answers(settled.values())
        return used_by in (None, run_id, *before)

    def has_own_answers(self) -> bool:
        """Check whether the answers, if there are any, are known as given by this person to this
        run."""
        answers = self._read(ANSWERS, AnswerList)
        return not answers.answers or is_own(self._describe_sealed(answers), answers.seal)

    def require_own_answers(self, trust: bool | str, env: str) -> None:
        """Raise ConfigError where a file cannot be read, and UntrustedRun where the answers are not
        known as this person's, and neither `trust` nor the environment `env` allows them."""
        self.list_questions()
        answers = self.list_answers().values()
        own = self.has_own_answers()
        lines = [f"  {answer.id}: {json.dumps(answer.answer)}" for answer in answers]
        named = f"{self.folder / ANSWERS}"
        problem = (
            "these answers are not known as yours: somebody else gave them, or they were given on "
            "another machine. The run would go on with"
        )
        given = [each.model_dump(mode="json", exclude={"used_by"}) for each in answers]
        digest = hashlib.sha256(encode_json(given))
        shown = "\n".join(lines)
        require_own(
            named,
            digest.hexdigest(),
            own=own,
            trust=trust,
            env=env,
            shown=shown,
            problem=problem,
            command=f"aeon resume={self.folder}",
        )

    def _write_answers(self, settled: Iterable[PersonAnswer]) -> None:
        answers = AnswerList(answers=tuple(settled))
        # Masked first: the seal covers the content of the file.
        answers = AnswerList.model_validate_json(mask(encode_json(answers.model_dump(mode="json"))))
        # Adding to somebody else's answers does not vouch for those.
        seal = make_seal(self._describe_sealed(answers)) if self.has_own_answers() else None
        self._write(ANSWERS, answers.model_copy(update={"seal": seal}))

    def _describe_sealed(self, answers: AnswerList) -> dict[str, object]:
        """Return the content that the seal covers: these answers, to this run and no other."""
        run_id = (self._load(ORIGIN) or {}).get("run_id")
        return {**answers.model_dump(mode="json", exclude={"seal"}), "run_id": run_id}

    def _read(self, name: str, kind: type[D]) -> D:
        document = self._load(name)
        if document is None:
            return kind()
        try:
            return kind.model_validate(document)
        except pydantic.ValidationError as error:
            problem = f"{self.folder / name}: {first_mistake(error)}"
            raise ConfigError(problem, hint="docs/people.md describes the file.") from None

    def _load(self, name: str) -> dict[str, object] | None:
        """Load the JSON object in a file; None where there is no file."""
        path = self.folder / name
        try:
            data = read_regular_file(path, MOST_BYTES)
            if len(data) > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES // 2**20} MB")
            document = json.loads(data)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: it cannot be read: {error}") from None
        if not isinstance(document, dict):
            raise ConfigError(f"{path}: it must be an object")
        return document

    def _write(self, name: str, document: Value) -> None:
        content = encode_json(document.model_dump(mode="json"), indent=2) + b"\n"
        replace_file(self.folder / name, content)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other program change the files while the block lasts. The files themselves cannot
        be locked, since they are replaced."""
        path = self.folder / ORIGIN
        try:
            file = open_linked_file(path)
        except OSError as error:
            problem = f"{self.folder}: this is not a run's directory: {ORIGIN} cannot be read"
            why = error.strerror or str(error)
            raise ConfigError(f"{problem}: {why}", hint="`aeon runs` lists runs.") from None
        with file:
            until = time.monotonic() + _PATIENCE_SECONDS
            while lock_file(file) is False:
                if time.monotonic() > until:
                    raise ArtefactError(f"{self.folder}: another program is answering there")
                time.sleep(_POLL_SECONDS)
            yield


def is_overdue(question: OpenQuestion) -> bool:
    """Check whether the deadline of a question has passed."""
    return question.deadline is not None and datetime.now(UTC) >= question.deadline


def _find_open(
    questions: Mapping[str, OpenQuestion],
    settled: Mapping[str, PersonAnswer],
    name: str,
    folder: Path,
) -> OpenQuestion:
    """Return the question of an id, if it can be answered now. Raises ConfigError."""
    question = questions.get(name)
    if question is None:
        waiting = ", ".join(each for each in questions if each not in settled)
        raise ConfigError(
            f"{folder}: there is no question '{name}'", hint=f"Open questions: {waiting or 'none'}."
        )
    if name in settled:
        before = settled[name]
        what = "its assumption applies" if before.answer is None else before.answer
        raise ConfigError(
            f"{name} is settled since {before.answered_at:%Y-%m-%d %H:%M:%S} UTC: {what}",
            hint="Nothing was changed. The resumed run uses that answer.",
        )
    if is_overdue(question):
        raise ConfigError(
            f"{name}: its deadline, {question.deadline:%Y-%m-%d %H:%M:%S} UTC, has passed",
            hint=f"Nothing was changed. In the resumed run {_AFTER_DEADLINE[question.kind]}.",
        )
    return question


def _fit_answer(question: OpenQuestion, text: str) -> str | None:
    """Convert an answer to the form that its question takes. Raises ConfigError."""
    require_unicode(text, question.id)
    answer = text.strip()
    if question.kind == "approval":
        if answer.lower() not in _YES_OR_NO:
            raise ConfigError(f"{question.id}: an approval is answered yes or no, not {answer!r}")
        return _YES_OR_NO[answer.lower()]
    if question.kind == "step" and not answer:
        raise ConfigError(f"{question.id}: the output of step {question.step_id} is empty")
    return answer or None
