"""The two tools of this example, beside `read_file`: they search the documents, and ask the database."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

from pydantic import Field

from aeon.tools.function import tool

DATA = Path(os.environ.get("OFFICE_DATA", Path(__file__).parent / "data"))
MOST_FOUND = 20
MOST_ROWS = 50


@tool
def search(
    words: Annotated[
        str,
        Field(
            description="Words that a document must have, in its text or its file name, all of them."
        ),
    ],
) -> list[str]:
    """Search the company's documents: maintenance notes of halls, delivery reports of orders, letters of suppliers.

    Gives at most 20 documents, each as its file name and its text, and says how many more there are.
    """
    wanted = _split(words)
    found = []
    for path in sorted((DATA / "documents").iterdir()):
        text = path.read_text(encoding="utf-8")
        if wanted <= _split(text) | _split(path.stem.replace("-", " ", 1)):
            found.append(f"{path.name}: {text}")
    if len(found) <= MOST_FOUND:
        return found
    return [
        *found[:MOST_FOUND],
        f"{len(found) - MOST_FOUND} more documents are not shown: add words.",
    ]


def _split(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text.lower()))


@tool
def query(
    sql: Annotated[str, Field(description="One SELECT statement of SQLite.")],
) -> list[list[str | int | float | None]]:
    """Ask the database of the stock, which can only be read.

    Tables: articles (number, kind, price, supplier, stock), suppliers (id, name, city),
    orders (number, customer, article, pieces, month). articles.supplier is suppliers.id,
    orders.article is articles.number. Gives at most 50 rows, and says when there are more.
    """
    with closing(sqlite3.connect(f"file:{DATA / 'stock.sqlite'}?mode=ro", uri=True)) as stock:
        rows = [list(row) for row in stock.execute(sql).fetchmany(MOST_ROWS + 1)]
    if len(rows) <= MOST_ROWS:
        return rows
    return [*rows[:MOST_ROWS], ["More rows are not shown: ask for fewer."]]
