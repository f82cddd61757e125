"""What the model in this process is told."""

import json
from pathlib import Path

import pytest

from aeon.domain.errors import ProviderError
from aeon.domain.request import LLMRequest, Message
from aeon.llm.local.adapter import LocalAdapter
from aeon.llm.local.model import Loading, LocalModel, merged, plain
from aeon.llm.settings import LocalProvider
from tests.llm.local.conftest import WriteModel
from tests.support.requests import SCHEMA, request
from tests.support.tiny_templates import IM_TEMPLATE, NO_SYSTEM_TEMPLATE, WITH_BEGINNING_TEMPLATE

SYSTEM, USER = Message("system", "Be brief."), Message("user", "Why? é")


def told(path: Path, *messages: Message) -> str:
    """The prompt as text, after the token that every text begins with."""
    model = LocalModel(Loading(path, 512, 0, 1))
    tokens = model.prompt(messages)
    model.close()
    assert tokens[0] == 1
    assert tokens.count(1) == 1
    return bytes(token - 3 for token in tokens[1:]).decode().replace("\u2581", " ").strip()


def test_messages_are_written_as_the_models_template_says(tiny_model: Path) -> None:
    assert told(tiny_model, SYSTEM, USER) == "<|system|>Be brief.\n<|user|>Why? é\n<|assistant|>"


def test_a_template_without_system_messages_gets_them_with_the_users(write_model: WriteModel) -> None:
    text = told(write_model(chat_template=NO_SYSTEM_TEMPLATE), SYSTEM, USER)
    assert text == "[user]Be brief.\n\nWhy? é"


def test_the_first_token_is_not_doubled_by_a_template_that_writes_it(write_model: WriteModel) -> None:
    assert told(write_model(chat_template=WITH_BEGINNING_TEMPLATE), USER) == "[user]Why? é"


def test_the_tokens_that_mark_a_turn_are_tokens(write_model: WriteModel) -> None:
    model = LocalModel(Loading(write_model(tokenizer="gpt2", chat_template=IM_TEMPLATE), 512, 0, 1))
    tokens = model.prompt([USER])
    model.close()
    assert [token for token in tokens if token < 3] == [1, 2, 1]
    assert bytes(token - 3 for token in tokens if token > 2).decode() == "user\nWhy? é\nassistant\n"


@pytest.mark.parametrize("template", [None, "{{ raise_exception('never') }}"])
def test_without_a_template_that_works_messages_are_written_plainly(
    write_model: WriteModel, template: str | None
) -> None:
    text = told(write_model(chat_template=template), SYSTEM, USER)
    assert text == plain([SYSTEM, USER]).strip()
    assert text == "Instructions:\nBe brief.\n\nRequest:\nWhy? é\n\nAnswer:"


def test_merging_keeps_every_word() -> None:
    assert merged([SYSTEM, USER]) == [Message("user", "Be brief.\n\nWhy? é")]
    assert merged([SYSTEM]) == [Message("user", "Be brief.")]
    assert merged([USER]) == [USER]


def messages(tiny_model: Path, asked: LLMRequest, *, schema_in_prompt: bool = True) -> tuple[Message, ...]:
    settings = LocalProvider(model_path=tiny_model, schema_in_prompt=schema_in_prompt)
    return LocalAdapter(settings)._messages(asked)


def test_the_schema_is_told_after_what_the_system_says(tiny_model: Path) -> None:
    system, user = messages(tiny_model, request(messages=(SYSTEM, USER)))
    assert system.content.startswith("Be brief.\n\n")
    told = system.content.partition("<json_schema>\n")[2].partition("\n</json_schema>")[0]
    assert json.loads(told) == SCHEMA
    assert user == USER
    alone = messages(tiny_model, request(messages=(USER,)))
    assert [message.role for message in alone] == ["system", "user"]


def test_the_schema_is_not_told_where_it_is_told_already_or_not_wanted(tiny_model: Path) -> None:
    assert messages(tiny_model, request("repair", messages=(SYSTEM, USER))) == (SYSTEM, USER)
    assert messages(tiny_model, request(messages=(SYSTEM, USER)), schema_in_prompt=False) == (SYSTEM, USER)


def test_a_template_that_is_none_is_said_with_the_file(write_model: WriteModel) -> None:
    with pytest.raises(ProviderError, match=r"gguf: the model could not be loaded: .*unknown tag 'broken'"):
        told(write_model(chat_template="{% broken"), USER)
