"""The simulated provider: no model at all, and still an answer for every call.

An answer depends on the seed and on what the request says (call, messages, schema), never on the order of calls or on
earlier ones: runs are repeatable, and steps that run at the same time do not disturb each other. The seed's character
(`aeon.simulated.characters`) decides how a run goes. A scenario file (`aeon.simulated.scenario`) goes before.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from aeon.domain.errors import NotSimulated, ServerFailed
from aeon.domain.request import CallName, LLMRequest, LLMResponse, Usage
from aeon.llm.settings import SimulatedProvider
from aeon.simulated import plan_answers, work_answers
from aeon.simulated.characters import CALM, Character, character
from aeon.simulated.prompt_reading import Reading, json_objects, read
from aeon.simulated.scenario import Rule, Scenario, Script, load_scenario
from aeon.simulated.schema_values import NOTHING, completed, fitted
from aeon.simulated.situation import Situation

_WISHES: Mapping[CallName, Callable[[Situation], Any]] = {
    "task_profile": work_answers.task_profile,
    "plan": plan_answers.plan,
    "subplan": plan_answers.subplan,
    "semantic_validation": work_answers.semantic_validation,
    "refinement": plan_answers.refinement,
    "step": work_answers.step,
    "convergence": work_answers.convergence,
}
# A repair is asked for in the schema of the call that it repairs; these properties tell which one that is.
_TELLING: Mapping[str, CallName] = {
    "raw_inference": "task_profile",
    "goal": "plan",
    "substeps": "subplan",
    "actions": "refinement",
    "step_output": "step",
    "completeness_score": "convergence",
    "issues": "semantic_validation",
}
_A_STEP = {"step_id", "tool", "arguments"}

# How often an untidy model spoils an answer, and what it then forgets: what a repair can give without knowing the task.
_SPOILED: Mapping[CallName, float] = {
    "task_profile": 0.3,
    "plan": 1.0,
    "semantic_validation": 0.2,
    "refinement": 0.3,
    "step": 0.3,
    "convergence": 0.3,
}
_DISPENSABLE = ("goal", "explanation", "raw_inference", "questions", "issues")
_CHARACTERS_PER_TOKEN = 4


class SimulatedAdapter:
    """An LLMAdapter that makes its answers up; thread-safe, without run state (a scenario's `times` counts uses).

    Its answers satisfy the request's schema unless the seed's character or the scenario wants otherwise. Usage is
    estimated: four characters a token, the schema included. Raises ConfigError when `settings.scenario` cannot be used.
    """

    def __init__(self, settings: SimulatedProvider) -> None:
        self._settings = settings
        self._seed, self._latency = settings.seed, settings.latency_seconds
        self._script: Script | None = None
        self._character = character(settings.seed)
        if settings.scenario is not None:
            self._follow(load_scenario(settings.scenario))

    @property
    def model(self) -> str:
        """The name that calls are priced under when they name no model."""
        return self._settings.model

    def _follow(self, scenario: Scenario) -> None:
        """What a scenario does not script is calm, unless it names a seed: its author knows what else is to happen."""
        self._script = Script(scenario)
        self._character = CALM if scenario.seed is None else character(scenario.seed)
        self._seed = self._seed if scenario.seed is None else scenario.seed
        self._latency = self._latency if scenario.latency_seconds is None else scenario.latency_seconds

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request, after the configured latency. Raises an LLMError where scenario or seed say so."""
        rule = self._script.take(request) if self._script else None
        latency = self._latency if rule is None or rule.latency_seconds is None else rule.latency_seconds
        if latency > 0:
            time.sleep(latency)
        if rule is not None and rule.fail is not None:
            raise rule.fail.error(_estimated(request, ""), self._settings.model)
        text = self._text(rule, request)
        return LLMResponse(
            text=text,
            usage=_estimated(request, text),
            model=self._settings.model,
            response_id=f"simulated-{_digest(request, self._seed)[:16]}",
            synthetic=True,
        )

    def _text(self, rule: Rule | None, request: LLMRequest) -> str:
        if rule is not None and rule.text is not None:
            return rule.text
        if rule is not None and rule.answers:
            return _filled(rule.answer, _situation(request, self._seed, CALM))
        return _simulated(_situation(request, self._seed, self._character))


def _simulated(situation: Situation) -> str:
    """The text that the character answers. Raises ServerFailed where the character fails."""
    if _for_a_tool(situation.request):
        raise NotSimulated(
            "the simulated provider makes no arguments up for it",
            hint="Give the step its arguments, or script them in a scenario (tool_arguments; repair for wrong ones).",
            model=situation.request.parameters.model or "",
        )
    if _fails(situation):
        raise ServerFailed(
            f"the simulated provider fails every such `{situation.request.call}` call with seed {situation.seed}",
            status=500,
            hint="This is what the seed asks for. Choose another one with provider.seed=0, or a real provider.",
        )
    text = _text(_answer(situation))
    return _spoiled(text, situation) if situation.character.malformed else text


def _for_a_tool(request: LLMRequest) -> bool:
    """Whether a real tool would be called with the answer: its arguments, or a repair of them.

    Within a step the other repairs are of its output and of its choice of a tool.
    """
    if request.call != "repair" or request.site.step_id is None:
        return request.call == "tool_arguments"
    properties = set(request.schema.get("properties", ()))
    return "step_output" not in properties and properties != {*_A_STEP, "description"}


def _situation(request: LLMRequest, seed: int, chosen: Character) -> Situation:
    return Situation(request, read(request), chosen, seed, Random(_digest(request, seed)))


def _answer(situation: Situation) -> Any:
    return fitted(situation.request.schema, _wish(situation), situation.rng)


def _wish(situation: Situation) -> Any:
    """What the answer should be before it is fitted to the schema."""
    call = situation.request.call
    if call == "repair":
        properties = situation.request.schema.get("properties", {})
        original = _original(situation.reading, properties)
        if original is not None and set(properties) >= _A_STEP:
            # A tool chosen without a model would be called, with arguments that mean nothing.
            return {**original, "tool": None, "arguments": None}
        if original is not None:
            return completed(situation.request.schema, original, situation.rng)
        call = next((call for name, call in _TELLING.items() if name in properties), call)
    make = _WISHES.get(call)
    return make(situation) if make else NOTHING


def _original(reading: Reading, properties: Any) -> dict[str, Any] | None:
    """The answer to be repaired: of the JSON objects in the prompt, the first with most of the schema's properties."""
    labelled = [reading.text(label) or "" for label in ("attempt", "original")]
    others = [fence.text for fence in reading.fences if fence.label not in ("attempt", "original", "schema")]
    found = [value for text in (*labelled, *others, reading.bare) for value in json_objects(text)]
    best = max(found, key=lambda value: sum(name in properties for name in value), default={})
    return best if 2 * sum(name in properties for name in best) >= max(1, len(properties)) else None


def _fails(situation: Situation) -> bool:
    """Whether this request is one that the character never answers; of the steps it is the last."""
    if situation.request.call != situation.character.fails:
        return False
    index, total = situation.reading.position
    return situation.request.call != "step" or index == total


def _spoiled(text: str, situation: Situation) -> str:
    """The answer as an untidy model gives it: a step's cut off, others without a property. Repairs are in order."""
    call = situation.request.call
    value = json.loads(text)
    if situation.rng.random() >= _SPOILED.get(call, 0) or not isinstance(value, dict):
        return text
    if call == "step":
        return text[: len(text) * 2 // 3]
    dispensable = next((name for name in _DISPENSABLE if name in value), "")
    return _text({name: member for name, member in value.items() if name != dispensable})


def _filled(answer: Any, situation: Situation) -> str:
    """A scripted answer, what is missing taken from a calm simulated one, deeper down the least there can be."""
    schema = situation.request.schema
    if isinstance(answer, dict) and isinstance(calm := _answer(situation), dict):
        required = schema.get("required", ())
        answer = {**{name: value for name, value in calm.items() if name in required}, **answer}
    return _text(completed(schema, answer, situation.rng))


def _digest(request: LLMRequest, seed: int) -> str:
    said = [seed, request.call, [[m.role, m.content] for m in request.messages], request.schema]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _estimated(request: LLMRequest, text: str) -> Usage:
    asked = sum(len(message.content) for message in request.messages) + len(json.dumps(request.schema, default=str))
    return Usage(asked // _CHARACTERS_PER_TOKEN, len(text) // _CHARACTERS_PER_TOKEN, requests=1)


def _text(value: Any) -> str:
    """JSON text; a lone surrogate, which no file and no wire can carry, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
