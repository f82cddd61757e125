"""Whether the configured provider works: one tiny structured call for each role, as the role's calls are made.

Fallbacks are each tried with one call of the worker: whatever role a call has, there it gets the fallback's own model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

from aeon.app.process import Process
from aeon.domain.errors import AeonError, ProviderError
from aeon.domain.request import CallName, LLMAdapter, LLMRequest, Message, Parameters, Role, Usage
from aeon.llm.exchange import Answered, exchange
from aeon.llm.protocols import LearningAdapter
from aeon.llm.roles import parameters_for
from aeon.llm.stack import build as stack
from aeon.llm.stack.build import Endpoint, Endpoints
from aeon.llm.stack.limits import LimitSettings
from aeon.schema.violations import ErrorKind, kind_of


class RoleCall(NamedTuple):
    """A call that is made as a role, and the call whose schema it is sent with here."""

    role: Role
    name: CallName
    schema: CallName


ROLE_CALLS = (
    RoleCall("planner", "plan", "plan"),
    RoleCall("worker", "step", "step"),
    RoleCall("grader", "convergence", "convergence"),
    RoleCall("repairer", "repair", "step"),
)
FALLBACK_CALL = ROLE_CALLS[1]

_NOT_HELD = "The server does not hold its answers to the schema"
_NOT_FOLLOWED = "The model does not follow the schema"
_OUT_OF_RANGE = "Its form is right and a value is out of its range, which servers and grammars seldom enforce"
_COSTS = ": every such answer costs a repair. Try another model"
_OTHER_FORM = ", or provider.structured_output=prompt."


NOT_TRIED = "not tried: the provider cannot be used"


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """What came of one role's call. `asked` is the model that was asked, `answered` the one that answered, if one did.

    `fallback` names the fallback that was asked, if it was one. `problem` is empty when it worked; `hint` says what to
    change. `seconds` is wall time. `usage` is None when the server did not tell it.
    """

    role: Role
    asked: str
    answered: str = ""
    fallback: str = ""
    seconds: float = 0.0
    usage: Usage | None = field(default_factory=Usage)
    problem: str = ""
    hint: str = ""

    @property
    def works(self) -> bool:
        """Whether the answer was valid by its schema."""
        return not self.problem


def check_roles(shared: Process) -> Iterator[RoleCheck]:
    """One check for each role, then one for each fallback, made as it is asked for.

    Nothing is retried, repaired or handed to a fallback, no limit of a run applies, and no answer is stored. When the
    provider cannot be used at all, its remaining roles are not tried.
    """
    first, *others = stack.endpoints_of(shared.adapter, shared.settings.provider)
    down = False
    for call in ROLE_CALLS:
        if down:
            model = _parameters(shared, call.role).model or first.prices.model
            yield RoleCheck(call.role, model, problem=NOT_TRIED)
            continue
        check, error = _examined(shared, first, call, _parameters(shared, call.role))
        down = isinstance(error, ProviderError) and error.ends_run
        yield check
    for endpoint in others:
        parameters = replace(_parameters(shared, "worker"), model=endpoint.prices.model)
        check, _ = _examined(shared, endpoint, FALLBACK_CALL, parameters)
        yield replace(check, fallback=endpoint.name)


def _examined(
    shared: Process, endpoint: Endpoint, call: RoleCall, parameters: Parameters
) -> tuple[RoleCheck, AeonError | None]:
    """One call to one endpoint alone, asked once; and its error, if it failed."""
    request = _request(shared, call, parameters)
    asked = parameters.model or endpoint.prices.model
    started = perf_counter()
    try:
        answered: Answered[Any] = exchange(
            _once(endpoint), request, shared.schemas.local(call.schema), lambda value: value
        )
    except AeonError as error:
        seconds, problem = perf_counter() - started, f"{type(error).__name__}: {error.message}"
        return RoleCheck(call.role, asked, seconds=seconds, usage=error.usage, problem=problem, hint=error.hint), error
    response = answered.response
    return RoleCheck(
        call.role,
        asked,
        answered=response.model,
        seconds=perf_counter() - started,
        usage=response.usage if response.usage_reported else None,
        problem=f"the answer is not valid by its schema: {answered.errors[0]}" if answered.errors else "",
        hint=_bad_answer_hint(endpoint, asked, kind_of(answered.errors)) if answered.errors else "",
    ), None


def _bad_answer_hint(endpoint: Endpoint, model: str, kind: ErrorKind) -> str:
    """What to change; another form only where the endpoint has one that is not in use already, and where it may help:
    no form tells ranges better than the schema itself."""
    if kind == "range":
        return f"{_OUT_OF_RANGE}{_COSTS}."
    if not isinstance(endpoint.adapter, LearningAdapter):
        return f"{_NOT_FOLLOWED}{_COSTS}."
    return _NOT_HELD + _COSTS + (_OTHER_FORM if endpoint.adapter.form_in_use(model) != "prompt" else ".")


def _once(endpoint: Endpoint) -> LLMAdapter:
    once = endpoint.retry.model_copy(update={"attempts": 1, "max_wait_seconds": 0.0})
    return stack.run_stack(Endpoints([replace(endpoint, has_next=False)]), limits=LimitSettings(), retry=once)


def _parameters(shared: Process, role: Role) -> Parameters:
    settings = shared.settings
    return parameters_for(settings.roles, settings.reasoning, role, "balanced")


def _request(shared: Process, call: RoleCall, parameters: Parameters) -> LLMRequest:
    wire = shared.schemas.wire(call.schema, tools=shared.registry.names() if call.schema == "plan" else None)
    prompts = shared.prompts
    messages = (
        Message("system", prompts.text("_test_system.j2", {})),
        Message("user", prompts.text("_test_user.j2", {})),
    )
    return LLMRequest(
        call=call.name,
        messages=messages,
        schema=wire.schema,
        schema_prompt=prompts.schema_prompt(call.name, wire.schema, messages),
        role=call.role,
        strict=wire.strict,
        parameters=parameters,
    )
