"""Learns the name of the token limit from answers that exceed it or are cut off far below it."""

from __future__ import annotations

from dataclasses import replace

from aeon.domain.errors import ContextFull, LLMError, Truncated
from aeon.llm.dialects.asking import Attempt, AttemptResult
from aeon.llm.dialects.dialect import Wire
from aeon.llm.dialects.server import Server

_UNCOUNTED_TOKENS = 8
"""Servers count end markers and the like, which the limit does not cover."""
_FAR_BELOW = 0.9
"""An answer shorter than this share of the limit was cut off by something else."""


def learn_limit_name(
    outcome: AttemptResult, wire: Wire, server: Server, attempt: Attempt
) -> AttemptResult:
    """Learn from an answer whether the server knows the token limit by the name that was sent.

    A longer answer shows that it does not. One cut off far below the limit may: the request is
    repeated with the other name, once per server and model, and the usage of both attempts is added
    up. Returns the outcome to use. Nothing is learned if the user has set the name.
    """
    dialect = outcome.dialect
    limit = wire.limit(dialect)
    if _is_name_known(wire) or limit is None or not _has_text(outcome):
        return outcome
    written = outcome.usage.output_tokens
    name = wire.token_parameter(dialect)
    if written > limit + _UNCOUNTED_TOKENS:
        if not dialect.renamed:
            server.rename_limit(f"ignores {name}: the limit is sent by its other name from now on")
        return outcome
    is_cut_early = 0 < written < _FAR_BELOW * limit
    # In a batch, another attempt would take hours.
    if not is_cut_early or not _may_be_limit(outcome.failure) or wire.settings.batch:
        return outcome
    if not server.may_try_other_limit_name():
        return outcome
    return _ask_by_other_name(outcome, name, server, attempt)


def _is_name_known(wire: Wire) -> bool:
    return wire.settings.max_tokens_parameter is not None or wire.settings.api == "responses"


def _may_be_limit(failure: LLMError | None) -> bool:
    return isinstance(failure, Truncated) and not isinstance(failure, ContextFull)


def _ask_by_other_name(
    first: AttemptResult, name: str, server: Server, attempt: Attempt
) -> AttemptResult:
    again = attempt(replace(first.dialect, renamed=not first.dialect.renamed))
    if not _has_text(again):
        return first.add_usage_of(again)
    if again.usage.output_tokens > first.usage.output_tokens:
        message = f"cuts answers off below {name}: the limit is sent by its other name from now on"
        server.rename_limit(message)
    return again.add_usage_of(first)


def _has_text(outcome: AttemptResult) -> bool:
    """Whether there is an answer, complete or cut off."""
    return outcome.response is not None or isinstance(outcome.failure, Truncated)
