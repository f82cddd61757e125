"""Whether a server that takes tools beside the schema of an answer lets its model call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aeon.domain.request import LLMResponse
from aeon.llm.dialects.asking import AttemptResult
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.functions import FUNCTIONS
from aeon.llm.dialects.server import Server
from aeon.llm.extract import ExtractError, read_bare

_IGNORES = (
    "takes tools, and makes no calls where the answer has a schema: calls are asked for in the "
    "answer from now on; provider.function_calling=never spares the try"
)


def prove_functions(
    outcome: AttemptResult,
    dialect: Dialect,
    wire: Wire,
    server: Server,
    attempt: Callable[[Dialect], AttemptResult],
) -> tuple[AttemptResult, Dialect]:
    """Find out whether a server that has taken tools beside the answer's schema can call them:
    some hold the model to the schema from its first word. Where the first answers call nothing, the
    request is made once more with the calls asked for in the answer; if it calls then, it is asked
    so from then on. The usage of both is added up."""
    form = wire.functions(dialect)
    if form is None or outcome.response is None or wire.settings.batch:
        return outcome, dialect
    if not server.doubts_functions:
        return outcome, dialect
    if _has_calls(outcome.response):
        server.calls_functions = True
        return outcome, dialect
    if form.conversation.is_over:
        return outcome, dialect
    asked_in_answer = replace(dialect, without=dialect.without | {FUNCTIONS})
    again = attempt(asked_in_answer)
    if again.response is None:
        return outcome.add_usage_of(again), dialect
    if _has_calls(again.response):
        server.believe(FUNCTIONS, _IGNORES, without=server.beliefs.dialect.without | {FUNCTIONS})
    else:
        server.note_no_calls()
    return again.add_usage_of(outcome), asked_in_answer


def _has_calls(response: LLMResponse) -> bool:
    try:
        answer = read_bare(response.text)
    except ExtractError:
        return False
    return isinstance(answer, dict) and bool(answer.get("tool_calls"))
