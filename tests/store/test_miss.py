from collections.abc import Iterator

from aeon.domain.errors import StoreMiss
from aeon.store.lookup import describe_miss, show_difference
from aeon.store.models import Entry, StoreRequest
from tests.store.entries import asked, entry


class Recording:
    def __init__(self, *entries: Entry) -> None:
        self._entries = entries

    def get(self, key: str) -> Entry | None:
        return None

    by_content = get

    def entries(self) -> Iterator[Entry]:
        return iter(self._entries)

    def close(self) -> None:
        pass


def said(question: StoreRequest, *entries: Entry) -> StoreMiss:
    return describe_miss(question, Recording(*entries))


def test_a_miss_names_the_call_and_its_place() -> None:
    error = said(asked(call="step", step="draft", pass_number=2, attempt=1, occurrence=1))
    assert error.message == (
        "the store has no answer to the call 'step' (pass 2, EXECUTE, step draft, repair 1, equal request number 2); "
        "no such call was recorded"
    )
    assert error.hint


def test_a_miss_shows_how_the_request_differs_from_the_one_recorded_at_its_place() -> None:
    recorded = entry("<task>\nmake tea\n</task>\nNow.", parameters={"temperature": 0.2})
    error = said(
        asked("<task>\nmake coffee\n</task>\nNow.", parameters={"temperature": 0.7}),
        entry("x", step="o"),
        recorded,
    )
    first, *lines = error.message.split("\n")
    assert first.endswith("(pass 1, EXECUTE, step s1). It differs from what was recorded there:")
    assert lines[:2] == ["--- recorded", "+++ now"]
    changed = [line for line in lines[2:] if line[0] in "+-"]
    assert changed == ['- "temperature": 0.2', '+ "temperature": 0.7', "-make tea", "+make coffee"]
    assert " <task>" in lines
    assert "store.match=order" in error.hint


def test_without_one_at_its_place_the_nearest_of_the_same_call_is_shown_and_named() -> None:
    entries = [
        entry("of another step", step="s2"),
        entry("of the step in pass 1"),
        entry("of the step in pass 2", pass_number=2),
        entry("of another call", call="convergence", pass_number=3),
    ]
    error = said(asked("now", pass_number=3), *entries)
    assert "from what was recorded as the call 'step' (pass 2, EXECUTE, step s1):" in error.message
    assert "-of the step in pass 2" in error.message


def test_the_same_request_from_another_place_is_told_as_such() -> None:
    error = said(asked(pass_number=4), entry())
    assert "the same was recorded as the call 'step' (pass 1, EXECUTE, step s1)" in error.message
    assert "wherever they come from" in error.hint


def test_tools_and_people_are_named_as_such() -> None:
    assert "the call of tool 'clock' (pass 1" in said(asked(kind="tool", call="clock")).message
    assert (
        "the person's answer to 'question'"
        in said(asked(kind="person", call="question", step=None)).message
    )


def test_a_difference_is_of_bounded_length_and_harmless_to_a_terminal() -> None:
    before, after = (
        "\n".join(f"{word} {n} \x1b[2J{'x' * 500}" for n in range(200)) for word in ("old", "new")
    )
    shown = show_difference(asked(before), asked(after))
    lines = shown.split("\n")
    assert len(lines) == 61
    assert lines[-1].startswith("... and ")
    assert max(map(len, lines)) <= 200
    assert "\x1b" not in shown
    assert "\\u001b[2J" in shown
