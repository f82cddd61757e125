"""Whether the configured provider works: one tiny structured call for each role, as the role's calls are made.

Fallbacks are each tried with one call of the worker: whatever role a call has, there it gets the fallback's own model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

from aeon.app.process import Process
from aeon.domain.errors import AeonError, ProviderError
from aeon.domain.request import CallName, LLMRequest, Message, Parameters, Role, Usage
from aeon.llm.exchange import exchange
from aeon.llm.protocols import LearningAdapter
from aeon.llm.roles import parameters_for
from aeon.llm.stack import build as stack
from aeon.llm.stack.build import Endpoint, Endpoints
from aeon.llm.stack.limits import LimitSettings


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
NOT_TRIED = "not tried: the provider cannot be used"


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """What came of one role's call: the models that were asked and that answered, the fallback if it was one, seconds
    of wall time, and what is wrong. `usage` is None when the server did not tell it."""

    role: Role
    asked: str
    answered: str = ""
    fallback: str = ""
    seconds: float = 0.0
    usage: Usage | None = field(default_factory=Usage)
    problem: str = ""
    hint: str = ""
    ends_run: bool = False

    @property
    def works(self) -> bool:
        """Whether the answer was valid by its schema."""
        return not self.problem


def check_roles(shared: Process) -> Iterator[RoleCheck]:
    """One check for each role, then one for each fallback, made as it is asked for.

    Nothing is retried, repaired, limited, stored or handed to a fallback. When the provider cannot be used at all, its
    remaining roles are not tried.
    """
    settings = shared.settings
    parameters = {role: parameters_for(settings.roles, settings.reasoning, role, "balanced") for role, *_ in ROLE_CALLS}
    first, *others = stack.endpoints_of(shared.adapter, settings.provider)
    down = False
    for call in ROLE_CALLS:
        if down:
            yield RoleCheck(call.role, parameters[call.role].model or first.prices.model, problem=NOT_TRIED)
            continue
        check = _check_call(shared, first, call, parameters[call.role])
        down = check.ends_run
        yield check
    for endpoint in others:
        of_worker = replace(parameters["worker"], model=endpoint.prices.model)
        yield replace(_check_call(shared, endpoint, ROLE_CALLS[1], of_worker), fallback=endpoint.name)


def _check_call(shared: Process, endpoint: Endpoint, call: RoleCall, parameters: Parameters) -> RoleCheck:
    """One call to one endpoint alone, asked once."""
    once = endpoint.retry.model_copy(update={"attempts": 1, "max_wait_seconds": 0.0})
    alone = stack.run_stack(Endpoints([replace(endpoint, has_next=False)]), limits=LimitSettings(), retry=once)
    request, schema = _build_request(shared, call, parameters), shared.schemas.local(call.schema)
    check = RoleCheck(call.role, parameters.model or endpoint.prices.model)
    started = perf_counter()
    try:
        answered = exchange(alone, request, schema, lambda value: value)
    except AeonError as error:
        return replace(
            check,
            seconds=perf_counter() - started,
            usage=error.usage,
            problem=f"{type(error).__name__}: {error.message}",
            hint=error.hint,
            ends_run=isinstance(error, ProviderError) and error.ends_run,
        )
    response, errors = answered.response, answered.errors
    return replace(
        check,
        answered=response.model,
        seconds=perf_counter() - started,
        usage=response.usage if response.usage_reported else None,
        problem=f"the answer is not valid by its schema: {errors[0]}" if errors else "",
        hint=_explain_bad_answer(endpoint, check.asked) if errors else "",
    )


def _explain_bad_answer(endpoint: Endpoint, model: str) -> str:
    """What to change; another form only where the endpoint has one that is not in use already."""
    adapter = endpoint.adapter
    has_other = isinstance(adapter, LearningAdapter) and adapter.form_in_use(model) != "prompt"
    other = ", or provider.structured_output=prompt" if has_other else ""
    return f"The model does not follow the schema: every such answer costs a repair. Try another model{other}."


def _build_request(shared: Process, call: RoleCall, parameters: Parameters) -> LLMRequest:
    wire = shared.schemas.wire(call.schema, tools=shared.registry.names() if call.schema == "plan" else None)
    prompts = shared.prompts
    system, user = (prompts.text(f"_test_{role}.j2", {}) for role in ("system", "user"))
    messages = Message("system", system), Message("user", user)
    return LLMRequest(
        call=call.name,
        messages=messages,
        schema=wire.schema,
        schema_prompt=prompts.schema_prompt(call.name, wire.schema, messages),
        role=call.role,
        strict=wire.strict,
        parameters=parameters,
    )
