"""The window of concurrency: multiplicative decrease, additive increase."""

from hypothesis import given
from hypothesis import strategies as st

from aeon.llm.stack.concurrency import Window


def test_it_begins_as_wide_as_it_may_be() -> None:
    assert Window.open(64).slots == 64


def test_a_refusal_halves_what_was_under_way_not_what_was_allowed() -> None:
    assert Window.open(64).throttled(number=3, under_way=20, newest=20).slots == 10


def test_requests_that_were_sent_together_are_one_signal() -> None:
    window = Window.open(64)
    for number in range(1, 21):
        window = window.throttled(number, 21 - number, newest=20)
    assert window.slots == 10
    assert window.throttled(number=21, under_way=10, newest=30).slots == 5


def test_it_knows_how_often_it_was_cut_since_the_last_answer() -> None:
    window = Window.open(4)
    for number in range(1, 5):
        window = window.throttled(number, 1, newest=2 * number)
    assert window.cuts == 2
    assert window.answered().cuts == 0


def test_a_window_of_answers_makes_room_for_about_one_more() -> None:
    window = Window(most=64, width=8.0)
    for _ in range(9):
        window = window.answered()
    assert window.slots == 9


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 100)), max_size=200), st.integers(1, 64))
def test_it_never_leaves_its_bounds(events: list[tuple[bool, int]], most: int) -> None:
    window = Window.open(most)
    for number, (answered, under_way) in enumerate(events, start=1):
        window = window.answered() if answered else window.throttled(number, under_way, number)
        assert 1 <= window.slots <= most
