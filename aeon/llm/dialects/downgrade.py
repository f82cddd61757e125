"""Finds the downgrade of a request that a refusal calls for. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from aeon.llm.dialects.dialect import (
    CACHE_MARKS,
    CACHE_OPTIONS,
    FORMS,
    SCHEMA_BESIDE,
    Dialect,
    Wire,
)
from aeon.llm.dialects.functions import FUNCTIONS
from aeon.llm.dialects.refusal import Refusal
from aeon.llm.dialects.responses import REASONING_ITEMS, is_about_reasoning_items


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to write a request. `suspects` are parameters left out although no refusal named
    them."""

    dialect: Dialect
    suspects: frozenset[str] = frozenset()

    def without(self, name: str) -> Trial:
        """Return the trial without a parameter that the server named."""
        return replace(self, dialect=replace(self.dialect, without=self.dialect.without | {name}))

    def without_suspects(self, *names: str) -> Trial:
        """Return the trial without parameters that no refusal named."""
        without = self.dialect.without.union(names)
        return Trial(replace(self.dialect, without=without), self.suspects.union(names))

    def conclude(self, opening: Dialect) -> Dialect:
        """Return the dialect that an answer to this trial proves. If a change of form helped, the
        suspects stay unproven and are put back."""
        if self.dialect.form == opening.form:
            return self.dialect
        return replace(self.dialect, without=self.dialect.without - self.suspects)


@dataclass(frozen=True, slots=True)
class RefusedTrial:
    """A trial that a server refused. `was_accepted`: the server has answered a request with this
    schema in the form sent first; `takes_marks`: it has answered one with cache marks in messages
    of the same roles."""

    trial: Trial
    refusal: Refusal
    wire: Wire
    was_accepted: bool
    takes_marks: bool = False

    @property
    def dialect(self) -> Dialect:
        """How the refused request was written."""
        return self.trial.dialect


Downgrade = Callable[[RefusedTrial], Trial | None]


def find_named_downgrade(refused: RefusedTrial) -> Trial | None:
    """Return the trial without what the server names as refused; None if it names nothing that can
    be left out."""
    return _first(_NAMED, refused)


def find_guessed_downgrade(refused: RefusedTrial) -> Trial | None:
    """Return a trial that may help when the server names nothing; None if there is none, or if the
    refusal may be an outage."""
    return None if refused.refusal.is_doubtful else _first(_GUESSED, refused)


def _first(downgrades: tuple[Downgrade, ...], refused: RefusedTrial) -> Trial | None:
    if not refused.refusal.is_about_request:
        return None
    for downgrade in downgrades:
        trial = downgrade(refused)
        if trial is not None:
            return trial
    return None


def _leave_out_named_cache(refused: RefusedTrial) -> Trial | None:
    named = refused.refusal.cache_fields
    if not named or refused.wire.marks(refused.dialect) is None:
        return None
    is_options = named == {CACHE_OPTIONS} and CACHE_OPTIONS not in refused.dialect.without
    return refused.trial.without(CACHE_OPTIONS if is_options else CACHE_MARKS)


def _rename_or_leave_out(refused: RefusedTrial) -> Trial | None:
    dialect = refused.dialect
    name = refused.refusal.find_refused(refused.wire.parameters(dialect))
    if name is None:
        return None
    # A token limit is a promise to the user: rename it before leaving it out.
    is_limit = name == refused.wire.token_parameter(dialect)
    if is_limit and not dialect.renamed and refused.wire.settings.api == "chat":
        return replace(refused.trial, dialect=replace(dialect, renamed=True))
    return refused.trial.without(name)


def _leave_out_reasoning_items(refused: RefusedTrial) -> Trial | None:
    is_sent = refused.wire.settings.api == "responses"
    if not is_sent or REASONING_ITEMS in refused.dialect.without:
        return None
    is_meant = is_about_reasoning_items(refused.refusal)
    return refused.trial.without(REASONING_ITEMS) if is_meant else None


def _leave_out_schema_beside(refused: RefusedTrial) -> Trial | None:
    # OpenAI itself accepts no schema there, so a server that refuses it may have no name for it.
    if not refused.dialect.sends_schema_beside or refused.refusal.is_doubtful:
        return None
    return refused.trial.without(SCHEMA_BESIDE)


def _leave_out_named_functions(refused: RefusedTrial) -> Trial | None:
    is_named = refused.refusal.is_about_tools
    if not is_named or refused.wire.functions(refused.dialect) is None:
        return None
    return refused.trial.without(FUNCTIONS)


def _leave_out_functions(refused: RefusedTrial) -> Trial | None:
    # Tools are the newest part of a request, so a refusal without a reason is most likely about
    # them.
    has_functions = refused.wire.functions(refused.dialect) is not None
    if not has_functions or refused.was_accepted or refused.refusal.is_about_format:
        return None
    return refused.trial.without_suspects(FUNCTIONS)


def _leave_out_marks(refused: RefusedTrial) -> Trial | None:
    # A server may refuse messages in parts without knowing a word for marks.
    marks = refused.wire.marks(refused.dialect)
    is_marked = marks is not None and (bool(refused.wire.marked_roles) or marks == "openai")
    if not is_marked or refused.takes_marks or refused.refusal.is_about_format:
        return None
    return refused.trial.without_suspects(CACHE_MARKS)


def _leave_out_suspects(refused: RefusedTrial) -> Trial | None:
    if refused.refusal.is_about_format or refused.was_accepted:
        return None
    suspects = refused.refusal.find_suspects(refused.wire.parameters(refused.dialect))
    return refused.trial.without_suspects(*suspects) if suspects else None


def _send_next_form(refused: RefusedTrial) -> Trial | None:
    refusal = refused.refusal
    dialect = refused.dialect
    lower_forms = FORMS[FORMS.index(dialect.form) + 1 :]
    if not lower_forms or not refused.wire.finds_form:
        return None
    if refusal.is_about_format:
        return replace(refused.trial, dialect=dialect.in_form(lower_forms[0]))
    if refusal.named or refused.was_accepted:
        return None
    # Two more requests are enough for a server that gives no reason: without the suspects, then the
    # prompt alone.
    form = lower_forms[-1] if refused.trial.suspects else lower_forms[0]
    return replace(refused.trial, dialect=dialect.in_form(form))


_NAMED: tuple[Downgrade, ...] = (
    _leave_out_named_cache,
    _leave_out_reasoning_items,
    _rename_or_leave_out,
    _leave_out_named_functions,
    _leave_out_schema_beside,
)
_GUESSED: tuple[Downgrade, ...] = (
    _leave_out_functions,
    _leave_out_marks,
    _leave_out_suspects,
    _send_next_form,
)
"""The downgrades in order of preference; the first that applies is tried."""
