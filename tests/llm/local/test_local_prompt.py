"""What the model in this process is told."""

import json
from pathlib import Path

import pytest

from aeon.domain.errors import ProviderError
from aeon.domain.request import LLMRequest, Message
from aeon.llm.local.adapter import LocalAdapter
from aeon.llm.local.model import Loading, LocalModel, merge_messages
from aeon.llm.settings import LocalProvider
from tests.llm.local.conftest import WriteModel
from tests.support.fences import texts_in
from tests.support.requests import SCHEMA, request
from tests.support.tiny_templates import IM_TEMPLATE, NO_SYSTEM_TEMPLATE

SYSTEM, USER = Message("system", "Be brief."), Message("user", "Why? é")


def test_merging_keeps_every_word() -> None:
    assert merge_messages([SYSTEM, USER]) == [Message("user", "Be brief.\n\nWhy? é")]
    assert merge_messages([SYSTEM]) == [Message("user", "Be brief.")]
    assert merge_messages([USER]) == [USER]


def messages(
    tiny_model: Path, asked: LLMRequest, *, schema_in_prompt: bool = True
) -> tuple[Message, ...]:
    settings = LocalProvider(model_path=tiny_model, schema_in_prompt=schema_in_prompt)
    return LocalAdapter(settings)._messages(asked)


def test_the_schema_is_told_after_what_the_system_says(tiny_model: Path) -> None:
    system, user = messages(tiny_model, request(messages=(SYSTEM, USER)))
    assert system.content.startswith("Be brief.\n\n")
    (told,) = texts_in(system.content, "json_schema")
    assert json.loads(told) == SCHEMA
    assert user == USER
    alone = messages(tiny_model, request(messages=(USER,)))
    assert [message.role for message in alone] == ["system", "user"]


def test_the_schema_is_not_told_where_it_is_told_already_or_not_wanted(tiny_model: Path) -> None:
    assert messages(tiny_model, request("repair", messages=(SYSTEM, USER))) == (SYSTEM, USER)
    assert messages(tiny_model, request(messages=(SYSTEM, USER)), schema_in_prompt=False) == (
        SYSTEM,
        USER,
    )


@pytest.mark.parametrize("template", [NO_SYSTEM_TEMPLATE, IM_TEMPLATE, None])
def test_a_model_answers_whatever_its_template_takes(
    write_model: WriteModel, template: str | None
) -> None:
    path = write_model(chat_template=template)
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    settings = LocalProvider(model_path=path, n_threads=1)
    answer = LocalAdapter(settings).complete(request(messages=(SYSTEM, USER), schema=schema))
    assert json.loads(answer.text)["a"] in (1, 2)


def test_a_template_that_is_none_is_said_with_the_file(write_model: WriteModel) -> None:
    with pytest.raises(
        ProviderError, match=r"gguf: the model could not be loaded: .*unknown tag 'broken'"
    ):
        LocalModel(Loading(write_model(chat_template="{% broken"), 512, 0, 1))
