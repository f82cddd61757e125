"""Where a prompt is marked for the provider's cache, decided without a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from aeon.config.compose.literal import Composition
from aeon.config.load import compose_settings
from aeon.domain.request import LLMRequest, Message
from aeon.llm.dialects.cache_marks import MOST_MARKS, MarkedPrefixes
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.prompts import PromptLibrary, load_packaged_prompts
from aeon.llm.settings import OpenAIProvider
from tests.support.requests import request

PART = "a part of a prompt. " * 60
LONG = PART * 4
SYSTEM = Message("system", "Be brief.")


def user(*parts: str, rest: str = "What now?") -> Message:
    """A user message with a mark behind each part."""
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    return Message("user", "".join(parts) + rest, tuple(ends))


def asked(*parts: str, system: str = "Be brief.", **given: Any) -> LLMRequest:
    messages = Message("system", system), user(*parts)
    return request("step", messages=messages, **given)


def send(
    asked: LLMRequest, prefixes: MarkedPrefixes, marks: str = "openai"
) -> tuple[Wire, dict[str, Any]]:
    """A request under way, and its body."""
    settings = OpenAIProvider(model="m", prompt_cache=marks)  # type: ignore[arg-type]
    wire = Wire(asked, settings)
    return wire, json.loads(wire.body(Dialect(), prefixes))


def body_of(
    asked: LLMRequest, prefixes: MarkedPrefixes | None = None, marks: str = "openai"
) -> dict[str, Any]:
    """The body of a request that is answered at once."""
    prefixes = prefixes or MarkedPrefixes()
    wire, body = send(asked, prefixes, marks)
    prefixes.settle(wire.chosen_marks, is_answered=True)
    return body


def marked_texts(body: dict[str, Any], mark: str = "prompt_cache_breakpoint") -> list[str]:
    """The content parts that have a mark."""
    found = []
    for message in body["messages"]:
        if isinstance(message["content"], list):
            found += [part["text"] for part in message["content"] if mark in part]
    return found


def text_of(body: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in body["messages"]]
    return [c if isinstance(c, str) else "".join(part["text"] for part in c) for c in contents]


def test_the_ends_of_parts_become_content_parts_with_a_mark_and_the_text_stays_as_it_is() -> None:
    whole = asked(LONG, PART)
    body = body_of(whole)
    assert text_of(body) == [message.content for message in whole.messages]
    assert marked_texts(body) == [LONG, PART]
    assert body["messages"][1]["content"][-1] == {"type": "text", "text": "What now?"}
    assert body["prompt_cache_options"] == {"mode": "explicit"}


def test_a_beginning_that_is_too_short_to_be_cached_is_not_marked() -> None:
    body = body_of(asked(PART, PART))
    assert marked_texts(body) == []
    assert [message["content"] for message in body["messages"]] == ["Be brief.", text_of(body)[1]]


@pytest.mark.parametrize("call", ["task_profile", "plan", "direct"])
def test_a_call_that_a_run_makes_once_writes_nothing_to_a_cache(call: str) -> None:
    once = request(call, messages=(SYSTEM, user(LONG)))
    body = body_of(once)
    assert marked_texts(body) == []
    assert body["prompt_cache_options"] == {"mode": "explicit"}


def test_further_samples_of_a_call_read_and_write_all_of_their_prompt() -> None:
    prefixes = MarkedPrefixes()
    for number in (1, 2):
        again = request("direct", messages=(SYSTEM, user(LONG)), sample=number)
        assert marked_texts(body_of(again, prefixes)) == [LONG, "What now?"]


def test_what_another_request_is_writing_is_not_written_twice() -> None:
    prefixes = MarkedPrefixes()
    body_of(asked(LONG), prefixes)
    first, body = send(asked(LONG, PART), prefixes)
    assert marked_texts(body) == [LONG, PART]
    for parts in ((LONG, PART), (LONG, PART, "and more")):
        _, beside = send(asked(*parts), prefixes)
        assert marked_texts(beside) == [LONG]
    prefixes.settle(first.chosen_marks, is_answered=True)
    assert marked_texts(body_of(asked(LONG, PART), prefixes)) == [LONG, PART]


def test_what_a_request_without_an_answer_was_to_write_is_written_by_the_next() -> None:
    prefixes = MarkedPrefixes()
    first, _ = send(asked(LONG), prefixes)
    prefixes.settle(first.chosen_marks, is_answered=False)
    assert marked_texts(body_of(asked(LONG), prefixes)) == [LONG]


def test_a_long_system_message_is_marked_at_its_end() -> None:
    assert marked_texts(body_of(asked(system=LONG))) == [LONG]


@pytest.mark.parametrize("rest", ["", "\n"])
def test_no_part_is_empty_or_white_space_alone(rest: str) -> None:
    message = Message("user", LONG + rest, (len(LONG),))
    body = body_of(request("step", messages=(Message("system", LONG), message)))
    assert text_of(body) == [LONG, LONG + rest]
    assert [len(message["content"]) for message in body["messages"]] == [1, 1]


def test_a_part_that_ends_before_it_begins_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "plan.user.j2").write_text("{% part_end %}{{ task }}", encoding="utf-8")
    _, message = PromptLibrary(tmp_path, "mine").render("plan", {"task": "x", "tools": []})
    assert (message.content, message.part_ends) == ("x", ())


def test_the_marks_of_anthropic_have_another_name_and_nothing_beside() -> None:
    body = body_of(asked(LONG), marks="anthropic")
    assert marked_texts(body, "cache_control") == [LONG]
    assert body["messages"][1]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert not {"prompt_cache_key", "prompt_cache_options"} & body.keys()


def test_without_marks_a_body_is_what_it_was() -> None:
    marked = asked(LONG, PART)
    plain = request(
        "step",
        messages=tuple(Message(message.role, message.content) for message in marked.messages),
    )
    unmarked = Wire(marked, OpenAIProvider(model="m")).body(Dialect())
    assert unmarked == Wire(plain, OpenAIProvider(model="m")).body(Dialect())
    assert b"cache" not in unmarked
    assert marked == plain


def test_of_many_ends_the_last_four_are_marked_and_the_longest_that_was_marked_before() -> None:
    prefixes = MarkedPrefixes()
    assert len(marked_texts(body_of(asked(LONG), prefixes))) == 1
    later = [f"{number} {PART}" for number in range(9)]
    body = body_of(asked(LONG, *later), prefixes)
    texts = marked_texts(body)
    assert len(texts) == MOST_MARKS
    assert texts[0] == LONG
    assert texts[2:] == later[-2:]
    changed = body_of(asked(LONG, *later[:7], "another", *later[7:]), prefixes)
    assert marked_texts(changed)[0].endswith(later[6])


def test_what_was_marked_before_another_schema_is_not_the_same_beginning() -> None:
    prefixes = MarkedPrefixes()
    later = [f"{number} {PART}" for number in range(9)]
    body_of(asked(LONG), prefixes)
    other = asked(LONG, *later, schema={"type": "object"})
    assert LONG not in marked_texts(body_of(other, prefixes))


def test_a_template_says_where_parts_end_and_its_text_has_no_trace_of_it() -> None:
    task = "Compare three ways to heat an old house."
    variables = {"task": task, "inputs": {}, "memory": {}, "memory_left_out": 0}
    library = load_packaged_prompts()
    _, message = library.render("direct", {**variables, "context": None, "answer_schema": None})
    [end] = message.part_ends
    assert message.content[:end].endswith("\n")
    assert task in message.content[:end]
    assert message.content[end:] == "Do this task.\n"
    assert "part" not in library.text("_task.j2", variables)


@pytest.mark.parametrize(
    ("given", "marks"),
    [
        ({"model": "gpt-5.6-sol"}, "openai"),
        ({"model": "gpt-5.12"}, "openai"),
        ({"model": "gpt-5.6-pro"}, "openai"),
        ({"model": "gpt-5.5"}, None),
        ({"model": "gpt-5-mini"}, None),
        ({"model": "gpt-5.6", "base_url": "http://localhost:8000/v1"}, None),
        ({"model": "gpt-5.6", "base_url": "https://api.openai.com.example.org/v1"}, None),
        ({"model": "gpt-5.6", "base_url": "https://eu.api.openai.com/v1/"}, "openai"),
        ({"model": "gpt-5.6", "prompt_cache": "off"}, None),
        (
            {"model": "x", "prompt_cache": "openai", "base_url": "http://localhost:8000/v1"},
            "openai",
        ),
        (
            {"preset": "azure", "model": "gpt-5.6", "base_url": "https://r.openai.azure.com"},
            "openai",
        ),
        ({"preset": "anthropic"}, None),
        ({"preset": "openrouter", "model": "anthropic/claude-sonnet-4-6"}, "anthropic"),
        ({"preset": "openrouter", "model": "openai/gpt-5.6-sol"}, "anthropic"),
        ({"preset": "openrouter", "model": "qwen/qwen3"}, None),
        ({"preset": "litellm", "model": "claude-sonnet"}, "anthropic"),
        ({"preset": "vllm", "model": "gpt-5.6"}, None),
        ({"preset": "groq", "model": "openai/gpt-oss-120b"}, None),
    ],
)
def test_marks_go_to_hosts_that_take_them_as_the_presets_say(
    given: dict[str, str], marks: str | None
) -> None:
    settings = compose_provider(**given)
    wire = Wire(asked(LONG), settings)
    assert wire.marks(Dialect()) == marks


def compose_provider(*, preset: str = "openai", **given: str) -> OpenAIProvider:
    overrides = [f"provider={preset}", *(f"provider.{name}={given[name]}" for name in given)]
    provider = compose_settings(Composition(overrides=overrides)).provider
    assert isinstance(provider, OpenAIProvider)
    return provider
