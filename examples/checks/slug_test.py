"""What `slug` has to do; runs beside the answer, which is `slug.py`."""

from slug import slug


def test_words_are_joined_by_hyphens():
    assert slug("Hello, World!") == "hello-world"


def test_nothing_is_left_at_the_ends():
    assert slug("  --A b--  ") == "a-b"


def test_a_title_without_words_is_empty():
    assert slug("!?") == ""
