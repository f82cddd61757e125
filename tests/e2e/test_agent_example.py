"""The thirty research tasks of `examples/agent/`, on a scripted model that knows how to look, and nothing of the answers."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.request import LLMRequest
from aeon.domain.result import RunResult
from aeon.tools.registry import Tool
from tests.support.openai_server import Answer, Completion, OpenAIServer, Received
from tests.support.scripted_model import ScriptedModel, clear

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent"
TASKS = [
    json.loads(line) for line in (EXAMPLE / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("office")
    load("make_data").write_data(folder)
    return folder


@pytest.fixture(scope="module")
def tools(data: Path) -> list[Tool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFFICE_DATA", str(data))
        module = load("office")
    return [module.search, module.query]


def settings_of(data: Path) -> list[str]:
    return [
        f"plan_file={EXAMPLE / 'plan.yaml'}",
        "mode=core",
        "store=off",
        "tools=builtin",
        "tools.builtin.only=[read_file]",
        f"tools.builtin.root={data / 'documents'}",
    ]


@pytest.fixture(scope="module")
def office(data: Path, tools: list[Tool]) -> Iterator[Aeon]:
    model = ScriptedModel(step=look)
    with Aeon.from_config(settings_of(data), environ={}, adapter=model, tools=tools) as aeon:
        yield aeon


# The model: it looks where a person would, and reads each next step off the results alone.


def calls(*asked: tuple[str, dict[str, str]]) -> dict[str, Any]:
    listed = [{"tool": tool, "arguments": json.dumps(given)} for tool, given in asked]
    return {"tool_calls": listed, "answer": None}


def select(sql: str) -> dict[str, Any]:
    return calls(("query", {"sql": sql}))


def look(request: LLMRequest) -> dict[str, Any]:
    opening, *later = (message.content for message in request.messages[1:])
    return look_further(opening, later[1::2])


def call_functions(received: Received) -> Answer:
    """The same, where calls and results are messages of their own."""
    results: list[str] = []
    for message in received.body["messages"][2:]:
        if message["role"] == "assistant":
            results.append("")
        else:
            results[-1] += message["content"]
    answer = look_further(received.user, results)
    if "tool_calls" not in answer:
        return answer
    functions = [
        {"name": call["tool"], "arguments": call["arguments"]} for call in answer["tool_calls"]
    ]
    made = [{"id": "x", "type": "function", "function": function} for function in functions]
    return Completion(tool_calls=made, finish_reason="tool_calls")


def look_further(opening: str, results: list[str]) -> dict[str, Any]:
    if "by how many days" in opening:
        return look_for_delay(opening, results)
    return look_in_hall(opening, results)


def look_in_hall(task: str, results: list[str]) -> dict[str, Any]:
    hall = find(r"of hall (\d+)", task)
    wants_price = "cost?" in task
    if not results:
        return calls(("search", {"words": f"maintenance hall {hall}"}))
    article = find(rf"note, hall {hall}\..*?is article (P-\d+)", results[0])
    if len(results) == 1 and wants_price:
        return select(f"SELECT price FROM articles WHERE number = '{article}'")
    if len(results) == 1:
        joined = "articles JOIN suppliers ON suppliers.id = articles.supplier"
        return select(f"SELECT name FROM {joined} WHERE number = '{article}'")
    if wants_price:
        return clear(f"{float(find(r'[0-9.]+(?=]])', results[1], 0)):.2f}")
    if len(results) == 2:
        supplier = find(r'\[\["(.*?)"', results[1])
        return calls(("search", {"words": f"{supplier} contact"}))
    return clear(find(r"contact is ([\w ]+),", results[2]))


def look_for_delay(task: str, results: list[str]) -> dict[str, Any]:
    customer = find(r"orders of (.*?) in month", task)
    month = find(r"in month (\d+)", task)
    if not results:
        where = f"customer = '{customer}' AND month = {month}"
        return select(f"SELECT number FROM orders WHERE {where}")
    if len(results) == 1:
        orders = re.findall(r"O-\d+", results[0])
        return calls(*(("read_file", {"path": f"delivery-{order}.txt"}) for order in orders))
    late = [int(days) for days in re.findall(r"arrived (\d+) days late", results[1])]
    return clear(str(max(late, default=0)))


def find(pattern: str, text: str, group: int = 1) -> str:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in {text}"
    return found[group]


@pytest.mark.parametrize("row", TASKS, ids=lambda row: row["id"])
def test_a_task_is_researched(row: dict[str, Any], office: Aeon) -> None:
    result: RunResult = office.run(row["task"])
    assert result.answer == str(row["target"])
    [ended] = result.history.passes[-1].execution_results.values()
    assert ended.tool_use is not None
    made = [one for each in ended.tool_use.rounds for one in each]
    assert len(made) >= 2
    assert [one.error for one in made] == [None] * len(made)
    assert result.ttl.used == len(ended.tool_use.rounds) + 1


@pytest.mark.slow
def test_all_tasks_are_researched_by_function_calling(data: Path, tools: list[Tool]) -> None:
    with OpenAIServer({"step": call_functions}) as server:
        with Aeon.from_config(
            [*settings_of(data), *server.overrides], environ={}, tools=tools
        ) as aeon:
            answers = {row["id"]: aeon.run(row["task"]).answer for row in TASKS}
        assert all("tools" in received.body for received in server.requests)
        assert server.refused == []
    assert answers == {row["id"]: str(row["target"]) for row in TASKS}


def test_a_search_says_how_many_documents_it_leaves_out(tools: list[Tool]) -> None:
    search = tools[0].invoke
    found = search({"words": "Harbour Works"})
    assert found[20:] == ["4 more documents are not shown: add words."]
    assert len(search({"words": "Grau"})) == 2


def test_a_search_knows_documents_by_their_file_names_too(tools: list[Tool]) -> None:
    [found] = tools[0].invoke({"words": "letter Ghent"})
    assert found.startswith("letter-6.txt: Grau & Ghent")


def test_a_query_says_when_it_leaves_rows_out(tools: list[Tool]) -> None:
    query = tools[1].invoke
    rows = query({"sql": "SELECT number FROM articles"})
    assert rows[50:] == [["More rows are not shown: ask for fewer."]]
    assert len(query({"sql": "SELECT number FROM articles LIMIT 50"})) == 50


def test_the_tasks_are_those_of_the_script() -> None:
    assert load("make_data").World().tasks() == TASKS


def test_there_are_two_hundred_documents(data: Path) -> None:
    assert len(list((data / "documents").iterdir())) == 200
    assert (data / "stock.sqlite").stat().st_size < 100_000
