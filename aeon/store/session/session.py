"""A run's use of the store: what was answered is not asked again, and what is asked anew is kept before it is used.

    mode     looked up in, in this order                      asked anew      kept in
    off      the parents' answers                             always          nothing
    record   the parents' answers, then the multirun's        on a miss       the run's own store and the multirun's
    cache    the parents' answers, then the shared store      on a miss       the run's own store and the shared one
    replay   the parents' answers, then the recording         never           nothing

The parents are the run that this one resumes, the run that one resumed, and so on. The shared store answers for models
only, whatever place of a run asks: what a tool or a person says is of its moment.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import StrictInt, TypeAdapter
from pydantic import ValidationError as PydanticError

from aeon.domain.errors import StoreFailed
from aeon.domain.request import Usage
from aeon.store.interface import AnswerSource
from aeon.store.models import Asked, Entry
from aeon.store.session.keeping import Keeper
from aeon.store.session.lookup import ByKey, InOrder, Judge, Lookup, Shared
from aeon.store.session.miss import miss
from aeon.store.session.source import SHARED_STORE, STORE_NAME, open_source, store_path
from aeon.store.settings import StoreSettings
from aeon.store.sqlite.store import SqliteStore

Answer = dict[str, Any]
_COUNTS = TypeAdapter(dict[str, StrictInt])
_log = logging.getLogger("aeon")


@dataclass(frozen=True, slots=True)
class Saved:
    """What a run did not ask for, since a store had the answer. `usage` is that of models, by the name of each."""

    model_calls: int = 0
    tool_calls: int = 0
    person_answers: int = 0
    usage: Mapping[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Answers of every kind."""
        return self.model_calls + self.tool_calls + self.person_answers

    def with_answer(self, kind: str, answer: Answer) -> Saved:
        """With one more. Raises StoreFailed for usage that is none."""
        if kind == "tool":
            return replace(self, tool_calls=self.tool_calls + 1)
        if kind == "person":
            return replace(self, person_answers=self.person_answers + 1)
        if kind == "memory":
            return self
        model, paid = str(answer.get("model") or ""), kept_usage(answer)
        usage = {**self.usage, model: self.usage.get(model, Usage()) + paid}
        return replace(self, model_calls=self.model_calls + 1, usage=usage)


def kept_usage(answer: Answer) -> Usage:
    """What a kept answer cost, as far as it says. Raises StoreFailed for counts that are none."""
    try:
        return Usage(**_COUNTS.validate_python(answer.get("usage") or {}))
    except TypeError as error:
        raise StoreFailed(f"an answer in the store cannot be read: usage: {error}") from None
    except PydanticError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(["usage", *map(str, first["loc"])])
        raise StoreFailed(f"an answer in the store cannot be read: {place}: {first['msg']}") from None


class _Found(NamedTuple):
    """A kept answer, as the answer to what is asked now, and where it was found."""

    entry: Entry
    of: Lookup


class Session:
    """One run's answers, looked up and kept; thread-safe. Made by `open_session`.

    `recording` is what a replay runs from: with one, nothing is ever asked.
    """

    def __init__(
        self,
        lookups: Sequence[Lookup] = (),
        keepers: Sequence[Keeper] = (),
        *,
        recording: AnswerSource | None = None,
        opened: Sequence[AnswerSource] = (),
    ) -> None:
        self._lookups, self._keepers = tuple(lookups), tuple(keepers)
        self._recording, self._opened = recording, tuple(opened)
        self._lock = threading.Lock()
        self._met: Counter[str] = Counter()
        self._saved = Saved()

    @property
    def replays(self) -> bool:
        """Whether nothing is ever asked anew."""
        return self._recording is not None

    @property
    def saved(self) -> Saved:
        """What was answered from a store up to now."""
        with self._lock:
            return self._saved

    @property
    def differing(self) -> int:
        """How many requests of a replay by order were not those that had been recorded (`store.match=order`)."""
        return sum(lookup.differing for lookup in self._lookups if isinstance(lookup, InOrder))

    def answer(self, asked: Asked, ask: Callable[[], Answer], *, reach: Judge = lambda _: "anywhere") -> Answer:
        """The kept answer to a request, or the one that `ask` gives, kept before this returns.

        Equal requests from one place are told apart by their number (`occurrence`), which is given here. `reach` says
        whom an answer may be given to. Raises StoreMiss in a replay, StoreFailed when a parent or a recording cannot be
        read, and what `ask` raises, of which nothing is kept.
        """
        if not self._lookups and not self._keepers:
            return ask()
        asked = self._numbered(asked)
        found = self._found(asked, reach)
        if found is not None:
            self._keep(found.entry, reach, of=found.of)
            with self._lock:
                self._saved = self._saved.with_answer(asked.kind, found.entry.answer)
            return found.entry.answer
        if self._recording is not None:
            raise miss(asked, self._recording)
        answer = ask()
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._keep(Entry(asked=asked, answer=answer, time=time), reach)
        return answer

    def close(self) -> None:
        """Let go of the files that were opened for this session; answers that come later are not kept."""
        for source in self._opened:
            source.close()

    def _numbered(self, asked: Asked) -> Asked:
        with self._lock:
            occurrence = self._met[asked.key]
            self._met[asked.key] += 1
        if not occurrence:
            return asked
        path = asked.path.model_copy(update={"occurrence": occurrence})
        return Asked(kind=asked.kind, path=path, request=asked.request)

    def _found(self, asked: Asked, reach: Judge) -> _Found | None:
        for lookup in self._lookups:
            entry = lookup.find(asked, reach)
            if entry is not None:
                return _Found(Entry(asked=asked, answer=entry.answer, time=entry.time), lookup)
        return None

    def _keep(self, entry: Entry, reach: Judge, of: Lookup | None = None) -> None:
        for keeper in self._keepers:
            # What the shared store has answered is in it.
            if not (keeper.shared and isinstance(of, Shared)):
                keeper.keep(entry, reach)


def open_session(
    settings: StoreSettings,
    *,
    directory: Path | None,
    parents: Sequence[AnswerSource] = (),
    of_multirun: Path | None = None,
    warn: Callable[[str], None] = _log.warning,
) -> Session:
    """What the settings say, for a run whose artefacts go to `directory`, if they go anywhere.

    `parents` answer first, in their order; who opened them closes them. `of_multirun` is the store that the jobs of a
    multirun share. `warn` is told, once, of a store that can no longer be written or, of a shared one, read. Raises
    StoreFailed.
    """
    inherited: list[Lookup] = [ByKey(parent) for parent in parents]
    if settings.mode == "off":
        return Session(inherited)
    if settings.mode == "replay":
        if settings.path is None:
            raise StoreFailed(
                "a replay needs a recording", hint="Give store.path=... with a run, a store or a cassette."
            )
        source = open_source(settings.path)
        found = InOrder(source) if settings.match == "order" else ByKey(source, replay=True)
        return Session([*inherited, found], recording=source, opened=[source])
    if settings.mode == "record":
        return _record(settings, directory, of_multirun, inherited, warn)
    return _cache(settings, directory, inherited, warn)


def _record(
    settings: StoreSettings,
    directory: Path | None,
    of_multirun: Path | None,
    inherited: list[Lookup],
    warn: Callable[[str], None],
) -> Session:
    own = _own_path(settings, directory)
    stores = [SqliteStore(own)] if own is not None else []
    keepers = [Keeper(store, warn) for store in stores]
    if of_multirun is not None and settings.share_in_multirun:
        try:
            shared = SqliteStore(of_multirun)
        except StoreFailed as error:
            warn(f"{error.message}; this job's answers are not shared with the other jobs")
        else:
            # A job is what it would be on its own: of another job's answers it takes those of the same place.
            inherited.append(Shared(shared, warn, same_place=True))
            keepers.append(Keeper(shared, warn, shared=True))
            stores.append(shared)
    return Session(inherited, keepers, opened=stores)


def _own_path(settings: StoreSettings, directory: Path | None) -> Path | None:
    if directory is not None:
        return directory / STORE_NAME
    return store_path(settings.path) if settings.path else None


def _cache(
    settings: StoreSettings, directory: Path | None, inherited: list[Lookup], warn: Callable[[str], None]
) -> Session:
    shared = SqliteStore(store_path(settings.path or SHARED_STORE))
    try:
        own = [SqliteStore(directory / STORE_NAME)] if directory is not None else []
    except BaseException:
        shared.close()
        raise
    keepers = [*(Keeper(store, warn) for store in own), Keeper(shared, warn, shared=True)]
    return Session([*inherited, Shared(shared, warn)], keepers, opened=[*own, shared])
