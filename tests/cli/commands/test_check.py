"""`aeon check`: what is wrong, or what it comes to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from aeon.files.located_yaml import LocatedYaml
from aeon.plan.workflow.models import workflow_json_schema
from tests.cli.conftest import RunAeon

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "workflows.md").read_text(encoding="utf-8")
GOOD = """goal: g
inputs: {who: somebody}
steps:
  - {id: a, description: greet, tool: echo, arguments: {text: "${inputs.who}"}}
  - {id: b, description: say it, depends_on: [a], agent: llm}
"""
BAD = "goal: g\nsteps:\n  - {id: a, description: b, depends_on: [z], agent: llm}\n  - {id: a, descrption: b}\n"


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_file_that_is_fine_is_summed_up_and_drawn(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    ended = aeon("check", "good.yaml", "tools=builtin")
    assert (ended.status, ended.err) == (0, "")
    assert (
        ended.out
        == """\
good.yaml: 2 steps in 2 layers, ending with b
Calls to the model: about 11 with mode=adaptive, 1 with mode=core
Tools: echo
Inputs: who

1  ■  a  [echo] greet
   │
2  ●  b  say it

● done by the model   ■ done by a tool
"""
    )


def test_every_problem_is_a_line_to_jump_to(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    ended = aeon("check", "bad.yaml")
    assert ended.status == 2
    *lines, last = ended.out.splitlines()
    places = [line.partition(": ")[0] for line in lines]
    assert places == [
        "bad.yaml:3:42",
        "bad.yaml:4:5",
        "bad.yaml:4:5",
        "bad.yaml:4:10",
        "bad.yaml:4:13",
    ]
    assert "did you mean `description`?" in lines[-1]
    assert last == "bad.yaml: 4 errors, cannot be run"


def test_several_files_are_checked_and_one_bad_one_tells_in_the_status(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    ended = aeon("check", "good.yaml", "bad.yaml", "nowhere.yaml")
    assert ended.status == 2
    assert "good.yaml: 2 steps" in ended.out
    assert "bad.yaml: 4 errors" in ended.out
    assert "nowhere.yaml:1:1: error: cannot be read: No such file or directory" in ended.out


def test_overrides_say_what_it_is_checked_against(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    without_tools = aeon("check", "good.yaml")
    assert without_tools.status == 0
    assert (
        "good.yaml:4:39: warning: step 'a' uses the tool 'echo', which is not registered"
        in without_tools.out
    )
    assert "warning" not in aeon("check", "good.yaml", "tools=builtin", "inputs.who=x, y").out
    assert "the input 'who' is not given" in aeon("check", "good.yaml", "inputs.other=x").out
    assert aeon("check", "good.yaml", "execution.max_steps=1").status == 2


def test_arguments_are_held_to_the_tools_schema(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(
        "goal: g\nsteps: [{id: a, description: b, tool: calculator, arguments: {expresion: 1 + 1}}]"
    )
    ended = aeon("check", "w.yaml", "tools=builtin")
    assert ended.status == 0
    assert (
        "the tool 'calculator' will refuse this: 'expression' is a required property" in ended.out
    )


LISTED = """
goal: g
inputs: {rows: {type: array}}
steps:
  - {id: a, description: "Describe ${row.name}", agent: llm, for_each: inputs.rows, as: row}
"""


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('[{"name": 1}, {"name": 2}]', "3 with mode=core"),
        ("[1]", "step a: `${row.name}`: there is no `name` in `1`"),
        (json.dumps([{"name": 1}] * 101), "has 101 items: more than execution.max_steps=100"),
    ],
)
def test_given_lists_are_followed(aeon: RunAeon, tmp_path: Path, rows: str, message: str) -> None:
    last = "  - {id: b, description: Together, agent: llm, depends_on: [a]}\n"
    (tmp_path / "plan.yaml").write_text(LISTED + last)
    ended = aeon("check", "plan.yaml", f"inputs.rows={rows}")
    assert message in " ".join(ended.out.split())
    assert ended.status == (0 if "mode=core" in message else 2)


def test_json_for_programs(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    ended = aeon("check", "good.yaml", "bad.yaml", "--json", "tools=builtin")
    assert ended.status == 2
    said = json.loads(ended.out)
    good, bad = said["files"]
    assert (said["ok"], good["ok"], bad["ok"]) == (False, True, False)
    assert good["problems"] == []
    assert good["summary"] == {
        "goal": "g",
        "task": "g",
        "steps": 2,
        "layers": [["a"], ["b"]],
        "final_steps": ["b"],
        "tools": ["echo"],
        "inputs": ["who"],
        "input_schema": {
            "type": "object",
            "properties": {"who": {"type": "string", "description": "somebody"}},
            "required": ["who"],
            "additionalProperties": False,
        },
        "expected_llm_calls": {"adaptive": 11, "core": 1},
    }
    assert bad["summary"] is None
    assert {"line": 3, "column": 42, "severity": "error"}.items() <= bad["problems"][0].items()


def test_a_drawing_in_ascii(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    assert aeon("check", "--ascii", "good.yaml").out.isascii()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "which file?"),
        (("tools=builtin",), "which file?"),
        (("w.yaml", "ttl.bass=1"), "did you mean `base`?"),
    ],
)
def test_usage_and_configuration_errors_end_with_2(
    aeon: RunAeon, arguments: tuple[str, ...], said: str
) -> None:
    ended = aeon("check", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert ended.out == ""


def test_a_file_whose_name_has_an_equals_sign_is_a_file(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "a=b.yaml").write_text(GOOD)
    assert "a=b.yaml: 2 steps" in aeon("check", "a=b.yaml").out


def test_nothing_is_left_behind(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    aeon("check", "good.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["good.yaml"]


def test_the_page_shows_what_is_printed(aeon: RunAeon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command = "$ python -m aeon check examples/workflows/document-review/workflow.yaml\n"
    shown = PAGE.partition(command)[2].partition("```")[0]
    assert aeon("check", "examples/workflows/document-review/workflow.yaml").out == shown


def test_the_example_of_the_page_is_fine(aeon: RunAeon, tmp_path: Path) -> None:
    path = tmp_path / "page.yaml"
    path.write_text(PAGE.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    ended = aeon(
        "check",
        "page.yaml",
        "tools=builtin",
        f"tools.builtin.root={tmp_path}",
        "inputs.file=x",
        "inputs.target=5",
    )
    assert ended.status == 0
    assert "warning" not in ended.out
    assert Draft202012Validator(workflow_json_schema()).is_valid(LocatedYaml(path).value)


def test_the_page_names_every_key() -> None:
    schema = workflow_json_schema()
    for properties in (schema["properties"], schema["$defs"]["WorkflowStep"]["properties"]):
        assert [name for name in properties if f"| `{name}` |" not in PAGE] == []


@pytest.mark.parametrize("name", ["data-question", "design", "document-review"])
def test_the_worked_examples_are_fine_with_the_overrides_that_they_name(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(ROOT)
    path = f"examples/workflows/{name}/workflow.yaml"
    comment = (
        (ROOT / path)
        .read_text(encoding="utf-8")
        .partition("python -m aeon")[2]
        .partition("\n#\n")[0]
    )
    words = [
        word
        for word in comment.replace("\\\n#", " ").split()
        if "=" in word and not word.startswith("plan_file")
    ]
    ended = aeon("check", path, *(word for word in words if '"' not in word), 'inputs.readers="us"')
    assert (ended.status, ended.err) == (0, "")
    assert "warning" not in ended.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("itself.yaml", "goal: &a\n  - *a\n"),
        ("deep.yaml", f"goal: {'[' * 3000}{']' * 3000}\n"),
        ("deep.json", f'{{"goal": {"[" * 100_000}{"]" * 100_000}}}'),
        ("less.json", f'{{"goal": {"[" * 800}{"]" * 800}}}'),
    ],
)
def test_a_file_that_is_nested_too_deeply_is_told_so(
    aeon: RunAeon, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    ended = aeon("check", name)
    assert ended.status == 2
    assert re.match(
        rf"{re.escape(name)}:1:\d+: error: nested (too deeply|more than 200 levels deep)", ended.out
    )
    assert "recursion" not in ended.out + ended.err


def test_a_byte_that_is_not_utf_8_has_its_place_and_the_path_once(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "w.yaml").write_bytes(b"goal: a\nx: \xff\n")
    ended = aeon("check", "w.yaml")
    assert ended.status == 2
    assert "w.yaml:2:4: error: not UTF-8 text. Convert it to UTF-8." in ended.out.splitlines()


def test_a_step_without_id_has_the_same_name_in_every_message(
    aeon: RunAeon, tmp_path: Path
) -> None:
    second = "  - {description: d, tool: nope, arguments: {x: '${steps.a.output}'}}\n  - {description: d, arguments: {}}\n"
    (tmp_path / "w.yaml").write_text(
        "goal: g\nsteps:\n  - {id: a, description: d, agent: llm}\n" + second
    )
    ended = aeon("check", "w.yaml")
    assert "steps[2]: `id` is missing" in ended.out
    assert "steps[2] uses the tool 'nope'" in ended.out
    assert "steps[3] has neither `tool` nor `agent`" in ended.out
    assert "step '1'" not in ended.out
    assert "\0" not in ended.out


@pytest.mark.slow
def test_a_tool_of_a_server_that_does_not_start_is_told_with_the_reason(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text(
        "goal: g\nsteps:\n  - {id: a, description: d, tool: dead_x}\n", encoding="utf-8"
    )
    given = ("tools=mcp", "+tools.mcp.servers.dead.command=[no-such-command-anywhere]")
    ended = aeon("check", "p.yaml", *given)
    assert "step 'a' uses the tool 'dead_x': the MCP server 'dead' did not start: " in ended.out
    assert "; another is looked for, or the model does the step" in ended.out
    run = aeon("plan_file=p.yaml", "provider=simulated", "mode=core", "progress=none", *given)
    assert "step 'a' uses the tool 'dead_x': the MCP server 'dead' did not start: " in run.err
    assert "the step will fail" not in run.err
