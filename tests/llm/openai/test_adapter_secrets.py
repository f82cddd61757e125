"""No key, header or password is ever shown."""

import pytest

from aeon.domain.errors import AeonError, ConfigError, EmptyAnswer, ProviderError
from aeon.llm.openai.endpoint import DEFAULT_BASE_URL, Endpoint
from aeon.llm.settings import OpenAIProvider
from tests.llm.openai.conftest import KEY, Connect
from tests.support.openai_server import Completion, Failure, OpenAIServer
from tests.support.requests import request


def everything_said(failure: BaseException) -> str:
    """All text that printing an error with its causes could show."""
    said, chain = "", failure
    while chain is not None:
        said += f"{chain!r} {chain} {getattr(chain, 'hint', '')} {vars(chain) if isinstance(chain, AeonError) else ''}"
        chain = chain.__cause__ or chain.__context__
    return said


@pytest.mark.parametrize(
    "echo", [f"Incorrect API key: {KEY}", "header was team-secret", "token 0123456789abcdef"]
)
@pytest.mark.parametrize("status", [400, 401, 429, 500, 200])
def test_no_secret_is_shown_even_if_the_server_echoes_it(
    status: int,
    echo: str,
    openai_server: OpenAIServer,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    openai_server.script["plan"] = Failure(status, body={"error": {"message": echo, "code": echo}})
    adapter = connect(headers={"X-Team": "team-secret", "Proxy-Token": "Bearer 0123456789abcdef"})
    with pytest.raises(ProviderError) as raised:
        adapter.complete(request())
    shown = everything_said(raised.value) + repr(adapter) + caplog.text
    assert KEY not in shown
    assert "team-secret" not in shown
    assert "0123456789abcdef" not in shown
    assert "[secret]" in raised.value.message


def test_a_password_in_the_base_url_is_refused_without_being_shown(connect: Connect) -> None:
    with pytest.raises(ConfigError, match="user or a password") as raised:
        connect(base_url="http://me:hunter2@localhost:8000/v1")
    assert "hunter2" not in everything_said(raised.value)


@pytest.mark.parametrize("key", ["sk-with\nnewline", "sk-with-é"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(
    key: str, connect: Connect
) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as raised:
        connect(key)
    assert key not in everything_said(raised.value)


@pytest.mark.parametrize("headers", [{"X Team": "a"}, {"X-Team": "a\nb"}, {"": "a"}])
def test_a_header_that_cannot_be_sent_is_refused(headers: dict[str, str], connect: Connect) -> None:
    with pytest.raises(ConfigError, match="extra_headers_env"):
        connect(headers=headers)


def test_a_key_that_a_server_gives_for_a_model_or_an_id_is_not_kept(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion(
        {"answer": "x"}, model=f"m-{KEY}", id=f"id {KEY}", finish_reason=KEY
    )
    response = connect().complete(request())
    assert (response.model, response.response_id) == ("m-[secret]", "id [secret]")
    assert KEY not in repr(response)
    openai_server.script["plan"] = Completion(None, model=f"m-{KEY}", finish_reason=KEY)
    with pytest.raises(EmptyAnswer) as raised:
        connect().complete(request())
    assert KEY not in everything_said(raised.value)


def test_a_short_word_that_stands_for_a_key_is_left_in_a_models_name(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion({"answer": "x"}, model="ollama/llama3")
    assert connect("ollama").complete(request()).model == "ollama/llama3"


AMBIENT = {
    "OPENAI_CUSTOM_HEADERS": "X-Leak: other-secret\nAuthorization: Bearer other-secret\nOpenAI-Project: other-secret",
    "OPENAI_ORG_ID": "other-secret",
    "OPENAI_PROJECT_ID": "other-secret",
    "OPENAI_ADMIN_KEY": "other-secret",
    "OPENAI_API_KEY": "other-secret",
}


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_no_header_of_the_environment_goes_to_another_server_than_openais(
    key: str | None,
    name: str,
    openai_server: OpenAIServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in AMBIENT.items():
        monkeypatch.setenv(variable, value)
    openai_server.script["plan"] = {"answer": "x"}
    connect(key, {"X-Team": "mine"}, name=name).complete(request())
    headers = openai_server.requests[0].headers
    assert "other-secret" not in str(headers)
    assert headers["x-team"] == "mine"
    assert headers.get("authorization") == (f"Bearer {KEY}" if key else None)


@pytest.mark.parametrize(("name", "sent"), [("openai", "my-team"), ("ollama", None)])
def test_openai_itself_is_told_the_organisation_and_the_project_and_nothing_else(
    name: str, sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (
        AMBIENT | {"OPENAI_ORG_ID": "my-team", "OPENAI_PROJECT_ID": "my-team"}
    ).items():
        monkeypatch.setenv(variable, value)
    headers = Endpoint(OpenAIProvider(base_url=DEFAULT_BASE_URL, name=name), KEY).headers
    assert "other-secret" not in str(headers)
    assert [headers.get(sent_as) for sent_as in ("OpenAI-Organization", "OpenAI-Project")] == [
        sent,
        sent,
    ]
