"""The pieces of a streamed answer, whichever way its bytes are cut."""

import json

import pytest

from aeon.llm.openai.pieces import PieceReader


def chunk(text: str, **more: object) -> str:
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}, **more}]}, ensure_ascii=False)}"


STREAM = "\r\n\r\n".join(
    (
        ": a comment",
        "event: message",
        'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}]}',
        chunk("Tee: é中🍵 "),
        chunk("another choice", index=1),
        'data: {"choices": [], "usage": {"prompt_tokens": 1}}',
        'data: {"error": "half',
        "data: [1, 2]",
        'data: {"choices": [{"delta": {"content": 7}}]}',
        'data: {"choices": [{"delta": null}]}',
        chunk("data: [DONE]\n"),
        "data: [DONE]",
        "",
    )
).encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 10_000])
def test_pieces_are_told_as_they_come_however_the_bytes_are_cut(size: int) -> None:
    told: list[str] = []
    reader = PieceReader(told.append)
    for place in range(0, len(STREAM), size):
        reader(STREAM[place : place + size])
    assert "".join(told) == "Tee: é中🍵 data: [DONE]\n"
    assert len(told) == 2 or size > 7


def test_of_a_body_that_is_no_stream_nothing_is_told() -> None:
    told: list[str] = []
    reader = PieceReader(told.append)
    reader(json.dumps({"choices": [{"message": {"content": "whole"}}]}, indent=1).encode())
    reader(b"<html>\ndata: x\n</html>\n")
    assert told == []
