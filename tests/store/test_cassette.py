from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.domain.errors import StoreFailed
from aeon.store.cassette import Cassette, CassetteSource, Provenance, decode, encode, read, write
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry
from tests.store.cassettes import SYSTEM, entry

ODD = " \t\n\r\x00\x1b\x7f\x85\xa0\u2028\u2029\ufeff\ufffe\U0001f600aB-:#|>&*!%@`'\"\\{}[],?~=01.e"
texts = st.text(st.sampled_from(ODD)) | st.text(st.characters(exclude_categories=["Cs"]))


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
    assert decode(encode(given)) == given


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


def test_an_answer_that_holds_no_text_comes_back() -> None:
    kept = entry().model_copy(
        update={"answer": {"error": "Truncated", "message": "cut off", "text": None}}
    )
    assert decode(encode(cassette(kept))).answers == (kept,)


def test_half_a_surrogate_pair_comes_back_from_a_file_in_utf_8() -> None:
    given = cassette(entry("half \ud83d of a pair"))
    data = encode(given)
    assert data.decode("utf-8")
    assert decode(data) == given


def test_whoever_reads_json_lines_reads_a_cassette() -> None:
    header, line = map(json.loads, encode(cassette(entry(), task="name three rivers")).splitlines())
    assert header["format"] == "aeon.cassette/2"
    assert header["origin"] == {"task": "name three rivers"}
    assert line["request"]["messages"][0]["content"] == SYSTEM
    assert line["answer"]["text"] == "an answer"


def test_a_number_that_json_does_not_have_is_not_written() -> None:
    with pytest.raises(StoreFailed, match="what JSON does not have"):
        encode(cassette(entry(kind="tool", share=math.inf)))


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


HEADER = (
    b'{"format": "aeon.cassette/2", "provenance": {"answered_by": "me", "first": "f", "last": "l"}}'
)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "does not say the format aeon.cassette/2"),
        (b"- a\n", "does not say the format aeon.cassette/2"),
        (b"\xff\xfe", "does not say the format aeon.cassette/2"),
        (b"[" * 100_000, "does not say the format aeon.cassette/2"),
        (b'{"format": "aeon.cassette/9"}', "which this version of Aeon reads, but aeon.cassette/9"),
        (b'{"format": [', "line 1 is not JSON"),
        (b'{"a":' * 100_000, "line 1 is not JSON"),
        (b'{"format": "aeon.cassette/2"}', "provenance: Field required"),
        (
            b'{"format": "aeon.cassette/2", "provenance": {"answered_by": "me"}}',
            "provenance.first: Field required",
        ),
        (HEADER + b"\n[1\n", "line 2 is not JSON"),
        (HEADER + b"\n" + b'{"a":' * 100_000, "line 2 is not JSON"),
        (HEADER + b"\n" + b'{"a":' * 250 + b"1" + b"}" * 250, "line 2 is nested more than 200"),
        (HEADER + b"\n\xff\n", "line 2 is not JSON"),
        (HEADER + b'\n{"path": {"call": "step"}}\n', "answer 1: pass_number: Field required"),
        (HEADER + b"\n3\n", "answer 1 is no object of path, kind, time, answer and request"),
        (HEADER + b'\n{"x": 1}\n', "answer 1 is no object of path, kind, time"),
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
    ("part", "name", "value", "why"),
    [
        ("answer", "usage", True, "answer 1: usage: Input should be"),
        ("answer", "usage", {"output_tokens": None}, "usage.output_tokens: Input should be"),
        ("answer", "usage", {"output_tokens": [2]}, "usage.output_tokens: Input should be"),
        ("answer", "usage", {"output_tokens": "2"}, "usage.output_tokens: Input should be"),
        ("answer", "text", 3, "answer 1: text"),
        ("answer", "model", ["m"], "answer 1: model"),
        ("request", "messages", [{"rule": "user"}], "answer 1: messages.0.role: Field required"),
        ("request", "messages", [{"role": "user", "content": ["x"]}], "messages.0.content"),
        ("request", "messages", {"a": "b"}, "answer 1: messages: Input should be a valid list"),
    ],
)
def test_a_wrong_value_is_said_with_its_place(part: str, name: str, value: Any, why: str) -> None:
    header, line = encode(cassette(entry())).splitlines()
    changed = json.loads(line)
    changed[part][name] = value
    with pytest.raises(StoreFailed) as caught:
        decode(header + b"\n" + json.dumps(changed).encode())
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
        decode(b"format: aeon.cassette/1\n" + content)
    with pytest.raises(StoreFailed):
        decode(HEADER + b"\n{" + content)


def test_the_example_of_the_page_is_a_cassette() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cassettes.md").read_text(encoding="utf-8")
    text = page.partition("```json\n")[2].partition("```")[0]
    example = decode(text.encode())
    assert (
        example.answers[0].request.body["messages"][0]["content"]
        == "You carry out one step of a plan.\n"
    )
    assert json.loads(example.answers[0].answer["text"])["step_output"] == "Rhine, Danube, Elbe"
    assert example.provenance.secrets_replaced == {"SHOP_TOKEN": 2}
    shown = json.loads(text.partition("\n")[0])["provenance"]
    assert set(Provenance.model_fields) - {"note", "synthetic"} == set(shown)
