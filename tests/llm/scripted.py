"""A model whose answers are written down beforehand, and a listener that keeps what it is told."""

from __future__ import annotations

from collections.abc import Iterable

from aeon.domain.errors import AeonError
from aeon.domain.events import Event
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Usage

COST = Usage(input_tokens=10, output_tokens=3, requests=1)


class Scripted:
    """Answers in order with texts or responses, or raises the errors among them; keeps the requests."""

    def __init__(self, *answers: str | LLMResponse | AeonError) -> None:
        self.answers = list(answers)
        self.requests: list[LLMRequest] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, AeonError):
            raise answer
        return (
            LLMResponse(answer, usage=COST, model="scripted") if isinstance(answer, str) else answer
        )


class Heard:
    """An `Emit` that keeps every event with its site."""

    def __init__(self) -> None:
        self.told: list[tuple[Event, CallSite | None]] = []

    def __call__(self, event: Event, site: CallSite | None = None) -> None:
        self.told.append((event, site))

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event, _ in self.told]

    def of(self, kind: type[Event]) -> Iterable[Event]:
        return [event for event, _ in self.told if isinstance(event, kind)]
