"""What a program can tell of the answers to the small tasks of `aeon verify`."""

from __future__ import annotations

import pytest

from aeon.app.trials.verify import TASKS

SUM, RIVERS, LIST, JSON, TABLE = TASKS
CAPITALS = '{"Japan": "Tokyo", "France": "Paris"}'
HEAD = "| item | amount |\n|:--|--:|\n"
ROWS = "| bread | 2 |\n| milk | 1 |\n| apples | 6 |\n"


@pytest.mark.parametrize(
    ("task", "answer", "is_right"),
    [
        (SUM, "15", True),
        (SUM, "5 + 10 = **15**.", True),
        (SUM, "The sum is 15.0", True),
        (SUM, "115", False),
        (SUM, "1.15", False),
        (SUM, "15.5", False),
        (SUM, "150", False),
        (SUM, "fifteen", False),
        (SUM, "", False),
        (LIST, "- boots\n- map", True),
        (LIST, "Take:\n\n1. boots\n2) map\n* bread", True),
        (LIST, "\n".join(["- thing"] * 10), True),
        (LIST, "\n".join(["- thing"] * 11), False),
        (LIST, "boots and a map", False),
        (JSON, CAPITALS, True),
        (JSON, f"```json\n{CAPITALS}\n```", True),
        (JSON, '{"France": "Paris"}', False),
        (JSON, '{"France": "Lyon", "Japan": "Tokyo"}', False),
        (JSON, "Paris and Tokyo", False),
        (TABLE, HEAD + ROWS, True),
        (TABLE, f"Here it is:\n\n{HEAD.title()}{ROWS.title()}\nDone.", True),
        (TABLE, HEAD + ROWS.replace("6", "7"), False),
        (TABLE, HEAD + "| bread | 2 |\n| milk | 1 |\n", False),
        (TABLE, HEAD + ROWS + "| salt | 1 |\n", False),
        (TABLE, HEAD + ROWS + ROWS, False),
        (TABLE, HEAD + "| bread | 2 | x |\n| milk | 1 |\n| apples | 6 |\n", False),
        (TABLE, "bread 2, milk 1, apples 6", False),
    ],
)
def test_an_answer_is_right_or_wrong(task, answer, is_right):
    assert task.is_right(answer) is is_right


def test_what_takes_judgement_is_not_checked():
    assert [task for task in TASKS if task.is_right is None] == [RIVERS]
