"""A finished run read back from its directory: its result, its journals, and each call with its
prompt and answer."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from aeon.config.origin import FILE
from aeon.config.settings import Settings
from aeon.domain.errors import StoreFailed
from aeon.domain.request import Usage
from aeon.domain.result import RunResult, TokenUsage, UsageReport
from aeon.domain.values import Frame, JsonMapping, JsonObject, OwnObject, as_frame
from aeon.files.fast_yaml import read_yaml
from aeon.files.jsonl import read_lines
from aeon.llm.prices import PriceBook, price_book
from aeon.observability import artefacts
from aeon.report.partial import PartialResult, read_partial
from aeon.report.runs import read_document
from aeon.store.interface import AnswerSource
from aeon.store.opening import is_packaged, open_source, store_in
from aeon.store.settings import CASSETTE_SUFFIX, read_store_settings

Line = JsonObject
_Place = tuple[int, str, str, str | None, int, int]
"""Pass, phase, call, step, attempt and sample of a request."""
_StoredAnswers = defaultdict[_Place, deque[tuple[str, str]]]
_SITE = {"pass_number": int, "phase": str, "cycle": int, "attempt": int, "step_id": str | None}
_PLACED = {"site": _SITE, "time": str}
_TEXTS = dict.fromkeys(("call", "role", "model", "endpoint"), str)
_CALLED = {**_PLACED, **_TEXTS, "seconds": int | float, "usage": dict}
_RESULT = {
    "tool": str,
    "arguments": dict,
    "output": object,
    "cut": int,
    "seconds": int | float | None,
}
_READ: JsonMapping = {
    "call_answered": _CALLED,
    "call_failed": {**_CALLED, "error": str},
    "tool_called": {
        **_PLACED,
        "step_id": str,
        "result": {**_RESULT, "error": str | None, "error_kind": str | None},
    },
    "retry_scheduled": {**_PLACED, "seconds": int | float, "error": str},
    "fallback_used": {"site": _SITE, "failed": str, "endpoint": str, "error": str},
}
"""What is read of a line, by its event."""


def _nothing() -> None:
    """Return no request: no store has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to a model, and its outcome. `number` counts the requests of a run from 1, in
    order of dispatch. `cycle` is the LLM cycle it was charged to (0: the free profile call),
    `attempt` 0 for the call itself and 1, 2 for its repairs, `round` counts those of a step that
    uses tools, from 0. `started` is ISO 8601, UTC. `request` (model, messages, schema, strict,
    parameters, sample; read from the store each time) and `text`, the raw answer, are None where no
    store has them; `cost` is None without a price; `error` is the error's class for a request that
    failed, else None."""

    number: int
    sequence: int
    part: int
    pass_number: int
    phase: str
    cycle: int
    call: str
    role: str
    step_id: str | None
    attempt: int
    round: int = 0
    model: str
    endpoint: str
    started: str
    seconds: float
    usage: Usage
    cost: float | None
    read_request: Callable[[], JsonMapping | None] = field(
        default=_nothing, repr=False, compare=False
    )
    text: str | None
    error: str | None
    message: str

    @property
    def request(self) -> JsonMapping | None:
        """The request as sent, read from the store each time: the prompts of a long run do not fit
        into memory together."""
        return self.read_request()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A run, read from its directory. `origin` is `run.json`, `overrides` those of the command
    line; `events` are the lines of `events.jsonl`, in order of dispatch. Missing files leave empty
    fields."""

    directory: Path
    result: RunResult
    origin: JsonMapping
    overrides: tuple[str, ...]
    events: tuple[Line, ...]
    calls: tuple[Call, ...]
    requests: Requests | None = field(default=None, repr=False, compare=False)

    def hold_requests(self) -> AbstractContextManager[None]:
        """Read requests (`Call.request`) within the block from a store that stays open."""
        return self.requests.hold_open() if self.requests else nullcontext()

    @property
    def cycles(self) -> tuple[Line, ...]:
        """Read the lines of `cycles.jsonl` in order of dispatch, each time anew."""
        return tuple(_journal(self.directory / "cycles.jsonl", "step_number"))

    def to_frame(self) -> Frame:
        """Return a pandas frame with a row for each request, its tokens in columns. Raises
        ConfigError without pandas."""
        return as_frame({**_fields(call), **asdict(call.usage)} for call in self.calls)


def load_record(directory: Path | str, result: RunResult | None = None) -> Record:
    """Read a run's directory; `result` is its result, if at hand. A run without one, running or cut
    off, has a `PartialResult`, made from its journals. Raises ArtefactError for a directory without
    a readable run; unreadable journals and stores of a run with a result are left out."""
    directory = Path(directory)
    events = read_events(directory)
    result = result or _load_result(directory, events)
    origin = read_document(directory / FILE)
    overrides = None
    with suppress(OSError, ValueError):
        overrides = read_yaml(directory / ".hydra" / "overrides.yaml")
    overrides = overrides or origin.get("overrides")
    requests = _find_requests(directory, result)
    calls = tuple(_calls(events, requests, result))
    if isinstance(result, PartialResult):
        total = TokenUsage.add_up((call.usage, call.cost) for call in calls)
        result = result.model_copy(update={"usage": UsageReport(total=total)})
    return Record(
        directory=directory,
        result=result,
        origin=origin,
        overrides=tuple(map(str, overrides)) if isinstance(overrides, list) else (),
        events=tuple(events),
        calls=calls,
        requests=requests,
    )


def _load_result(directory: Path, events: list[Line]) -> RunResult:
    is_cut_off = not (directory / artefacts.RESULT).exists() and (directory / FILE).is_file()
    return read_partial(directory, events) if is_cut_off and events else artefacts.load(directory)


def _fields(call: Call) -> JsonObject:
    return {
        each.name: getattr(call, each.name)
        for each in fields(call)
        if each.name not in ("usage", "read_request")
    }


def read_events(directory: Path) -> list[Line]:
    """Return the events of a run in order of dispatch, even of one without a result; none when they
    cannot be read."""
    return [
        line
        for line in _journal(directory / "events.jsonl", "sequence", "part")
        if "event" in line and _is_whole(line)
    ]


def _is_whole(line: Line) -> bool:
    """Check whether a line is a complete event; a program may have been cut off, a disk be full."""
    event = line.get("event")
    if not isinstance(event, str) or not _fits(line, shape := _READ.get(event, {})):
        return False
    with suppress(ValueError):
        return "time" not in shape or datetime.fromisoformat(line["time"]).tzinfo is not None
    return False


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        inner = isinstance(value, dict) and shape.keys() <= value.keys()
        return inner and all(_fits(value[name], each) for name, each in shape.items())
    return isinstance(value, shape)


def _journal(path: Path, *order: str) -> list[Line]:
    """Return the lines of a journal in this order; lines without a place in it are left out."""
    try:
        lines = [line for line in read_lines(path) if isinstance(line, dict)]
    except (OSError, ValueError):
        return []
    placed = [line for line in lines if all(isinstance(line.get(name), int) for name in order)]
    return sorted(placed, key=itemgetter(*order))


class Requests:
    """The requests to models in a store, which is opened for each unless it is held open: records
    of many runs hold no files open."""

    def __init__(self, path: Path, backend: OwnObject) -> None:
        self._path = path
        self._backend = backend
        self._cassette: AnswerSource | None = None
        self._held: AnswerSource | None = None

    @contextmanager
    def hold_open(self) -> Iterator[None]:
        """Read within the block from one store, which is opened once."""
        before = self._held
        with ExitStack() as opened:
            with suppress(StoreFailed):
                self._held = opened.enter_context(self._open())
            try:
                yield
            finally:
                self._held = before

    def read(self, key: str) -> JsonMapping | None:
        """Return the request of this key (`StoreRequest.key`); None where it is gone."""
        with suppress(StoreFailed), self._open() as source:
            entry = source.get(key)
            return entry.request.body if entry else None
        return None

    def answers(self) -> Iterator[tuple[_Place, str, str]]:
        """Yield the place, the key and the text of each answer, in the order of the run."""
        with suppress(StoreFailed), self._open() as source:
            for entry in source.entries():
                path = entry.request.path
                sample = _read_sample(entry.request.body)
                place = (
                    path.pass_number,
                    path.phase,
                    path.call,
                    path.step_id,
                    path.attempt,
                    sample,
                )
                if entry.request.kind == "model":
                    yield place, entry.request.key, str(entry.answer.get("text") or "")

    @contextmanager
    def _open(self) -> Iterator[AnswerSource]:
        if self._held is not None:
            yield self._held
            return
        source = self._cassette or open_source(self._path, self._backend)
        if self._path.suffix == CASSETTE_SUFFIX:
            self._cassette = source  # the whole of it is in memory
        with closing(source):
            yield source


def _read_sample(body: JsonMapping) -> int:
    """Return the number of a step's sample, where there are several."""
    sample = body.get("sample")
    return int(sample[1]) if isinstance(sample, list) else 0


def _find_requests(directory: Path, result: RunResult) -> Requests | None:
    """Return the run's own store, else the recording that it replayed."""
    store = read_store_settings(result.configuration)
    path = directory
    backend = store.own_backend
    # The folder may be a stranger's, and a store that it names would be imported.
    if not is_packaged(backend):
        return None
    if not store_in(directory).is_file():
        if result.parent is None or store.mode != "replay":
            return None
        path = Path(result.parent.path)
    return Requests(path, backend)


def _calls(events: Iterable[Line], requests: Requests | None, result: RunResult) -> Iterable[Call]:
    """Return the requests among the events, each with the stored answer from the same place of the
    run."""
    stored: _StoredAnswers = defaultdict(deque)
    for place, key, text in requests.answers() if requests else ():
        stored[place].append((key, text))
    settings = Settings.model_validate({**result.configuration, "task": result.task})
    prices = price_book(settings.provider)
    number = 1
    for line in events:
        if line["event"] not in ("call_answered", "call_failed"):
            continue
        # An incomplete line is left out, and not counted.
        with suppress(LookupError, TypeError, ValueError):
            call = _read_call(line, number, stored, prices, requests)
            number += 1
            yield call


def _read_call(
    line: Line,
    number: int,
    stored: _StoredAnswers,
    prices: PriceBook,
    requests: Requests | None,
) -> Call:
    site = line["site"]
    usage = Usage(**line["usage"])
    endpoint = line["endpoint"]
    model = line["model"]
    seconds = line["seconds"]
    answer = _take_answer(line, stored)
    return Call(
        number=number,
        sequence=line["sequence"],
        part=line["part"],
        pass_number=site["pass_number"],
        phase=site["phase"],
        cycle=site["cycle"],
        call=line["call"],
        role=line["role"],
        step_id=site["step_id"],
        attempt=site["attempt"],
        round=int(site.get("round", 0)),
        model=model,
        endpoint=endpoint,
        started=(datetime.fromisoformat(line["time"]) - timedelta(seconds=seconds)).isoformat(),
        seconds=seconds,
        usage=usage,
        cost=prices.cost(usage, endpoint=endpoint, answered=model, asked=line.get("asked") or ""),
        read_request=partial(requests.read, answer[0]) if requests and answer else _nothing,
        text=answer[1] if answer else None,
        error=line.get("error"),
        message=line.get("message") or "",
    )


def _take_answer(line: Line, stored: _StoredAnswers) -> tuple[str, str] | None:
    site = line["site"]
    place = (
        site["pass_number"],
        site["phase"],
        line["call"],
        site["step_id"],
        site["attempt"],
        site.get("sample", 0),
    )
    if line["event"] == "call_answered" and stored[place]:
        return stored[place].popleft()
    return None
