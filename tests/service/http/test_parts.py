"""Files that clients send in messages, which become inputs of the run."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import openai
import pytest

from aeon.service.http.errors import ApiError
from aeon.service.http.parts import SentFiles
from aeon.service.http.requests import read_chat, read_response
from tests.service.http.conftest import Start
from tests.support.input_files import make_docx, make_pdf, make_png, make_wav
from tests.support.openai_server import OpenAIServer

PNG = make_png()
PDF = make_pdf("The total is 42.")
WAV = make_wav()
TAKES_ALL = "provider.accepts=[image,pdf,audio]"


@pytest.fixture
def script(openai_server: OpenAIServer) -> OpenAIServer:
    openai_server.script = {"direct": {"working": None, "answer": "42"}}
    return openai_server


def list_overrides(server: OpenAIServer, accepts: str = TAKES_ALL) -> list[str]:
    return [*server.overrides, "provider.require_key=false", "mode=single", accepts]


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def make_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{encode(content)}"


def list_sent(server: OpenAIServer) -> list[str]:
    """The kinds of parts in the last message that the model was given."""
    return [part["type"] for part in server.requests[0].body["messages"][-1]["content"]]


def test_a_chat_may_send_images_files_and_recordings(start: Start, script: OpenAIServer):
    served = start(*list_overrides(script))
    parts = [
        {"type": "text", "text": "What do they say?"},
        {"type": "image_url", "image_url": {"url": make_url(PNG), "detail": "low"}},
        {
            "type": "file",
            "file": {"filename": "bill.pdf", "file_data": make_url(PDF, "application/pdf")},
        },
        {"type": "input_audio", "input_audio": {"data": encode(WAV), "format": "wav"}},
        {"type": "file", "file": {"filename": "my notes.txt", "file_data": encode(b"tea: 3")}},
    ]
    completion = served.connect().chat.completions.create(
        model="aeon",
        messages=[{"role": "user", "content": parts}],  # type: ignore[typeddict-item]
    )
    assert completion.choices[0].message.content == "42"
    assert {"image_url", "file", "input_audio"} <= set(list_sent(script))
    assert "tea: 3" in script.requests[0].user
    (status,) = served.jobs.list_latest(9)
    assert status.record.files == ("image_1", "bill", "recording_1", "file_1")
    assert status.record.task == "What do they say? [image_1]  [bill]  [recording_1]  [file_1] "


def test_a_response_may_send_images_and_files(start: Start, script: OpenAIServer):
    served = start(*list_overrides(script))
    response = served.connect().responses.create(
        model="aeon",
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What do they say?"},
                    {"type": "input_image", "image_url": make_url(PNG), "detail": "auto"},
                    {"type": "input_file", "filename": "bill.pdf", "file_data": encode(PDF)},
                ],
            }
        ],
    )
    assert response.output_text == "42"
    assert {"image_url", "file"} <= set(list_sent(script))


def test_files_of_earlier_messages_are_named_where_they_stood(start: Start, script: OpenAIServer):
    served = start(*list_overrides(script))
    image = {"type": "image_url", "image_url": {"url": make_url(PNG)}}
    said: Any = [
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, image, image]},
        {"role": "assistant", "content": "A red one."},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}, image]},
    ]
    served.connect().chat.completions.create(model="aeon", messages=said)
    (status,) = served.jobs.list_latest(9)
    assert status.record.task == "And now? [image_3] "
    earlier = json.loads(status.record.inputs["conversation"])
    assert earlier[0]["content"] == "Look: [image_1]  [image_2] "
    assert list_sent(script).count("image_url") == 3


def test_names_that_differ_only_in_case_are_two_paths_on_every_system():
    files = SentFiles({"conversation"})
    sent = ["Report.txt", "report.txt", "REPORT.pdf", "Conversation.txt"]
    names = [files.add("file", b"x", filename, "messages[0]") for filename in sent]
    assert names == ["Report", "file_1", "file_2", "file_3"]


@pytest.mark.parametrize("name", ["nul", "CON", "aux", "Prn", "com1", "LPT9"])
def test_no_file_has_a_name_that_windows_reserves(name: str):
    files = SentFiles(set())
    assert files.add("file", b"x", f"{name}.txt", "messages[0]") == "file_1"


REFUSAL = {"type": "refusal", "refusal": "Not that."}
ASKED = {"role": "user", "content": "And now?"}


@pytest.mark.parametrize(
    ("earlier", "text"),
    [
        ({"role": "assistant", "content": None}, ""),
        ({"role": "assistant", "content": None, "refusal": "Not that."}, "Not that."),
        ({"role": "assistant", "content": "tea", "refusal": None}, "tea"),
        ({"role": "assistant", "content": [REFUSAL]}, "Not that."),
    ],
)
def test_what_an_assistant_said_before_is_read(earlier: dict[str, Any], text: str):
    chat = read_chat({"model": "aeon", "messages": [earlier, ASKED]})
    response = read_response({"model": "aeon", "input": [earlier, ASKED]})
    for asked in (chat, response):
        assert json.loads(asked.inputs["conversation"]) == [{"role": "assistant", "content": text}]


def test_the_reasoning_of_an_earlier_response_is_left_out():
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    asked = read_response({"model": "aeon", "input": [reasoning, ASKED, reasoning]})
    assert asked.task == "And now?"
    assert asked.inputs == {}
    with pytest.raises(ApiError, match="the last message must be the user's"):
        read_response({"model": "aeon", "input": [reasoning]})


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "refusal": 3},
        {"role": "assistant", "content": [{"type": "refusal", "text": "Not that."}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": None}]},
        {"role": "user", "content": [{"type": ["text"], "text": "tea"}]},
    ],
)
def test_a_message_without_a_text_is_refused(message: dict[str, Any]):
    with pytest.raises(ApiError, match="a part is a text"):
        read_chat({"model": "aeon", "messages": [message, ASKED]})


def test_a_plan_file_finds_its_input_by_the_name_of_the_file(
    start: Start, script: OpenAIServer, tmp_path: Path
):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "goal: g\ntask: Add it up\ninputs: {bill: a bill}\n"
        "steps:\n  - {id: r, description: 'Add up ${inputs.bill}'}\n"
    )
    overrides = [each for each in list_overrides(script) if not each.startswith("mode=")]
    step = {"step_output": "42", "clarity_state": "CLEAR"}
    script.script = {"step": {**step, "clarity_reason": None, "handoff_to_next": None}}
    served = start(*overrides, "mode=core", f"plan_file={plan}")
    file = {"filename": "bill.pdf", "file_data": encode(PDF)}
    parts: Any = [{"type": "text", "text": "Add it up"}, {"type": "file", "file": file}]
    said: Any = [{"role": "user", "content": parts}]
    served.connect().chat.completions.create(model="aeon", messages=said)
    assert "file" in list_sent(script)


IMAGE = {"type": "image_url"}


@pytest.mark.parametrize(
    ("part", "accepts", "message"),
    [
        (
            {**IMAGE, "image_url": {"url": "https://x.example/a.png"}},
            TAKES_ALL,
            "nothing is fetched",
        ),
        ({**IMAGE, "image_url": {"url": "file:///etc/passwd"}}, TAKES_ALL, "nothing is fetched"),
        ({**IMAGE, "image_url": {"url": "/etc/passwd"}}, TAKES_ALL, "no base64|UTF-8"),
        ({**IMAGE, "image_url": {"url": "data:image/png,%89PNG"}}, TAKES_ALL, "no base64"),
        ({**IMAGE, "image_url": {"url": "%%%"}}, TAKES_ALL, "no base64"),
        ({**IMAGE, "image_url": {"url": "é"}}, TAKES_ALL, "no base64"),
        ({**IMAGE, "image_url": {"url": make_url(PNG[:-9])}}, TAKES_ALL, "cut off"),
        ({**IMAGE, "image_url": {"url": make_url(PNG)}}, "provider.accepts=[]", "take image files"),
        ({**IMAGE, "image_url": {}}, TAKES_ALL, "the file is missing"),
        (IMAGE, TAKES_ALL, "the file is missing"),
        ({"type": "file", "file": {"file_id": "file-1"}}, TAKES_ALL, "nothing is fetched"),
        ({"type": "file", "file": []}, TAKES_ALL, "the file is missing"),
        ({"type": "file", "file": {"file_data": encode(b"MZ\0\0")}}, TAKES_ALL, "a program"),
        (
            {"type": "file", "file": {"file_data": encode(b"x" * 2000)}},
            "input_max_bytes=1000",
            "input_max_bytes=1000 is the most",
        ),
        (
            {"type": "file", "file": {"filename": "t.png", "file_data": encode(b"hello")}},
            TAKES_ALL,
            "named like a PNG image but is none",
        ),
        (
            {**IMAGE, "image_url": {"url": make_url(b"hello")}},
            TAKES_ALL,
            "named like a PNG image but is none",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": encode(b"hello"), "format": "wav"}},
            TAKES_ALL,
            "named like a WAV recording but is none",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": encode(b"ID3\xff\xfb")}},
            TAKES_ALL,
            "UTF-8",
        ),
        ({"type": "video", "video": {}}, TAKES_ALL, "a part is a text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    start: Start, script: OpenAIServer, part: dict[str, Any], accepts: str, message: str
):
    served = start(*list_overrides(script, accepts))
    parts: Any = [{"type": "text", "text": "Look"}, part]
    with pytest.raises(openai.BadRequestError, match=message) as refused:
        served.connect().chat.completions.create(
            model="aeon", messages=[{"role": "user", "content": parts}]
        )
    assert "input_as" not in refused.value.message
    assert served.jobs.list_latest(9) == []
    assert script.requests == []


def test_a_word_document_is_refused_with_a_way_for_the_client(start: Start, script: OpenAIServer):
    served = start(*list_overrides(script))
    file = {"filename": "letter.docx", "file_data": encode(make_docx("Dear all"))}
    parts: Any = [{"type": "text", "text": "Look"}, {"type": "file", "file": file}]
    with pytest.raises(openai.BadRequestError, match=r"or have input_as\.letter=text set"):
        served.connect().chat.completions.create(
            model="aeon", messages=[{"role": "user", "content": parts}]
        )


def test_a_line_ends_between_two_texts():
    texts = [{"type": "text", "text": text} for text in ("a", "b\n", "c")]
    file = {"type": "file", "file": {"filename": "n.txt", "file_data": encode(b"x")}}
    message = {"role": "user", "content": [*texts, file, texts[0]]}
    assert read_chat({"model": "aeon", "messages": [message]}).task == "a\nb\nc [n] a"


def test_only_so_many_files_are_taken(start: Start, script: OpenAIServer):
    served = start(*list_overrides(script))
    parts: Any = [{"type": "file", "file": {"file_data": encode(b"x")}}] * 101
    with pytest.raises(openai.BadRequestError, match="more than 100 files"):
        served.connect().chat.completions.create(
            model="aeon", messages=[{"role": "user", "content": parts}]
        )
