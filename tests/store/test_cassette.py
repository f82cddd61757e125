from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aeon.domain.errors import StoreFailed
from aeon.store.cassette import Cassette, CassetteSource, Provenance, decode, encode, read, write
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry
from tests.store.cassettes import SYSTEM, entry
from tests.store.test_cassette_yaml import texts


def cassette(*answers: Entry, **origin: Any) -> Cassette:
    told = Provenance(
        answered_by="m-1 (provider openai)",
        first="2026-11-21T10:00:01Z",
        last="2026-11-21T10:00:09Z",
    )
    return Cassette(provenance=told, origin=origin, answers=answers)


@pytest.mark.slow
@given(texts, texts, texts)
def test_any_request_and_answer_comes_back_byte_for_byte(system: str, user: str, text: str) -> None:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    given = cassette(
        entry(text, request={"messages": messages}),
        entry(
            json.dumps({"step_output": text, "n": 1.5}), number=2, request={"messages": messages}
        ),
        entry(text, number=3, kind="tool", request={"tool": "echo", "arguments": {user: text}}),
        task=user,
    )
    assert decode(encode(given).encode().decode()) == given


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "one\\ntwo"}',
        '{"a":"one\\ntwo","b":[1,2.50]}',
        '{"a":"one\\ntwo","b":[1,2.5]}',
        '{\n  "a": "é"\n}',
        '{"a": "\\u00e9"}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e3}',
        '{"a": 1}\n',
        "{}",
        "[1]",
        "null",
        "",
        "```json\n{}\n```",
        '{"a": "\\ud83d"}',
        '{"a": ' + "[" * 500 + "]" * 500 + "}",
    ],
)
def test_an_answer_keeps_its_exact_bytes_whatever_json_it_is(text: str) -> None:
    (read_back,) = decode(encode(cassette(entry(text)))).answers
    assert read_back.answer["text"] == text


def test_an_answer_in_json_is_shown_as_what_it_stands_for() -> None:
    text = encode(
        cassette(entry('{"step_output": "# Title\\n\\nSome words.", "clarity_state": "CLEAR"}'))
    )
    assert (
        "    step_output: |-\n      # Title\n\n      Some words.\n    clarity_state: CLEAR\n"
        in text
    )


def test_an_answer_that_holds_no_text_comes_back() -> None:
    kept = entry().model_copy(
        update={"answer": {"error": "Truncated", "message": "cut off", "text": None}}
    )
    assert decode(encode(cassette(kept))).answers == (kept,)


def test_a_prompt_and_a_schema_that_are_sent_again_stand_once() -> None:
    text = encode(cassette(*(entry(f"answer {n}", number=n, user=f"do {n}") for n in range(1, 6))))
    assert text.count(SYSTEM.splitlines()[-1]) == 5
    assert text.count("p8:") == 1
    assert text.count("content: *id") == 4
    assert text.count("schema: *id") == 4


def test_whoever_reads_yaml_reads_a_cassette() -> None:
    values = yaml.safe_load(encode(cassette(entry(), task="name three rivers")))
    assert values["format"] == "aeon.cassette/1"
    assert values["origin"] == {"task": "name three rivers"}
    assert values["answers"][0]["request"]["messages"][0]["content"] == SYSTEM
    assert values["answers"][0]["text"] == "an answer"


def test_answers_are_found_by_key_and_by_content_and_in_order() -> None:
    first, second = entry("first", number=1), entry("second", number=2)
    source = CassetteSource(cassette(first, second))
    assert isinstance(source, AnswerSource)
    assert source.get(second.request.key) == second
    assert source.by_content(second.request.content) == first
    assert source.get("0" * 64) is None
    assert source.by_content("0" * 64) is None
    assert list(source.entries()) == [first, second]
    source.close()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.aeon"
    for text in ("old", "new"):
        write(cassette(entry(text)), path)
        assert next(CassetteSource(read(path)).entries()).answer["text"] == text
    assert [found.name for found in tmp_path.iterdir()] == ["run.aeon"]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be written: No such file"):
        write(cassette(entry()), tmp_path / "none" / "run.aeon")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "does not say `format: aeon.cassette/1`"),
        (b"- a\n", "does not say `format: aeon.cassette/1`"),
        (b"\xff\xfe", "'utf-8' codec"),
        (b"format: aeon.cassette/2\n", "which this version of Aeon reads, but aeon.cassette/2"),
        (b"format: aeon.cassette/1\n", "its answers are no list"),
        (b"format: aeon.cassette/1\nanswers: 3\n", "its answers are no list"),
        (
            b"format: aeon.cassette/1\nanswers: [{path: {call: step}}]\n",
            "answer 1 is no mapping of path, time",
        ),
        (
            b"format: aeon.cassette/1\nanswers: [x]\n",
            "answer 1 is no mapping of path, time, request and answer",
        ),
        (
            b"format: aeon.cassette/1\nprovenance: {answered_by: me}\nanswers: []\n",
            "provenance.first: Field required",
        ),
        (b"format: [\n", "this is not YAML"),
    ],
)
def test_what_is_no_cassette_is_said_with_the_reason(
    content: bytes, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "some.aeon"
    path.write_bytes(content)
    with pytest.raises(StoreFailed, match=why):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "usage: {input_tokens: 10, output_tokens: 2}",
            "usage: true",
            "answer 1: usage: Input should be",
        ),
        (
            "output_tokens: 2",
            "output_tokens: null",
            "answer 1: usage.output_tokens: Input should be a valid int",
        ),
        (
            "output_tokens: 2",
            "output_tokens: [2]",
            "answer 1: usage.output_tokens: Input should be a valid int",
        ),
        ("output_tokens: 2", "output_tokens: 2026-11-22", "answer 1: usage.output_tokens"),
        ("output_tokens: 2", "output_tokens: {1: 2}", "a key in it is no text: 1"),
        ("text: an answer", "text: 3", "answer 1: text"),
        ("model: m-1\n    usage", "model: [m]\n    usage", "answer 1: model"),
        ("role: system", "rule: system", "answer 1: messages.0.role: Field required"),
        ("content: do it", "content: [do it]", "answer 1: messages.1.content"),
        (
            "messages:",
            "messages: {a: b}\n    other:",
            "answer 1: messages: Input should be a valid list",
        ),
        ("model: m-1\n", "model: !!binary bQ==\n", "this is not YAML"),
    ],
)
def test_a_wrong_value_is_said_with_its_place(old: str, new: str, why: str) -> None:
    text = encode(cassette(entry()))
    assert old in text
    with pytest.raises(StoreFailed) as caught:
        decode(text.replace(old, new, 1))
    assert why in str(caught.value)


def test_a_persons_answer_comes_back() -> None:
    kept = entry(kind="person").model_copy(update={"answer": {"answer": None}})
    assert decode(encode(cassette(kept))).answers == (kept,)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be read: No such file"):
        read(tmp_path / "none.aeon")


@given(st.binary(max_size=60))
def test_garbage_is_refused_and_nothing_else_happens(content: bytes) -> None:
    with pytest.raises(StoreFailed):
        decode(b"format: aeon.cassette/1\n".decode() + content.decode("latin-1"))


def test_the_example_of_the_page_is_a_cassette() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cassettes.md").read_text(encoding="utf-8")
    example = decode(page.partition("```yaml\n")[2].partition("```")[0])
    assert (
        example.answers[0].request.body["messages"][0]["content"]
        == "You carry out one step of a plan.\n"
    )
    assert json.loads(example.answers[0].answer["text"])["step_output"] == "Rhine, Danube, Elbe"
    assert example.provenance.secrets_replaced == {"SHOP_TOKEN": 2}
    assert set(Provenance.model_fields) - {"note", "synthetic"} == set(
        yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])["provenance"]
    )
