"""What models, tools, servers and strangers' files give is read in about linear time, or refused with a reason.

Each parser is given inputs that grow, of the kinds that have cost too much, or might.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI, Stream

from aeon.domain.errors import AeonError
from aeon.files.located_yaml import LocatedYaml
from aeon.llm.dialects.refusal import find_error
from aeon.llm.exchange import InvalidAnswer, check_answer
from aeon.llm.extract import ExtractError, extract_json
from aeon.llm.openai.answer import assemble
from aeon.llm.prompts import fence
from aeon.llm.schemas import SchemaLibrary, load_packaged_schemas
from aeon.plan.wire import parse_plan, parse_refinement
from aeon.plan.workflow.load import inspect_workflow
from aeon.schema.strict import strict_violations
from aeon.schema.validators import compile_schema
from aeon.store.cassette import Cassette, Provenance, decode, encode
from aeon.supervisor.faithful import find_foreign_tools
from tests.store.cassettes import entry
from tests.support.growth import MOST, growth
from tests.support.scripted_model import action, plan, planned, refinement

Make = Callable[[int], Any]
Work = Callable[[Any], object]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def growing(make: Make, work: Work) -> float:
    """The exponent of reading what `make` gives; that it is refused in the end does not matter here."""

    def read(given: Any) -> None:
        with suppress(AeonError, ExtractError, InvalidAnswer):
            work(given)

    return growth(make, read)


def test_a_reader_that_takes_a_square_is_found() -> None:
    def compare_all(given: range) -> int:
        return sum(1 for one in given for other in given if one == other)

    assert growing(range, compare_all) > MOST


def keys(size: int) -> str:
    return ",".join(f'"k{number}":1' for number in range(size))


TEXTS: dict[str, Make] = {
    "an object": lambda n: f"{{{keys(n)}}}",
    "a key twice among many": lambda n: f'{{{keys(n)},"k{n - 1}":2}}',
    "many objects with a key twice": lambda n: 'x {"a":1,"a":2} ' * n,
    "broken objects": lambda n: 'x {"a":} ' * n,
    "braces that nothing closes": lambda n: '{"' * n,
    "blanks behind a brace": lambda n: "{" + " " * n,
    "backslashes": lambda n: '{"' + "\\" * n,
    "fences": lambda n: '```json\n{"a":\n```\n' * n,
    "ends of reasoning": lambda n: '{"a":1}</think>' * n,
    "channels": lambda n: "<|channel|>final " * n,
    "nesting": lambda n: '{"a":' * n,
    "a large number": lambda n: "[" + "9" * n + "]",
}


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
def test_json_is_found_in_linear_time(make: Make) -> None:
    assert growing(make, extract_json) <= MOST


def steps(size: int, dependencies: Callable[[int], list[str]], name: str = "s") -> str:
    return json.dumps(plan(*(planned(f"{name}{i}", *dependencies(i)) for i in range(size))))


PLANS: dict[str, Make] = {
    "a chain": lambda n: steps(n, lambda i: [f"s{i - 1}"] if i else []),
    "one cycle": lambda n: steps(n, lambda i: [f"s{(i + 1) % n}"]),
    "many cycles": lambda n: steps(n, lambda i: [f"s{i ^ 1}"]),
    "one id": lambda n: json.dumps(plan(*(planned("s") for _ in range(n)))),
    "a long id in many messages": lambda n: json.dumps(
        plan(planned("s" * n, *(f"x{i}" for i in range(n))))
    ),
    "steps that lack everything": lambda n: json.dumps(plan(*({"step_id": "a"} for _ in range(n)))),
    "arguments that are long": lambda n: json.dumps(
        plan(planned("s", tool="t", arguments=f"{{{keys(n)}}}"))
    ),
    "arguments with a key twice": lambda n: json.dumps(
        plan(planned("s", tool="t", arguments=f'{{{keys(n)},"k0":1}}'))
    ),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_a_plan_is_read_in_linear_time(make: Make) -> None:
    def read(answer: Any) -> Any:
        return parse_plan(answer, "the task", max_steps=100, one_final_step=True)

    assert (
        growing(make, lambda text: check_answer(text, load_packaged_schemas().local("plan"), read))
        <= MOST
    )


def test_a_refinement_of_very_many_actions_is_refused() -> None:
    cycles = refinement(*(action("ADD", None, planned(f"x{i}", f"x{i ^ 1}")) for i in range(301)))
    with pytest.raises(
        InvalidAnswer, match="/actions: there are 301 changes, at most 300 are read: give the most"
    ):
        parse_refinement(cycles, ())


COMPARED: dict[str, Make] = {
    "one step many times": lambda n: (json.dumps(plan(planned("s", provides=["x"] * n))), n),
    "no step": lambda n: (json.dumps(plan(planned("t", provides=["x"] * n))), n),
    "no JSON": lambda n: ("tool: " * n, n),
    "no JSON, quotes": lambda n: ('"tool":"' * n, n),
}


@pytest.mark.parametrize("make", COMPARED.values(), ids=COMPARED)
def test_tools_of_a_repair_are_compared_in_linear_time(make: Make) -> None:
    def compare(given: tuple[str, int]) -> object:
        return find_foreign_tools("plan", given[0], {"steps": [planned("s", tool="t")] * given[1]})

    assert growing(make, compare) <= MOST


def merged(size: int) -> str:
    lines = [f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}" for i in range(1, size)]
    return "\n".join(["a0: &a0 {x: 1}", *lines])


def doubled(size: int) -> str:
    return "\n".join(
        ["a0: &a0 [1, 1]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, size))]
    )


FILES: dict[str, Make] = {
    "keys": lambda n: "\n".join(f"k{i}: 1" for i in range(n)),
    "a key many times": lambda n: "k: 1\n" * n,
    "a mapping merged many times": lambda n: f"a: &a {{x: 1}}\nb: {{<<: [{','.join(['*a'] * n)}]}}",
    "a large mapping merged many times": lambda n: (
        f"a: &a {{{','.join(f'k{i}: 1' for i in range(n))}}}\nb: {{<<: [{','.join(['*a'] * n)}]}}"
    ),
    "lines of a text": lambda n: "a: |\n" + "  x\n" * n,
}


@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_a_file_is_read_in_linear_time(make: Make, tmp_path: Path) -> None:
    assert growing(lambda n: written(tmp_path, make(n)), LocatedYaml) <= MOST


def written(folder: Path, text: str) -> Path:
    path = folder / f"{len(text)}.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", [merged(200), doubled(150), "{" * 20_000, "k: 1\nk:\n  x: 1\n  " + "? " * 5000]
)
def test_a_small_file_that_unfolds_without_an_end_is_read_or_refused(
    text: str, tmp_path: Path
) -> None:
    with suppress(AeonError):
        LocatedYaml(written(tmp_path, text))


WORKFLOWS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "a chain": lambda n: [{"id": f"s{i}", "depends_on": [f"s{i - 1}"]} for i in range(n)],
    "references": lambda n: [{"id": "s", "arguments": {"a": "${steps.zz.output} " * n}}],
    "a long reference": lambda n: [
        {"id": "s", "arguments": {"a": "${steps.a" + ".output" * n + "}"}}
    ],
    "a long id, nearly meant": lambda n: [
        {"id": "s" * n, "arguments": {"a": "${steps." + "s" * n + "x.output}"}}
    ],
    "unknown keys": lambda n: [{"id": "s", **{f"k{i}": 1 for i in range(n)}}],
}


@pytest.mark.parametrize("make", WORKFLOWS.values(), ids=WORKFLOWS)
def test_a_workflow_is_checked_in_linear_time(make: Make, tmp_path: Path) -> None:
    def file(size: int) -> Path:
        listed = [{"description": "d", "tool": "echo", **step} for step in make(size)]
        return written(tmp_path, json.dumps({"goal": "g", "steps": listed}))

    assert (
        growing(file, lambda path: inspect_workflow(path, tool_names=["echo"], input_names=()))
        <= MOST
    )


def definitions(size: int) -> dict[str, Any]:
    """A schema whose references double at each definition."""
    found: dict[str, Any] = {f"d{size}": {"type": "string"}}
    for number in range(size):
        inner = {"$ref": f"#/$defs/d{number + 1}"}
        found[f"d{number}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    return {"type": "object", "properties": {"k": {"$ref": "#/$defs/d0"}}, "$defs": found}


SCHEMAS: dict[str, Make] = {
    "properties": lambda n: {
        "type": "object",
        "properties": {f"k{i}": {"type": "string"} for i in range(n)},
    },
    "names that are required": lambda n: {
        "type": "object",
        "required": [f"k{i}" for i in range(n)],
    },
    "values": lambda n: {
        "type": "object",
        "properties": {"k": {"enum": [f"v{i}" for i in range(n)]}},
    },
}


@pytest.mark.parametrize("make", SCHEMAS.values(), ids=SCHEMAS)
def test_the_schema_of_a_tool_is_read_in_linear_time(make: Make) -> None:
    assert growing(make, lambda schema: compile_schema(schema, "the schema")) <= MOST
    assert growing(make, strict_violations) <= MOST


def test_references_that_double_are_each_followed_once() -> None:
    wire = SchemaLibrary().wire("tool_arguments", answer_schema=definitions(60))
    assert not wire.strict


BODIES: dict[str, Make] = {
    "a message": lambda n: {
        "message": "response format, exceeds context length, not a supported " * n
    },
    "a code": lambda n: {"message": "m", "code": "a_" * n},
    "places": lambda n: {"detail": [{"loc": ["a"] * n}]},
}


@pytest.mark.parametrize("make", BODIES.values(), ids=BODIES)
def test_an_error_of_a_server_is_read_in_linear_time(make: Make) -> None:
    def read(body: bytes) -> object:
        refusal = find_error(body)
        assert refusal is not None
        refused = refusal.find_refused(("temperature",))
        return refusal.is_about_format, refusal.meaning, refusal.is_about_request, refused

    assert growing(lambda n: json.dumps({"error": make(n)}).encode(), read) <= MOST


STREAMS: dict[str, Make] = {
    "texts": lambda n: [{"content": "x"}] * n,
    "arguments": lambda n: [{"tool_calls": [{"function": {"arguments": "x"}}]}] * n,
    "tool calls": lambda n: [{"tool_calls": [{"function": {"name": "x", "arguments": ""}}]}] * n,
}


@pytest.mark.parametrize("make", STREAMS.values(), ids=STREAMS)
def test_a_streamed_answer_is_read_in_linear_time(make: Make) -> None:
    def body(size: int) -> bytes:
        return "".join(
            f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in make(size)
        ).encode()

    client = OpenAI(api_key="none")

    def read(text: bytes) -> object:
        response = httpx2.Response(200, content=text, request=httpx2.Request("POST", "http://x"))
        return assemble(Stream(cast_to=object, response=response, client=client), [].append)

    assert growing(body, read) <= MOST


def test_data_is_fenced_in_linear_time() -> None:
    assert (
        growing(
            lambda n: "".join(f"</data-{i}>" for i in range(n)), lambda text: fence(text, "data")
        )
        <= MOST
    )


def test_a_cassette_is_read_in_linear_time() -> None:
    answered = Provenance(answered_by="hand", first="2026-11-21", last="2026-11-21")
    whole = Cassette(provenance=answered, answers=(entry(),))
    header, line = encode(whole).splitlines(keepends=True)
    assert growing(lambda n: header + line * (n // 10), decode) <= MOST
