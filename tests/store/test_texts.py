from __future__ import annotations

import math
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.store.models import canonical, digest
from aeon.store.sqlite_store import SCHEMA_VERSION, SqliteStore
from aeon.store.texts import MAX_REQUEST_CHARACTERS, Rows, condense, cut_text, json_text, restore
from tests.store.entries import asked, entry

MOST = 1.15
pieces = (
    st.text(max_size=30)
    | st.just("a line of an output\n" * 40)
    | st.text('ab\\\n"', min_size=50, max_size=9000)
)


@given(st.lists(pieces, max_size=8), st.lists(pieces, max_size=8))
def test_a_request_comes_back_byte_for_byte(one: list[str], other: list[str]) -> None:
    messages = [{"role": "user", "content": "".join(texts)} for texts in (one, other)]
    request = {"messages": messages, "schema": {"type": "object", "title": "".join(one)}, "n": 1}
    condensed, places, rows = condense(request)
    assert restore(condensed, places, rows.__getitem__) == request


def test_a_text_no_longer_than_a_chunk_may_be_is_one_row() -> None:
    lines = [f"line {number} of a prompt" for number in range(1000)]
    whole = json_text("\n".join(lines))
    name, rows = cut_text(whole[:8192])
    assert rows == {name: whole[:8192]}
    assert len(cut_text(whole[:8193])[1]) > 2


def test_texts_that_differ_in_a_line_share_almost_all_rows() -> None:
    lines = [f"output of step {number}: {random.Random(number).random()}" for number in range(3000)]
    rows: Rows = {}
    rows |= cut_text(json_text("\n".join(lines)))[1]
    before = len(rows)
    lines[1500] = "something else"
    rows |= cut_text(json_text("\n".join(lines)))[1]
    assert before > 60
    assert len(rows) - before <= 6


def words(number: int) -> str:
    draw = random.Random(number)
    return " ".join(
        draw.choice(["alpha", "beta", "gamma", "delta", "rho"]) + str(draw.randrange(999))
        for _ in range(60)
    )


def prompts(style: str, steps: int) -> list[str]:
    """What the steps of a run are asked: everything worked out before, and a plan with its statuses."""
    done: list[str] = []
    asked: list[str] = []
    for number in range(steps):
        statuses = "\n".join(
            f"{n}. step {n}: {'complete' if n < number else 'pending'}" for n in range(20)
        )
        outputs = "\n".join(done) if style == "lines" else " ".join(done)
        asked.append(
            f"Carry out the step.\n\n<outputs>\n{outputs}\n</outputs>\n{statuses}\nNow step {number}."
        )
        done.append(
            f"## Step {number}\n{words(number)}"
            if style == "lines"
            else f'{{"output": "{words(number)}"}}'
        )
    return asked


def size_of_run(folder: Path, style: str, steps: int) -> int:
    path = folder / f"{style}{steps}.sqlite"
    store = SqliteStore(path)
    for number, prompt in enumerate(prompts(style, steps)):
        store.put(entry(prompt, text=words(number), step=f"s{number}"))
    store.close()
    return path.stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("style", ["lines", "one line"])
def test_the_store_of_a_run_whose_prompts_grow_grows_with_the_steps(
    tmp_path: Path, style: str
) -> None:
    sizes = {steps: size_of_run(tmp_path, style, steps) for steps in (50, 100, 300)}
    assert math.log(sizes[300] / sizes[50], 6) <= MOST, sizes
    assert math.log(sizes[300] / sizes[100], 3) <= MOST, sizes


def as_version_1(path: Path, entries: list[Any]) -> None:
    """A store as an earlier Aeon wrote it: each long text whole, under the digest of its value."""
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE answers DROP COLUMN usable")
    for stored in entries:
        request = stored.request.body
        system, user = (message["content"] for message in request["messages"])
        short = {
            **request,
            "schema": None,
            "messages": [{"role": r, "content": None} for r in ("system", "user")],
        }
        places = [
            (["messages", 0, "content"], system),
            (["messages", 1, "content"], user),
            (["schema"], request["schema"]),
        ]
        for _, value in places:
            connection.execute(
                "INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest(value), canonical(value))
            )
        path_of = stored.request.path
        row = (
            *(
                stored.request.key,
                stored.request.content,
                "model",
                path_of.pass_number,
                path_of.phase,
                path_of.call,
            ),
            *(path_of.step_id, path_of.attempt, path_of.occurrence, canonical(short)),
            *(
                canonical([[place, digest(value)] for place, value in places]),
                canonical(stored.answer),
                stored.time,
            ),
        )
        connection.execute(f"INSERT INTO answers VALUES (NULL, {', '.join('?' * len(row))})", row)
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_an_earlier_version_is_read_and_written(tmp_path: Path, read_only: bool) -> None:
    old = [entry(f"a long prompt {number}\n" * 300, step=f"s{number}") for number in range(3)]
    as_version_1(tmp_path / "store.sqlite", old)
    store = SqliteStore(tmp_path / "store.sqlite", read_only=read_only)
    assert list(store.entries()) == old
    if not read_only:
        store.put(entry("a new one\n" * 500, step="new"))
        assert store.get(asked("a new one\n" * 500, step="new").key) == entry(
            "a new one\n" * 500, step="new"
        )
    store.close()
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    assert connection.execute("PRAGMA user_version").fetchone() == (
        1 if read_only else SCHEMA_VERSION,
    )
    connection.close()


def test_rows_that_double_are_refused_before_they_are_whole() -> None:
    rows = {"0": f"={'x' * 1000}"} | {str(n): f"*{n - 1} {n - 1}" for n in range(1, 28)}
    with pytest.raises(
        ValueError, match=f"longer than the allowed {MAX_REQUEST_CHARACTERS:,} characters"
    ):
        restore({"a": None}, [(["a"], "27")], rows.__getitem__)


@pytest.mark.slow
def test_rows_that_are_empty_and_double_are_refused_too() -> None:
    rows = {"0": "="} | {str(n): f"*{n - 1} {n - 1}" for n in range(1, 40)}
    with pytest.raises(ValueError, match="longer than the allowed"):
        restore({"a": None}, [(["a"], "39")], rows.__getitem__)
