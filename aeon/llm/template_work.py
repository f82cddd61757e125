"""How much one rendering of a prompt template may work out: steps, seconds and characters, each
with its cap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.filters import do_batch, do_indent, do_join, do_map, do_replace, do_slice
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

MOST_CHARACTERS = 20_000_000
"""Characters of a prompt, and of what a template may make on the way to one."""
MOST_STEPS = 1_000_000
"""Turns of loops, items handed to filters, and calls in one rendering; a call counts as
STEPS_OF_A_CALL."""
STEPS_OF_A_CALL = 10
MOST_SECONDS = 60.0
_LONG_LOOP = 1_000
_CHARACTERS_OF_A_STEP = 1_000
_MOST_OF_A_NUMBER = 100_000
_SIZED = (dict, list, tuple, range)


class TooMuchWork(Exception):
    """A rendering that would take too long, or make too long a text."""


class _StepCounter(threading.local):
    steps = 0
    until = float("inf")


_work = _StepCounter()


def begin_rendering() -> None:
    """Count the steps of this thread's rendering from here."""
    _work.steps = 0
    _work.until = time.monotonic() + MOST_SECONDS


def add_steps(steps: int) -> None:
    """Count steps of this rendering. Raises TooMuchWork for more than MOST_STEPS, and after
    MOST_SECONDS."""
    total = _work.steps = _work.steps + steps
    if total > MOST_STEPS:
        raise TooMuchWork(f"its loops, calls and filters take more than {MOST_STEPS:,} steps")
    if time.monotonic() > _work.until:
        raise TooMuchWork(f"rendering it takes more than {MOST_SECONDS:g} seconds")


def check_characters(size: int) -> None:
    """Raise TooMuchWork for a text or a list that is too long."""
    if size > MOST_CHARACTERS:
        raise TooMuchWork(f"the text has more than {MOST_CHARACTERS:,} characters")


def check_filled(text: str, values: Iterable[Any]) -> None:
    """Raise TooMuchWork for a format that would make too long a text of values: each of its places may take the
    longest."""
    places = text.count("%") + text.count("{")
    check_characters(len(text) + places * max(map(_size, values), default=0))


def check_method(method: Any, arguments: tuple[Any, ...]) -> None:
    """Raise TooMuchWork for a method of a text that would make too long a text."""
    text = getattr(method, "__self__", None)
    if not isinstance(text, str):
        return
    if method.__name__ == "replace" and len(arguments) > 1:
        _check_replaced(text, *arguments[:2])
    if method.__name__ == "join" and arguments and isinstance(arguments[0], list | tuple):
        check_characters(sum(len(text) + _size(each) for each in arguments[0]))


class CountedWork(NodeTransformer):
    """Changes a template's tree so that its loops and filters count their steps, and `~` checks
    what it makes."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        """A loop over what is counted."""
        self.generic_visit(node)
        node.iter = _add_filter(node.iter, "_of_loop")
        return node

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802
        """A filter of what is counted."""
        self.generic_visit(node)
        if node.node is not None and not isinstance(node.node, nodes.Const):
            node.node = _add_filter(node.node, "_of_filter")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Texts put together by `~`."""
        self.generic_visit(node)
        return _add_filter(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "_joined")


def _add_filter(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _CountedItems:
    """A long or endless sequence whose turns are watched."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        is_counted = hasattr(self._items, "__len__")
        for number, item in enumerate(self._items):
            if not is_counted or number % 256 == 0:
                add_steps(0 if is_counted else 1)
            yield item


# With the context, no filter is worked out while a template is compiled.
@pass_context
def _of_loop(_: Context, items: Any) -> Any:
    size = len(items) if hasattr(items, "__len__") else None
    add_steps(1 + (size or 0))
    is_short = size is not None and size <= _LONG_LOOP
    return items if is_short or not isinstance(items, Iterable) else _CountedItems(items)


@pass_context
def _of_filter(_: Context, value: Any) -> Any:
    if isinstance(value, str):
        # A filter makes a few times as much of a text at the most, and may be given that again.
        check_characters(len(value))
        add_steps(1 + len(value) // _CHARACTERS_OF_A_STEP)
    elif isinstance(value, _SIZED):
        add_steps(1 + len(value))
    return value


@pass_context
def _concatenate(_: Context, parts: tuple[Any, ...]) -> str:
    texts = [each if isinstance(each, str) else str(each) for each in parts]
    check_characters(sum(map(len, texts)))
    return "".join(texts)


@pass_context
def _join(context: Context, value: Iterable[Any], d: str = "", attribute: Any = None) -> Any:
    chosen = value if attribute is None else do_map(context, value, attribute=attribute)
    items = list(chosen)
    check_characters(sum(len(d) + _size(each) for each in items))
    return do_join(context.eval_ctx, items, d)


@pass_context
def _replace(context: Context, s: Any, old: str, new: str, count: int | None = None) -> str:
    _check_replaced(str(s), old, new)
    return do_replace(context.eval_ctx, s, old, new, count)


@pass_context
def _sum(context: Context, iterable: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    chosen = iterable if attribute is None else do_map(context, iterable, attribute=attribute)
    items = list(chosen)
    check_characters(sum(len(each) for each in items if isinstance(each, list | tuple)))
    return sum(items, start)


def _indent(s: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    size = width if isinstance(width, int) else len(width)
    check_characters(len(s) + size * (1 + str(s).count("\n")))
    return do_indent(s, width, first, blank)


def _of_limited_number(work: Callable[..., Any]) -> Callable[..., Any]:
    def check_number(value: Any, number: int, fill_with: Any = None) -> Any:
        if number > _MOST_OF_A_NUMBER:
            raise TooMuchWork(f"a filter is given a number of more than {_MOST_OF_A_NUMBER:,}")
        return work(value, number, fill_with)

    return check_number


def _check_replaced(text: str, old: Any, new: Any) -> None:
    times = len(text) + 1 if not old else text.count(str(old))
    check_characters(len(text) + times * len(str(new)))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else 1


FILTERS: Mapping[str, Callable[..., Any]] = {
    "_of_loop": _of_loop,
    "_of_filter": _of_filter,
    "_joined": _concatenate,
    "batch": _of_limited_number(do_batch),
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "sum": _sum,
    "slice": _of_limited_number(do_slice),
}
"""Filters of Jinja that could make texts of any length, each with its cap, and those that
`CountedWork` puts in."""
