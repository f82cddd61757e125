"""`aeon answer RUN`: shows the questions that a run waits for, and takes the answers."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from aeon.cli.terminal.questions import at_terminal, read_line, read_text
from aeon.cli.terminal.status import DONE, WAITING
from aeon.cli.terminal.streams import put, say, warn
from aeon.config.origin import read_bytes
from aeon.domain.errors import ConfigError
from aeon.domain.plan import OpenQuestion
from aeon.files.tables import load_unique
from aeon.files.text import read_linked_file
from aeon.interaction.desk import Desk
from aeon.report.ending import resume_command
from aeon.report.runs import JOB, find_cancellation, find_resuming
from aeon.report.words import answer_command, count_noun, one_line, relative_to_here


def answer(given: Namespace) -> int:
    """Answer the open questions of a run: with the given words, from a file, or at the terminal.
    DONE once none is open, else WAITING. Raises ConfigError for a folder without a run, a run
    that was cancelled or resumed, and answers that do not fit, of which none is then taken."""
    folder = given.run.expanduser().absolute()
    read_bytes(folder, "answer")  # raises where there is no run
    if (why := find_cancellation(folder)) is not None:
        raise ConfigError(f"{relative_to_here(folder)}: this run was cancelled: {why}")
    _refuse_resumed(folder)
    desk = Desk(folder)
    if given.answers:
        settled = desk.settle(_read_answers(given.answers))
        put("\n".join(f"{one.id}: {_describe_answer(one.answer)}" for one in settled))
    elif at_terminal():
        _ask_each(desk)
    waiting = desk.list_open()
    _warn_of_others(desk)
    if waiting:
        put("\n".join(_describe_waiting(waiting, folder)))
        return WAITING
    put(f"Nothing waits there. {_describe_way_on(folder)}")
    return DONE


def _refuse_resumed(folder: Path) -> None:
    """Raise ConfigError for a run that was resumed: the newest run that resumes it is the one that
    waits, or no longer does."""
    later = find_resuming(folder)
    if later is None:
        return
    place = f"{relative_to_here(later.directory)} ({later.ended})"
    raise ConfigError(
        f"{relative_to_here(folder)}: this run was resumed in {place}",
        hint=f"Answer there: {answer_command(later.directory)}"
        if later.waits_for
        else _describe_way_on(later.directory),
    )


def _describe_way_on(folder: Path) -> str:
    """Describe how a run without open questions continues."""
    if (folder.parent / JOB).is_file():
        # Resuming it by hand as well would pay twice.
        return "Its server continues it by itself, or when it is started again."
    return f"To resume: {resume_command(folder)}"


def _warn_of_others(desk: Desk) -> None:
    if not desk.has_own_answers():
        warn(
            f"{relative_to_here(desk.folder)}: these answers are not "
            "known as yours: the run accepts them only with trust=true"
        )


def _describe_answer(text: str | None) -> str:
    return "the assumption applies" if text is None else one_line(text, 200)


def _read_answers(words: Sequence[str]) -> dict[str, str]:
    """Return the answers by their ids, from words ID=TEXT or from one JSON file. Raises
    ConfigError."""
    if len(words) == 1 and "=" not in words[0]:
        return _read_file(Path(words[0]).expanduser())
    answers: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            hint = "Quote a text with blanks: ID='two words'. Give a file of answers alone."
            raise ConfigError(f"{word}: an answer is written ID=TEXT", hint=hint)
        if name in answers:
            raise ConfigError(f"{name} is answered twice", hint="Nothing was changed.")
        answers[name] = text
    return answers


def _read_file(path: Path) -> dict[str, str]:
    hint = 'It is an object: {"ID": "TEXT", ...}. Else, an answer is written ID=TEXT.'
    try:
        document = load_unique(read_linked_file(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}", hint=hint) from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not JSON: {error}", hint=hint) from None
    is_mapping = isinstance(document, dict)
    if not is_mapping or not all(isinstance(text, str) for text in document.values()):
        raise ConfigError(f"{path}: does not hold answers", hint=hint)
    return dict(document)


def _ask_each(desk: Desk) -> None:
    """Ask for each answer at the terminal, and store it at once, so that no typed answer is
    lost."""
    for question in desk.list_open():
        text = _ask(question)
        if text:
            desk.settle({question.id: text})


def _ask(question: OpenQuestion) -> str:
    """Return the typed answer; an empty one leaves the question open."""
    shown = "\n".join(_describe_question(question))
    if question.kind == "step":
        return read_text(f"\n{shown}\n  Its output; an empty one leaves it open")
    if question.kind == "question":
        return read_line(f"\n{shown}\n  Your answer (Enter leaves it open):")
    while True:
        text = read_line(f"\n{shown}\n  yes or no (Enter leaves it open):").lower()
        if text in ("yes", "y", "no", "n", ""):
            return text
        say(f"  {one_line(json.dumps(text), 80)} is neither yes nor no.")


def _describe_question(question: OpenQuestion) -> Iterator[str]:
    """Yield the lines of a question for a terminal."""
    first, *others = question.text.splitlines() or [""]
    step = f"step {one_line(question.step_id)}" if question.step_id else ""
    about = step if question.kind == "step" else ", ".join(filter(None, (question.kind, step)))
    yield f"{question.id} ({about}): {one_line(first)}"
    yield from (f"  {one_line(line)}" for line in others if line.strip())
    assumed = one_line(question.assumption) if question.assumption else "not done"
    if question.deadline is not None:
        yield f"  Open until {question.deadline:%Y-%m-%d %H:%M} UTC; from then on: {assumed}"
    elif question.kind == "question":
        yield f"  If nobody answers: {assumed}"


def _describe_waiting(waiting: Sequence[OpenQuestion], folder: Path) -> Iterator[str]:
    yield f"Waiting for {count_noun(len(waiting), 'answer')}:"
    for question in waiting:
        yield from _describe_question(question)
    yield f"To answer: {answer_command(folder)} {waiting[0].id}=..."
