"""The simulated provider: no model at all, and still an answer for every call. An answer depends on the seed and on the
request alone, never on the wording of prompts, the order of calls or earlier answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from aeon.domain.errors import NotSimulated, ServerFailed
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.extract import ExtractError, extract_json
from aeon.llm.settings import SimulatedProvider
from aeon.llm.watching import tell_slowly
from aeon.schema.examples import NOTHING, NoExample, complete_value, make_example
from aeon.simulated import plan_answers, work_answers
from aeon.simulated.scenario import Script, load_scenario
from aeon.simulated.situation import CALM, MARK, SimulatedCall, character

_WISHES: Mapping[str, Callable[[SimulatedCall], Any]] = {
    "task_profile": work_answers.task_profile,
    "plan": plan_answers.plan,
    "subplan": plan_answers.subplan,
    "semantic_validation": work_answers.semantic_validation,
    "refinement": plan_answers.refinement,
    "step": work_answers.step,
    "convergence": work_answers.convergence,
}
# What an untidy model forgets: what a repair can give without knowing the task.
_DISPENSABLE = ("goal", "explanation", "raw_inference", "questions", "issues")
_CHARACTERS_PER_TOKEN = 4


class SimulatedAdapter:
    """An LLMAdapter that makes its answers up, thread-safe. They satisfy the schema unless the seed's character
    or the scenario wants otherwise. Usage is estimated. Raises ConfigError when `settings.scenario` cannot be used."""

    def __init__(self, settings: SimulatedProvider) -> None:
        self.model = settings.model
        self._seed, self._latency = settings.seed, settings.latency_seconds
        self._script: Script | None = None
        self._character = character(settings.seed)
        if settings.scenario is not None:
            scenario = load_scenario(settings.scenario)
            self._script = Script(scenario)
            # What a scenario does not script is calm, unless it names a seed: its author knows what else is to happen.
            self._character = CALM if scenario.seed is None else character(scenario.seed)
            self._seed = settings.seed if scenario.seed is None else scenario.seed
            if scenario.latency_seconds is not None:
                self._latency = scenario.latency_seconds

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request, after the configured latency. Raises an LLMError where scenario or seed say so."""
        rule = self._script.take(request) if self._script else None
        latency = (
            self._latency if rule is None or rule.latency_seconds is None else rule.latency_seconds
        )
        if rule is not None and rule.fail is not None:
            time.sleep(latency)
            raise rule.fail.error(_estimate_usage(request, ""), self.model)
        if rule is not None and rule.text is not None:
            text = rule.text
        elif rule is not None and "answer" in rule.model_fields_set:
            text = _to_json(_complete_answer(rule.answer, SimulatedCall(request, CALM, self._seed)))
        else:
            text = _simulate(SimulatedCall(request, self._character, self._seed))
        tell_slowly(request, text, latency)
        return LLMResponse(
            text,
            _estimate_usage(request, text),
            self.model,
            response_id="simulated",
            synthetic=True,
        )


def _simulate(situation: SimulatedCall) -> str:
    call, seed = situation.request.call, situation.seed
    if "tool_arguments" in (call, situation.variables.get("call")):
        raise NotSimulated(
            "the simulated provider makes no arguments up for it",
            hint="Give the step its arguments, or script them in a scenario (tool_arguments; repair for wrong ones).",
            model=situation.request.parameters.model or "",
        )
    # Of the steps it is the last that fails.
    if call == situation.character.fails and situation.step.get("step_index") == situation.step.get(
        "total_steps"
    ):
        raise ServerFailed(
            f"the simulated provider fails every such `{call}` call with seed {seed}",
            status=500,
            hint="This is what the seed asks for. Choose another one with provider.seed=0, or a real provider.",
        )
    value = _repair(situation) if call == "repair" else _answer(situation, call)
    return _spoil(value, situation) if situation.character.malformed else _to_json(value)


def _answer(situation: SimulatedCall, call: str) -> Any:
    return _fit(situation.request.schema, _WISHES[call](situation) if call in _WISHES else NOTHING)


def _fit(schema: Mapping[str, Any], wish: Any) -> Any:
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
    # A tool chosen without a model would be called, with arguments that mean nothing.
    no_tool = {"tool": None, "arguments": None} if "tool" in properties else {}
    return _fit(schema, complete_value(schema, {**original, **no_tool}, _free_text))


def _spoil(value: Any, situation: SimulatedCall) -> str:
    call, text = situation.request.call, _to_json(value)
    if call in ("repair", "subplan") or (call != "plan" and situation.rng.random() > 0.3):
        return text
    if call == "step":
        return text[: len(text) * 2 // 3]
    forgotten = next((name for name in _DISPENSABLE if name in value), "")
    return _to_json({name: member for name, member in value.items() if name != forgotten})


def _complete_answer(answer: Any, situation: SimulatedCall) -> Any:
    schema = situation.request.schema
    if isinstance(answer, dict) and situation.request.call in _WISHES:
        calm = _WISHES[situation.request.call](situation)
        required = schema.get("required", ())
        answer = {**{name: value for name, value in calm.items() if name in required}, **answer}
    return complete_value(schema, answer, _free_text)


def _free_text(name: str) -> str:
    return f"{MARK} {name.replace('_', ' ')}".strip()


def _estimate_usage(request: LLMRequest, text: str) -> Usage:
    asked = sum(len(message.content) for message in request.messages) + len(
        json.dumps(request.schema, default=str)
    )
    return Usage(asked // _CHARACTERS_PER_TOKEN, len(text) // _CHARACTERS_PER_TOKEN, requests=1)


def _to_json(value: Any) -> str:
    """JSON text; a lone surrogate, which no file and no wire can carry, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
