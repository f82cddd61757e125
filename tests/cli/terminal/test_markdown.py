"""An answer on a terminal: rendered, and nothing of it lost."""

from __future__ import annotations

import re

import pytest

from aeon.cli.terminal.markdown import render_markdown
from aeon.domain.result import SIMULATED_LINE

CODES = re.compile(r"\x1b\[[0-9;]*m")


def shown(text: str, width: int = 80) -> str:
    return CODES.sub("", render_markdown(text, width))


def test_headings_lists_tables_and_emphasis_are_rendered() -> None:
    text = shown("# Title\n\n- one\n- **two**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "Title" in text
    assert "#" not in text
    assert " • two" in text
    assert "|" not in text
    assert re.search(r"1 +2", text)
    assert "\x1b[" in render_markdown("**two**", 80)


@pytest.mark.parametrize(
    "text",
    [
        "a <b>tag</b> and <made-up> ones",
        "<div>a block</div>",
        "![a picture](http://host/picture.png)",
        "[a link](http://host/page)",
        "if 15 < 16 & 17 > 13",
        "see [this][ref]\n\n[ref]: http://host/source",
        "- [ ] open",
    ],
)
def test_every_word_and_address_of_the_text_is_there(text: str) -> None:
    words = re.findall(r"[a-z0-9./:]{2,}", text)
    said = shown(text)
    assert words
    assert not [word for word in words if word not in said]


def test_no_link_hides_its_address_behind_a_code() -> None:
    assert "\x1b]8" not in render_markdown("[bank](http://elsewhere)", 80)


def test_lines_end_where_they_end() -> None:
    assert shown("Total: 15\nReason: addition\n").split("\n")[:2] == [
        "Total: 15",
        "Reason: addition",
    ]


def test_code_keeps_its_lines_whatever_the_width() -> None:
    code = "x = " + " + ".join(["number"] * 20)
    text = shown(f"Do:\n\n```python\n{code}\n\n    y = 2\n```\n\nDone.", 40)
    assert f"\n{code}\n\n    y = 2\n" in text
    assert text.index("Do:") < text.index(code) < text.index("Done.")


def test_the_mark_of_a_simulated_answer_stays_its_first_line() -> None:
    assert shown(f"{SIMULATED_LINE}\nOne.\nTwo.").split("\n")[0] == SIMULATED_LINE


def test_prose_is_no_wider_than_is_good_to_read() -> None:
    assert max(map(len, shown("word " * 100, 400).splitlines())) <= 100
    assert max(map(len, shown("word " * 100, 40).splitlines())) <= 40


@pytest.mark.parametrize("width", [20, 40, 100])
@pytest.mark.parametrize("levels", [5, 9, 12, 30])
def test_what_is_nested_too_deeply_to_be_rendered_is_shown_as_it_is_written(
    levels: int, width: int
) -> None:
    lists = "".join(f"{'  ' * level}- item{level}\n" for level in range(levels))
    for text, words in ((lists, levels), ("> " * levels + "item0", 1)):
        shown = re.sub(r"\x1b\[[0-9;]*m|\s|▌", "", render_markdown(text, width))
        assert all(f"item{number}" in shown for number in range(words))
