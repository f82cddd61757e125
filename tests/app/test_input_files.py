"""Inputs that are files: how a model is given them, and what is stored of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon, ConfigError
from aeon.app.job import read_given, require_accepted
from aeon.config.load import compose
from aeon.domain.request import LLMRequest, LLMResponse, select_files
from aeon.store.opening import open_source
from tests.support.input_files import make_docx, make_pdf, make_png, make_wav
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.responses_server import ResponsesServer

PNG = make_png()
PDF = make_pdf("The total is 42.")
SCRIPT = {"direct": {"working": None, "answer": "a red image"}}


def settings(server: OpenAIServer, *more: str) -> Any:
    return compose([*server.overrides, "mode=single", "progress=none", "env=dev", *more])


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(SCRIPT) as running:
        yield running


def parts_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = body["messages"][-1]["content"]
    assert isinstance(content, list)
    return content


def test_an_image_goes_to_the_model_as_a_content_part(server: OpenAIServer, here: Path) -> None:
    (here / "photo.png").write_bytes(PNG)
    run = Aeon(settings(server, "input_files.photo=photo.png"))
    assert run.run("What is on it?").answer == "a red image"
    label, image, text = parts_of(server.requests[0].body)
    address = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert image == {"type": "image_url", "image_url": {"url": address}}
    digest = hashlib.sha256(PNG).hexdigest()
    assert label["text"].startswith("Input photo ")
    assert digest[:16] in label["text"]
    assert digest[:16] in text["text"]
    assert "base64" not in text["text"]


def test_a_pdf_and_a_recording_go_as_parts_of_their_own(server: OpenAIServer) -> None:
    accepting = settings(server, "provider.accepts=[pdf,audio]")
    given = {"paper": PDF, "call": make_wav(), "words": "plain"}
    Aeon(accepting).run("Compare them.", inputs=given)
    parts = parts_of(server.requests[0].body)
    assert [part["type"] for part in parts] == ["text", "file", "text", "input_audio", "text"]
    file = parts[1]["file"]
    assert file["filename"] == "paper.pdf"
    assert base64.b64decode(file["file_data"].partition(",")[2]) == PDF
    assert parts[3]["input_audio"]["format"] == "wav"
    assert "plain" in parts[-1]["text"]


def test_the_responses_api_is_given_input_parts(here: Path) -> None:
    with ResponsesServer(SCRIPT) as server:
        (here / "photo.png").write_bytes(PNG)
        both = settings(server, "provider.api=responses", "input_files.photo=photo.png")
        Aeon(both).run("Compare them.", inputs={"photo": here / "photo.png", "paper": PDF})
        parts = server.inputs[0]["input"][-1]["content"]
    assert [part["type"] for part in parts] == [
        *("input_text", "input_image", "input_text", "input_file", "input_text")
    ]
    assert parts[1]["image_url"].startswith("data:image/png;base64,")
    assert parts[3]["file_data"].startswith("data:application/pdf;base64,")


def test_recordings_cannot_be_accepted_with_the_responses_api() -> None:
    with pytest.raises(ConfigError, match="Responses API takes no recordings"):
        compose(["provider=openai", "provider.api=responses", "provider.accepts=[audio]"])


def test_the_run_stores_a_file_once_and_no_prompt_holds_it(
    server: OpenAIServer, here: Path
) -> None:
    run = Aeon(settings(server)).run(
        "x", inputs={"a": PNG, "b": PNG, "c": PDF}, directory=here / "run"
    )
    assert run.error is None
    digests = {hashlib.sha256(data).hexdigest(): data for data in (PNG, PDF)}
    stored = {path.stem: path.read_bytes() for path in (here / "run" / "files").iterdir()}
    assert stored == digests
    assert run.hashes.inputs["a"] == hashlib.sha256(PNG).hexdigest()
    texts = [base64.b64encode(data).decode()[:200] for data in (PNG, PDF)]
    for path in (here / "run").iterdir():
        if path.is_file() and path.name != "report.html":
            content = path.read_bytes()
            assert not any(text.encode() in content for text in texts), path.name
    with closing(open_source(here / "run")) as source:
        (entry,) = source.entries()
    files = entry.request.body["messages"][-1]["files"]
    assert [file["name"] for file in files] == ["a", "b", "c"]
    assert "content" not in files[0]


def test_another_file_of_the_same_name_is_another_request(server: OpenAIServer, here: Path) -> None:
    of = settings(server, "store.mode=cache", f"store.path={here}/answers.sqlite")
    with Aeon(of) as aeon:
        for data in (PNG, PNG, make_png(5)):
            aeon.run("x", inputs={"photo": data})
    assert len(server.requests) == 2


def test_a_request_without_files_is_what_it_was(server: OpenAIServer, here: Path) -> None:
    Aeon(settings(server)).run("x", inputs={"a": "text"}, directory=here / "run")
    assert isinstance(server.requests[0].body["messages"][-1]["content"], str)
    with closing(open_source(here / "run")) as source:
        (entry,) = source.entries()
    assert all(message.keys() == {"role", "content"} for message in entry.request.body["messages"])


@pytest.mark.parametrize(
    ("override", "data", "message", "hint"),
    [
        ("provider=simulated", PNG, "provider=simulated calls no model", "provider.accepts"),
        ("provider=simulated", PDF, "reads no PDF", "input_as.x=text"),
        (
            "",
            make_wav(),
            "provider openai is not known to take audio",
            "'provider.accepts=[image,pdf,audio]'",
        ),
        ("provider.accepts=[]", PNG, "not known to take image files", "provider.accepts=[image]"),
        ("", make_docx(), "a Word document", "input_as.x=text"),
        ("", b"MZ\x90\0" + bytes(60), "a program for Windows", "Give a file of text"),
        ("", PNG[:-9], "cut off", "again"),
    ],
)
def test_what_cannot_be_given_is_refused_before_the_first_call(
    override: str, data: bytes, message: str, hint: str, server: OpenAIServer
) -> None:
    of_server = [] if override.startswith("provider=") else server.overrides
    chosen = compose([*of_server, *filter(None, [override]), "env=dev"])
    with pytest.raises(ConfigError, match=message) as refused, Aeon(chosen) as aeon:
        aeon.run("x", inputs={"x": data})
    assert hint in (refused.value.hint or "")
    assert not server.requests


def test_what_auto_falls_back_to_looks_at_nothing() -> None:
    auto = compose(["provider=auto", "env=dev"])
    with pytest.raises(ConfigError, match="provider=simulated calls no model"):
        Aeon(auto, {}).run("x", inputs={"x": PNG})


def test_a_server_that_refuses_an_image_is_asked_no_more_than_for_any_refusal() -> None:
    said = "Invalid content type. image_url is only supported by certain models."
    refusal = Failure(400, body={"error": {"message": said, "type": "invalid_request_error"}})
    with OpenAIServer({"direct": lambda _: refusal}) as server:
        result = Aeon(settings(server)).run("x", inputs={"photo": PNG})
        assert result.error is not None
        assert said in result.error.message
        assert len(server.requests) <= 3


def test_the_local_provider_says_what_it_cannot_take() -> None:
    local = compose(["provider=local", "provider.model_path=m.gguf"])
    files = select_files(read_given({"x": PDF}, local))
    with pytest.raises(
        ConfigError, match="provider=local reads text alone: it takes no PDF"
    ) as one:
        require_accepted(files, local)
    assert "input_as.x=text" in (one.value.hint or "")
    with pytest.raises(ConfigError, match=r"provider\.accepts"):
        compose(["provider=local", "provider.model_path=m.gguf", "provider.accepts=[image]"])


def test_every_endpoint_of_a_chain_must_take_the_file(server: OpenAIServer) -> None:
    chain = "provider.fallbacks=[{provider: groq, api_key_env: HOME}]"
    with pytest.raises(ConfigError, match="provider groq is not known to take image"):
        Aeon(settings(server, chain)).run("x", inputs={"x": PNG})
    assert not server.requests


STEPS = """
goal: compare
steps:
  - {id: look, description: Look, agent: llm, inputs: [photo]}
  - {id: read, description: Read, agent: llm, inputs: [notes, paper]}
  - {id: answer, description: Say, agent: llm, depends_on: [look, read]}
  - {id: nothing, description: Count, agent: llm, inputs: []}
"""
STEP = {
    "working": None,
    "step_output": "done",
    "clarity_state": "CLEAR",
    "clarity_reason": None,
    "handoff_to_next": None,
    "quotes": [],
}


def answer_step(request: Any) -> dict[str, Any]:
    return {name: STEP[name] for name in request.schema["properties"]}


def test_a_step_is_shown_the_inputs_that_it_says_it_needs(here: Path) -> None:
    (here / "plan.yaml").write_text(STEPS)
    with OpenAIServer({"step": answer_step}) as server:
        core = settings(server, "mode=core", "plan_file=plan.yaml")
        given = {"photo": PNG, "notes": "these are the notes", "paper": PDF}
        assert Aeon(core).run("x", inputs=given).error is None
        seen = {}
        for request in server.requests:
            content = request.body["messages"][-1]["content"]
            parts = [] if isinstance(content, str) else [part["type"] for part in content[:-1]]
            step = next(
                word for word in ("Look", "Read", "Say", "Count") if f">\n{word}\n" in request.user
            )
            seen[step] = (parts[1::2], "these are the notes" in request.user)
    assert seen == {
        "Look": (["image_url"], False),
        "Read": (["file"], True),
        "Say": (["image_url", "file"], True),
        "Count": ([], False),
    }


class Looking:
    """A model of one's own that notes the files it is given."""

    def __init__(self) -> None:
        self.files: list[tuple[str, bytes]] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Note the files."""
        self.files += [(one.name, one.content) for one in request.messages[-1].files]
        return LLMResponse('{"working": null, "answer": "seen"}')


def test_an_adapter_of_ones_own_gets_the_files_that_it_accepts() -> None:
    model = Looking()
    given = ["provider=custom", "provider.accepts=[image]", "mode=single", "progress=none"]
    with Aeon.from_config(given, adapter=model, environ={}) as aeon:
        assert aeon.run("x", inputs={"photo": PNG}).answer == "seen"
        with pytest.raises(ConfigError, match="not known to take PDF"):
            aeon.run("x", inputs={"paper": PDF})
    assert model.files == [("photo", PNG)]
    with (
        Aeon.from_config(["mode=single"], adapter=model, environ={}) as aeon,
        pytest.raises(ConfigError, match="not known to take image"),
    ):
        aeon.run("x", inputs={"photo": PNG})
