"""Tests whether a server that accepts tools together with an answer schema lets its model call
them."""

from __future__ import annotations

from dataclasses import replace

from aeon.domain.request import LLMResponse, ToolConversation
from aeon.llm.dialects.asking import Attempt, AttemptResult
from aeon.llm.dialects.dialect import Wire
from aeon.llm.dialects.functions import FUNCTIONS
from aeon.llm.dialects.server import Server
from aeon.llm.extract import ExtractError, read_bare

_IGNORES = (
    "accepts tools but makes no calls when the answer has a schema: calls are requested in the "
    "answer from now on; provider.function_calling=never skips the trial"
)


def prove_functions(
    outcome: AttemptResult, wire: Wire, server: Server, attempt: Attempt
) -> AttemptResult:
    """Find out whether a server that accepted tools together with an answer schema can call them:
    some servers constrain the model to the schema from its first word.

    If the first answers of conversations without calls so far call nothing, the request is repeated
    with the calls requested inside the answer; if that answer calls tools, this form is used for
    later requests too. The usage of both attempts is added up.
    """
    without_functions = outcome.dialect.without | {FUNCTIONS}
    form = wire.functions(outcome.dialect)
    if form is None or outcome.response is None or wire.settings.batch:
        return outcome
    if not server.doubts_functions:
        return outcome
    if _has_calls(outcome.response):
        server.calls_functions = True
        return outcome
    if not _may_show_inability(form.conversation):
        return outcome
    again = attempt(replace(outcome.dialect, without=without_functions))
    if again.response is None:
        return outcome.add_usage_of(again)
    if _has_calls(again.response):
        server.believe(FUNCTIONS, _IGNORES, without=server.beliefs.dialect.without | {FUNCTIONS})
    else:
        server.note_no_calls()
    return again.add_usage_of(outcome)


def _may_show_inability(conversation: ToolConversation) -> bool:
    """Whether an answer without calls may mean that the server makes none: not in the last round,
    which allows none, nor after earlier calls, which a resumed run has from its store."""
    return not conversation.is_over and not any(turn.calls for turn in conversation.turns)


def _has_calls(response: LLMResponse) -> bool:
    try:
        answer = read_bare(response.text)
    except ExtractError:
        return False
    return isinstance(answer, dict) and bool(answer.get("tool_calls"))
