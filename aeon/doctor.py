"""Whether the configured provider works: one tiny structured call for each role, as the role's calls are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from aeon.errors import AeonError, ProviderError
from aeon.llm import stack
from aeon.llm.exchange import Answered, exchange
from aeon.llm.interface import CallName, LLMAdapter, LLMRequest, Message, Parameters, Role, Usage
from aeon.llm.settings import parameters_for
from aeon.wiring import Process

ROLE_CALLS: tuple[tuple[Role, CallName, CallName], ...] = (
    ("planner", "plan", "plan"),
    ("worker", "step", "step"),
    ("grader", "convergence", "convergence"),
    ("repairer", "repair", "step"),
)
"""Each role, a call that is made as it, and the call whose schema that one is sent with."""

_SYSTEM = "This is a test of the connection and of the form of your answers. Nothing is to be worked out."
_USER = "Give the smallest answer that the schema allows: every text a word or two, every list as short as it may be."
_BAD_ANSWER = (
    "The server does not hold its answers to the schema: every such answer costs a repair. Try another model, or "
    "provider.structured_output=prompt."
)


NOT_TRIED = "not tried: the provider cannot be used"


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """What came of one role's call. `asked` is the model that was asked, `answered` the one that answered, if one did.

    `problem` is empty when it worked; `hint` says what to change. `seconds` is wall time.
    """

    role: Role
    asked: str
    answered: str = ""
    endpoint: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    problem: str = ""
    hint: str = ""

    @property
    def works(self) -> bool:
        """Whether the answer was valid by its schema."""
        return not self.problem


class _Failed(Exception):
    """A call that failed, as its check, with its error."""

    def __init__(self, check: RoleCheck, error: AeonError) -> None:
        super().__init__(check.problem)
        self.check = check
        self.error = error


def examine(shared: Process) -> Iterator[RoleCheck]:
    """One check for each role, made as it is asked for; nothing is retried or repaired, and no answer is kept.

    When the provider cannot be used at all, the roles after that are not tried.
    """
    settings = shared.settings
    once = settings.provider.retry.model_copy(update={"attempts": 1, "rate_limit_attempts": 1})
    llm = stack.run_stack(shared.adapter, limits=settings.limits, retry=once)
    down = False
    for role, call, schema in ROLE_CALLS:
        if down:
            yield RoleCheck(role, _model(shared, role), problem=NOT_TRIED)
            continue
        try:
            yield _examined(shared, llm, role, call, schema)
        except _Failed as failed:
            down = isinstance(failed.error, ProviderError) and failed.error.ends_run
            yield failed.check


def _examined(shared: Process, llm: LLMAdapter, role: Role, call: CallName, schema: CallName) -> RoleCheck:
    request = _request(shared, role, call, schema)
    asked = _model(shared, role)
    started = perf_counter()
    try:
        answered: Answered[Any] = exchange(llm, request, shared.schemas.local(schema), lambda value: value)
    except AeonError as error:
        seconds, problem = perf_counter() - started, f"{type(error).__name__}: {error.message}"
        failed = RoleCheck(role, asked, seconds=seconds, usage=error.usage, problem=problem, hint=error.hint)
        raise _Failed(failed, error) from error
    response = answered.response
    return RoleCheck(
        role,
        asked,
        answered=response.model,
        endpoint=response.endpoint,
        seconds=perf_counter() - started,
        usage=response.usage,
        problem=f"the answer is not valid by its schema: {answered.errors[0]}" if answered.errors else "",
        hint=_BAD_ANSWER if answered.errors else "",
    )


def _parameters(shared: Process, role: Role) -> Parameters:
    settings = shared.settings
    return parameters_for(settings.roles, settings.reasoning, role, "balanced")


def _model(shared: Process, role: Role) -> str:
    return _parameters(shared, role).model or str(getattr(shared.adapter, "model", ""))


def _request(shared: Process, role: Role, call: CallName, schema: CallName) -> LLMRequest:
    wire = shared.schemas.wire(schema, tools=shared.registry.names() if schema == "plan" else None)
    return LLMRequest(
        call=call,
        messages=(Message("system", _SYSTEM), Message("user", _USER)),
        schema=wire.schema,
        role=role,
        strict=wire.strict,
        parameters=_parameters(shared, role),
    )
