"""The name of the limit of tokens, learned from answers that do not keep to it or that are cut off
far below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aeon.domain.errors import ContextFull, LLMError, Truncated
from aeon.domain.request import Usage
from aeon.llm.dialects.asking import AttemptResult
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.server import Server

_UNCOUNTED_TOKENS = 8
"""Servers count marks of the end, and such, that no limit is for."""
_FAR_BELOW = 0.9
"""An answer shorter than this share of the limit was cut off by something else."""


def learn_limit_name(
    outcome: AttemptResult,
    dialect: Dialect,
    wire: Wire,
    server: Server,
    attempt: Callable[[Dialect], AttemptResult],
) -> tuple[AttemptResult, Dialect]:
    """Learn from an answer whether the server knows the limit of tokens by the name that was sent.

    A longer answer shows that it does not. One that was cut off far below the limit may: the
    request is made once more by the other name, once for each server and model, and the usage of
    both attempts is added up. Returns the outcome to use and its dialect. Where a person has set
    the name, nothing is learned.
    """
    limit = wire.limit(dialect)
    usage = _usage_of(outcome)
    if _is_name_known(wire) or limit is None or usage is None:
        return outcome, dialect
    name = wire.token_parameter(dialect)
    if usage.output_tokens > limit + _UNCOUNTED_TOKENS:
        if not dialect.renamed:
            server.rename_limit(f"ignores {name}: the limit is sent by its other name from now on")
        return outcome, dialect
    is_cut_early = 0 < usage.output_tokens < _FAR_BELOW * limit
    if not is_cut_early or not _may_be_limit(outcome.failure) or wire.settings.batch:
        return outcome, dialect
    if not server.may_try_other_limit_name():
        return outcome, dialect
    return _ask_by_other_name(outcome, usage, dialect, name, server, attempt)


def _is_name_known(wire: Wire) -> bool:
    return wire.settings.max_tokens_parameter is not None or wire.settings.api == "responses"


def _may_be_limit(failure: LLMError | None) -> bool:
    return isinstance(failure, Truncated) and not isinstance(failure, ContextFull)


def _ask_by_other_name(
    first: AttemptResult,
    spent: Usage,
    dialect: Dialect,
    name: str,
    server: Server,
    attempt: Callable[[Dialect], AttemptResult],
) -> tuple[AttemptResult, Dialect]:
    renamed = replace(dialect, renamed=not dialect.renamed)
    again = attempt(renamed)
    usage = _usage_of(again)
    if usage is None:
        return first, dialect
    if usage.output_tokens > spent.output_tokens:
        message = f"cuts answers off below {name}: the limit is sent by its other name from now on"
        server.rename_limit(message)
    both = spent + usage
    if again.response is not None:
        return replace(again, response=replace(again.response, usage=both)), renamed
    if again.failure is not None:
        again.failure.usage = both
    return again, renamed


def _usage_of(outcome: AttemptResult) -> Usage | None:
    """The usage of an answer, whole or cut off; None where there is no answer."""
    if outcome.response is not None:
        return outcome.response.usage
    return outcome.failure.usage if isinstance(outcome.failure, Truncated) else None
