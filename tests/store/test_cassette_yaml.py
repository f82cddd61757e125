"""Cassettes that earlier versions wrote, as YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon.domain.errors import StoreFailed
from aeon.store.cassette import decode, read, write

HEAD = """# What a run of Aeon asked, and what it was answered.
format: aeon.cassette/1
provenance: {answered_by: hand, first: '2026-11-21', last: '2026-11-21'}
origin: {task: name three rivers}
"""
ANSWER = """- path: {pass_number: 1, phase: EXECUTE, call: step, step_id: draft}
  time: '2026-11-21'
  request:
    model: m
    messages:
    - role: system
      content: &id001 |
        Judge, yes: 12:30.
    - {role: user, content: *id001}
  answer: {model: m, usage: {input_tokens: 402, output_tokens: 31}}
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{', '.join([f'*{chr(97 + n)}'] * 10)}]}}\n"
    for n in range(12)
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("text: an answer", "an answer"),
        ("json: {a: [1, 2.5, null]}", '{"a": [1, 2.5, null]}'),
        ("json_compact: {a: [1, é]}", '{"a":[1,"é"]}'),
        ("json_indented: {a: 1}", '{\n  "a": 1\n}'),
    ],
)
def test_an_answer_comes_back_as_it_was_written(shown: str, text: str, tmp_path: Path) -> None:
    cassette = decode(f"{HEAD}answers:\n{ANSWER}  {shown}\n".encode())
    (entry,) = cassette.answers
    assert cassette.origin == {"task": "name three rivers"}
    assert entry.answer["text"] == text
    assert [m["content"] for m in entry.request.body["messages"]] == ["Judge, yes: 12:30.\n"] * 2
    write(cassette, tmp_path / "new.aeon")
    assert read(tmp_path / "new.aeon") == cassette


def test_an_answer_of_a_tool_comes_back() -> None:
    tool = "- {kind: tool, path: {pass_number: 1, phase: EXECUTE, call: echo}, time: t, request: {tool: echo}, answer: {output: 3}}"
    (entry,) = decode(f"{HEAD}answers:\n{tool}\n".encode()).answers
    assert (entry.request.kind, entry.answer) == ("tool", {"output": 3})


@pytest.mark.slow
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "its answers are no list"),
        ("answers: 3", "its answers are no list"),
        ("answers: [x]", "answer 1 is no object of path, kind, time, answer and request"),
        (BOMB, "cannot be read as YAML: line .* more than 100000 values"),
        (MERGES, "cannot be read as YAML: line .* more than 100000 values"),
        ("a: &a [*a]", "nested more than 200 levels deep"),
        ("a: " + "[" * 100_000, "nested more than 200 levels deep"),
        ("a: [1", "expected ',' or ']'"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: !!binary aGk=", "could not determine a constructor"),
        ("provenance: 1", "is repeated here"),
    ],
    ids=[
        *("empty", "number", "text", "bomb", "merges", "loop", "deep", "broken", "object"),
        *("bytes", "repeated key"),
    ],
)
def test_a_file_that_would_do_harm_is_refused(text: str, why: str) -> None:
    with pytest.raises(StoreFailed, match=why):
        decode((HEAD + text).encode())
