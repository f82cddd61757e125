"""One request, one answer, checked: a value or the errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, TypeVar

import pydantic

from aeon.domain import events
from aeon.domain.errors import (
    AeonError,
    AnswerError,
    ComponentFailed,
    EmptyAnswer,
    Filtered,
    LLMError,
    Oversized,
    Truncated,
)
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.extract import ExtractError, extract_json
from aeon.schema.json_schema import pointer
from aeon.schema.validators import (
    FieldError,
    SchemaValidator,
    find_errors,
    kind_of,
    shorten_message,
)

T = TypeVar("T")
MAX_ERRORS = 20  # the most that a repair prompt shows
_FAILURES: Mapping[str, type[AnswerError]] = {"length": Truncated, "content_filter": Filtered}
MOST_CHARACTERS = 4_000_000
"""Characters read of an answer: far above what a model writes, far below what stalls a program."""
MOST_ENTRIES = 1_000
"""Most issues, or questions, in one answer."""


class InvalidAnswer(Exception):
    """An answer that does not fit its call. `errors` gives the places and reasons and is never
    empty."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors) or (FieldError("", "the answer is not valid"),)
        super().__init__("; ".join(map(str, self.errors)))


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """A response with its value, or, if `value` is None, with the errors in the answer."""

    response: LLMResponse
    value: T | None = None
    errors: tuple[FieldError, ...] = ()


@contextmanager
def locate_errors(place: str) -> Iterator[None]:
    """Turn pydantic's errors in this block into an InvalidAnswer, with paths below `place`, a JSON
    pointer into the answer."""
    try:
        yield
    except pydantic.ValidationError as error:
        raise InvalidAnswer(
            FieldError(place + e.pointer, e.message) for e in _of_pydantic(error)
        ) from error


def check_answer(text: str, validator: SchemaValidator, parse: Callable[[Any], T]) -> T:
    """Parse the value in a model's text. Raises InvalidAnswer with the errors of the JSON, else of
    the schema, else of `parse` (its InvalidAnswer, pydantic errors and ValueError): the first 20
    and the number of the rest."""
    accepted: list[Any] = []

    def accepts(form: object) -> bool:
        if validator.is_valid(form):
            accepted.append(form)
        return bool(accepted)

    try:
        value = extract_json(text, accepts)
        # An accepted value has no errors to look for.
        if not accepted and (violations := find_errors(validator, value)):
            raise InvalidAnswer(_cap_errors(violations))
        return parse(value)
    except ExtractError as error:
        raise InvalidAnswer([FieldError("", error.message, "form")]) from error
    except pydantic.ValidationError as error:
        raise InvalidAnswer(_cap_errors(_of_pydantic(error))) from error
    except RecursionError as error:
        raise InvalidAnswer([FieldError("", "nested too deeply", "form")]) from error
    except ValueError as error:
        raise InvalidAnswer([FieldError("", shorten_message(str(error)))]) from error


def exchange(
    llm: LLMAdapter,
    request: LLMRequest,
    validator: SchemaValidator,
    parse: Callable[[Any], T],
    *,
    emit: events.Emit = events.ignore,
) -> Answered[T]:
    """Send a request and check its answer; return the value or the errors.

    Emits CallAnswered, or emits CallFailed and raises the adapter's error (ComponentFailed for an
    error not of Aeon's kinds). Raises Truncated, Filtered and EmptyAnswer for an answer without
    text, Oversized for one of more than MOST_CHARACTERS.
    """
    start = perf_counter()
    try:
        response = _complete(llm, request)
        _check_text(response)
    except AeonError as error:
        emit(_make_failure(request, error, perf_counter() - start), request.site)
        raise
    answered = events.CallAnswered(
        # Its messages hold what was asked; the variables they were rendered from are the run's own.
        request=replace(request, variables={}),
        site=request.site,
        call=request.call,
        role=request.role,
        model=response.model,
        text=response.text,
        usage=response.usage,
        seconds=perf_counter() - start,
        synthetic=response.synthetic,
        response_id=response.response_id,
        endpoint=response.endpoint,
        usage_reported=response.usage_reported,
    )
    emit(answered, request.site)
    try:
        return Answered(response, check_answer(response.text, validator, parse))
    except InvalidAnswer as invalid:
        return Answered(response, None, invalid.errors)


def _make_failure(request: LLMRequest, error: AeonError, seconds: float) -> events.CallFailed:
    return events.CallFailed(
        site=request.site,
        call=request.call,
        role=request.role,
        error=type(error).__name__,
        message=error.message,
        usage=error.usage,
        seconds=seconds,
        model=error.model if isinstance(error, AnswerError) else "",
        asked=request.parameters.model or "",
        endpoint=error.endpoint if isinstance(error, LLMError) else "",
        usage_reported=not isinstance(error, LLMError) or error.usage_reported,
    )


def _complete(llm: LLMAdapter, request: LLMRequest) -> LLMResponse:
    try:
        response = llm.complete(request)
    except AeonError:
        raise
    except Exception as error:
        message = f"{_name_of(llm)} raised {type(error).__name__}: {error}"
        raise ComponentFailed(message) from error
    if not isinstance(response, LLMResponse):
        message = f"{_name_of(llm)} returned {type(response).__name__}, not LLMResponse"
        raise ComponentFailed(message)
    return response


def _name_of(llm: LLMAdapter) -> str:
    return f"model adapter: {type(llm).__name__}.complete"


def require_few(count: int, pointer: str, noun: str, most: int = MOST_ENTRIES) -> None:
    """Raise InvalidAnswer at `pointer` if an answer has more than `most` entries."""
    if count > most:
        wrong = f"there are {count:,} {noun}, at most {most:,} are read"
        raise InvalidAnswer([FieldError(pointer, f"{wrong}: give the most important ones")])


def _check_text(response: LLMResponse) -> None:
    failure = _FAILURES.get(response.finish_reason)
    problem = f"there is no answer: finish_reason {response.finish_reason!r}"
    if failure is None and not response.text.strip():
        failure = EmptyAnswer
    if failure is None and len(response.text) > MOST_CHARACTERS:
        failure = Oversized
        size = f"{len(response.text):,} characters"
        problem = f"the answer has {size}, at most {MOST_CHARACTERS:,} are read"
    if failure is not None:
        raise failure(
            problem,
            usage=response.usage,
            model=response.model,
            usage_reported=response.usage_reported,
        )


def _of_pydantic(error: pydantic.ValidationError) -> list[FieldError]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        FieldError(pointer(d["loc"]), shorten_message(d["msg"].removeprefix("Value error, ")))
        for d in details
    ]


def _cap_errors(errors: list[FieldError]) -> list[FieldError]:
    more = len(errors) - MAX_ERRORS
    if more <= 0:
        return errors
    return [*errors[:MAX_ERRORS], FieldError("", f"and {more} more errors", kind_of(errors))]
