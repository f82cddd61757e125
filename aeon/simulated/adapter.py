"""The simulated provider answers every call without a model. An answer depends only on the seed and
the request, never on the wording of prompts, the order of calls or earlier answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from aeon.domain.errors import NotSimulated, ServerFailed
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.extract import ExtractError, extract_json
from aeon.llm.settings import SimulatedProvider
from aeon.llm.watching import tell_slowly
from aeon.schema.examples import NOTHING, NoExample, complete_value, make_example
from aeon.simulated import plan_answers, work_answers
from aeon.simulated.scenario import (
    Behaviour,
    Rule,
    Scenario,
    Script,
    load_scenario,
    load_seed,
)
from aeon.simulated.situation import MARK, SimulatedCall

_WISHES: Mapping[str, Callable[[SimulatedCall], Any]] = {
    "task_profile": work_answers.task_profile,
    "plan": plan_answers.plan,
    "subplan": plan_answers.subplan,
    "semantic_validation": work_answers.semantic_validation,
    "refinement": plan_answers.refinement,
    "step": work_answers.step,
    "direct": work_answers.direct,
    "convergence": work_answers.convergence,
    "comparison": work_answers.comparison,
}
# The parts that an untidy model forgets, which a repair can add without knowing the task.
_DISPENSABLE = ("goal", "explanation", "raw_inference", "questions", "issues")
_CHARACTERS_PER_TOKEN = 4
_SIMULATED = Rule(simulated=True)


class SimulatedAdapter:
    """An LLMAdapter that invents its answers; thread-safe. They satisfy the schema unless the
    scenario, or the seed's scenario, says otherwise. Usage is estimated. Raises ConfigError if
    `settings.scenario` is unusable."""

    def __init__(self, settings: SimulatedProvider) -> None:
        self.model = settings.model
        own = Scenario() if settings.scenario is None else load_scenario(settings.scenario)
        self._seed = settings.seed if own.seed is None else own.seed
        # The unscripted calls of a scenario are calm unless it names a seed: its author decides
        # what else happens.
        is_calm = settings.scenario is not None and own.seed is None
        of_seed = Scenario() if is_calm else load_seed(self._seed)
        self._script = Script(own)
        self._script_of_seed = Script(of_seed)
        self._behaviour = own.behaviour or of_seed.behaviour or Behaviour()
        latency = own.latency_seconds
        self._latency = settings.latency_seconds if latency is None else latency

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request after the configured latency. Raises an LLMError if scenario or seed
        say so."""
        rule = self._script.take(request) or _SIMULATED
        latency = self._latency if rule.latency_seconds is None else rule.latency_seconds
        if rule.fail is not None:
            time.sleep(latency)
            raise rule.fail.error(_estimate_usage(request, ""), self.model)
        text = self._answer_by_rule(rule, request)
        tell_slowly(request, text, latency)
        return LLMResponse(
            text,
            _estimate_usage(request, text),
            self.model,
            response_id="simulated",
            synthetic=True,
        )

    def _answer_by_rule(self, rule: Rule, request: LLMRequest) -> str:
        if rule.text is not None:
            return rule.text
        if "answer" in rule.model_fields_set:
            calm = SimulatedCall(request, Behaviour(), self._seed)
            return _to_json(_complete_answer(rule.answer, calm))
        if self._script_of_seed.take(request) is not None:
            raise ServerFailed(
                f"the simulated provider fails every such `{request.call}` call with "
                f"seed {self._seed}",
                status=500,
                hint="This is what the seed asks for. Choose another one with "
                "provider.seed=0, or a real provider.",
            )
        return _simulate(SimulatedCall(request, self._behaviour, self._seed))


def _simulate(situation: SimulatedCall) -> str:
    call = situation.request.call
    if "tool_arguments" in (call, situation.variables.get("call")):
        raise NotSimulated(
            "the simulated provider makes no arguments up for it",
            hint="Give the step its arguments, or script them in a scenario "
            "(tool_arguments; repair for wrong ones).",
            model=situation.request.parameters.model or "",
        )
    value = _repair(situation) if call == "repair" else _answer(situation, call)
    return _spoil(value, situation) if situation.behaviour.malformed else _to_json(value)


def _answer(situation: SimulatedCall, call: str) -> Any:
    schema = situation.request.schema
    if call not in _WISHES:
        return _fit(schema, NOTHING)
    wish = _as_round(_WISHES[call](situation), schema)
    return _fit(schema, complete_value(schema, wish, _free_text))


def _as_round(answer: Any, schema: JsonMapping) -> Any:
    """Return the answer as that of a round without tool calls, if the schema is for rounds."""
    is_of_rounds = "tool_calls" in schema.get("properties", {})
    if not is_of_rounds or "tool_calls" in answer:
        return answer
    return {"tool_calls": [], "answer": answer}


def _fit(schema: JsonMapping, wish: object) -> Any:
    for each in (wish, NOTHING):
        try:
            return make_example(schema, each, _free_text)
        except NoExample:
            continue
    raise NotSimulated(
        "the simulated provider can make up no value for this schema",
        hint="Script the answer in a scenario file (`aeon docs scenarios`).",
    )


def _repair(situation: SimulatedCall) -> Any:
    schema = situation.request.schema
    properties = schema.get("properties", {})
    try:
        original = extract_json(situation.variables.get("original") or "")
    except ExtractError:
        original = None
    if not isinstance(original, dict) or 2 * len(original.keys() & properties) < max(
        1, len(properties)
    ):
        return _answer(situation, situation.variables.get("call", ""))
    # A tool chosen without a model would be called with meaningless arguments.
    no_tool = {"tool": None, "arguments": None} if "tool" in properties else {}
    return _fit(schema, complete_value(schema, {**original, **no_tool}, _free_text))


def _spoil(value: Any, situation: SimulatedCall) -> str:
    call = situation.request.call
    text = _to_json(value)
    if call in ("repair", "subplan") or (call != "plan" and situation.rng.random() > 0.3):
        return text
    if call == "step":
        return text[: len(text) * 2 // 3]
    forgotten = next((name for name in _DISPENSABLE if name in value), "")
    return _to_json({name: member for name, member in value.items() if name != forgotten})


def _complete_answer(answer: object, situation: SimulatedCall) -> Any:
    schema = situation.request.schema
    if isinstance(answer, dict) and situation.request.call in _WISHES:
        calm = _as_round(_WISHES[situation.request.call](situation), schema)
        own: JsonObject = _as_round(answer, schema)
        required = schema.get("required", ())
        answer = {**{name: value for name, value in calm.items() if name in required}, **own}
    return complete_value(schema, answer, _free_text)


def _free_text(name: str) -> str:
    return f"{MARK} {name.replace('_', ' ')}".strip()


def _estimate_usage(request: LLMRequest, text: str) -> Usage:
    asked = sum(len(message.content) for message in request.messages) + len(
        json.dumps(request.schema, default=str)
    )
    return Usage(asked // _CHARACTERS_PER_TOKEN, len(text) // _CHARACTERS_PER_TOKEN, requests=1)


def _to_json(value: object) -> str:
    """Encode JSON text; a lone surrogate, which no file or request can contain, becomes a question
    mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
