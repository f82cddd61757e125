"""Checks whether the configured provider works: one tiny structured call for each role, with that
role's parameters.

Each fallback is tried with one call of the worker, since a fallback answers every role with its own
model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from aeon.app.process import Process
from aeon.domain.errors import AeonError, ProviderError
from aeon.domain.request import CallName, LLMRequest, Message, Parameters, Role, Usage
from aeon.llm.exchange import exchange
from aeon.llm.protocols import ApiFinder
from aeon.llm.roles import parameters_for
from aeon.llm.stack import build as stack
from aeon.llm.stack.build import EndpointAdapter, Endpoints
from aeon.llm.stack.limits import LimitSettings

ROLE_CALLS: Mapping[Role, tuple[CallName, CallName]] = {
    "planner": ("plan", "plan"),
    "worker": ("step", "step"),
    "grader": ("convergence", "convergence"),
    "repairer": ("repair", "step"),
}
"""For each role, a call to make as it, and the call whose schema is sent with it here."""


@dataclass
class RoleCheck:
    """The outcome of one role's call: the models requested and answering, the fallback if it was
    one, seconds of wall time, and the problem. `usage` is None when the server did not report it.
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
    """Yield one check for each role, then one for each fallback, each made when it is requested.

    Nothing is retried, repaired or stored. When the provider cannot be used, its remaining roles
    are not tried.
    """
    settings = shared.settings
    tuned = {
        role: parameters_for(settings.roles, settings.reasoning, role, "balanced")
        for role in ROLE_CALLS
    }
    first, *others = stack.endpoints_of(shared.adapter, settings.provider)
    down = False
    for role, parameters in tuned.items():
        check = RoleCheck(role, parameters.model or first.prices.model)
        if down:
            check.problem = "not tried: the provider cannot be used"
        else:
            down = _ask(shared, first, check, parameters)
        yield check
    for endpoint in others:
        check = RoleCheck("worker", endpoint.prices.model, fallback=endpoint.name)
        _ask(shared, endpoint, check, replace(tuned["worker"], model=check.asked))
        yield check


def find_apis(shared: Process) -> dict[str, dict[str, bool | None]]:
    """Return by endpoint whether its server has each interface, by their names; None where the
    server does not say. No model is called."""
    endpoints = stack.endpoints_of(shared.adapter, shared.settings.provider)
    return {
        endpoint.name: endpoint.adapter.find_apis()
        for endpoint in endpoints
        if isinstance(endpoint.adapter, ApiFinder)
    }


def _ask(
    shared: Process, endpoint: EndpointAdapter, check: RoleCheck, parameters: Parameters
) -> bool:
    # Each endpoint alone and once: neither a retry nor a fallback may hide that it does not work.
    once = endpoint.retry.model_copy(update={"attempts": 1, "max_wait_seconds": 0.0})
    alone = stack.run_stack(
        Endpoints([replace(endpoint, has_next=False)]), limits=LimitSettings(), retry=once
    )
    request = _build_request(shared, check.role, parameters)
    started = perf_counter()
    try:
        answered = exchange(
            alone, request, shared.schemas.local(ROLE_CALLS[check.role][1]), lambda value: value
        )
    except AeonError as error:
        check.usage = error.usage
        check.problem = f"{type(error).__name__}: {error.message}"
        check.hint = error.hint
        return isinstance(error, ProviderError) and error.ends_run
    finally:
        check.seconds = perf_counter() - started
    check.answered = answered.response.model
    check.usage = answered.response.usage if answered.response.usage_reported else None
    if answered.errors:
        check.problem = f"the answer is not valid by its schema: {answered.errors[0]}"
        check.hint = (
            "Every such answer costs a repair. Try another "
            "model, or another provider.structured_output."
        )
    return False


def _build_request(shared: Process, role: Role, parameters: Parameters) -> LLMRequest:
    call, of_schema = ROLE_CALLS[role]
    wire = shared.schemas.wire(
        of_schema, tools=shared.registry.names() if of_schema == "plan" else None
    )
    system, user = (shared.prompts.text(f"_test_{part}.j2", {}) for part in ("system", "user"))
    messages = Message("system", system), Message("user", user)
    return LLMRequest(
        call=call,
        messages=messages,
        schema=wire.schema,
        schema_prompt=shared.prompts.schema_prompt(call, wire.schema, messages),
        role=role,
        strict=wire.strict,
        parameters=parameters,
    )
