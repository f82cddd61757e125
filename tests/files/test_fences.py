from __future__ import annotations

from aeon.files.fences import change_fenced, without_codes
from aeon.llm.prompts import fence


def test_a_changed_text_has_the_fence_that_it_would_be_given() -> None:
    prompt = (
        f"Do it.\n{fence('a key', 'task')}\nWith:\n{fence('a key too', 'input', name='x')}\nNow."
    )
    changed = (
        f"Do it.\n{fence('a lock', 'task')}\nWith:\n{fence('a lock too', 'input', name='x')}\nNow."
    )
    assert change_fenced(prompt, lambda text: text.replace("key", "lock")) == changed


def test_what_only_looks_like_a_fence_is_changed_as_text() -> None:
    text = "<task-abcdefgh2345>\na key\n</task-abcdefgh2345> <b-abcdefgh2345>\nkey"
    assert change_fenced(text, lambda part: part.replace("key", "lock")) == text.replace(
        "key", "lock"
    )


def test_without_codes_a_fence_has_plain_tags() -> None:
    assert without_codes(fence("x", "input", name="a")) == '<input name="a">\nx\n</input>'
    assert without_codes("<a-b> <x-1>") == "<a-b> <x-1>"
