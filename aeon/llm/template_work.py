"""Caps on the work of rendering one prompt template: steps, seconds and characters."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.filters import do_batch, do_indent, do_join, do_map, do_replace, do_slice, do_tojson
from jinja2.runtime import Context
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

MOST_CHARACTERS = 20_000_000
"""Most characters of a prompt, and of any text a template makes on the way to one."""
MOST_STEPS = 1_000_000
"""Most loop turns, items passed to filters, and calls in one rendering; a call counts as
STEPS_OF_A_CALL."""
STEPS_OF_A_CALL = 10
MOST_SECONDS = 60.0
_LONG_LOOP = 1_000
_CHARACTERS_OF_A_STEP = 1_000
_MADE_OF_A_STEP = 100
_CHARACTERS_OF_AN_ITEM = 3
_MOST_OF_A_NUMBER = 100_000
_SIZED = (dict, list, tuple, range)
_SINGLE = frozenset({str, int, float, bool, type(None)})
# These choose or arrange items; other filters make text of their input.
_OF_ITEMS = re.compile(
    r"attr|batch|count|d|default|dictsort|first|groupby|items|join|last|length|list|map|max|min"
    r"|reject|rejectattr|reverse|select|selectattr|slice|sort|sum|unique"
)


class TooMuchWork(Exception):
    """A rendering that would take too long or make a text that is too long."""


class _StepCounter(threading.local):
    steps = 0
    until = float("inf")  # none, outside of a rendering


_work = _StepCounter()


def begin_rendering() -> None:
    """Start counting this thread's rendering steps."""
    _work.steps = 0
    _work.until = time.monotonic() + MOST_SECONDS


def add_steps(steps: int) -> None:
    """Count steps of this rendering. Raises TooMuchWork above MOST_STEPS, or after MOST_SECONDS."""
    total = _work.steps = _work.steps + steps
    if total > MOST_STEPS:
        raise TooMuchWork(f"its loops, calls and filters take more than {MOST_STEPS:,} steps")
    if time.monotonic() > _work.until:
        raise TooMuchWork(f"rendering it takes more than {MOST_SECONDS:g} seconds")


def check_characters(size: int) -> None:
    """Raise TooMuchWork for a text or a list that is too long."""
    if size > MOST_CHARACTERS:
        raise TooMuchWork(f"the text has more than {MOST_CHARACTERS:,} characters")


def add_characters(size: int) -> None:
    """Count the characters or items of a new value, which the template may keep. Raises
    TooMuchWork."""
    check_characters(size)
    add_steps(size // _MADE_OF_A_STEP)


def check_shown(value: Any) -> Any:
    """Return the value unchanged. Raises TooMuchWork for a collection whose text would be too
    long."""
    if type(value) not in _SINGLE and isinstance(value, Collection | Namespace):
        _measure(value)
    return value


def _measure(value: Any) -> int:
    """Return about the number of characters of a value as text. Raises TooMuchWork for too many."""
    total = 0
    open_values = [value]
    while open_values:
        each = open_values.pop()
        kind = type(each)
        # JSON's own types first: checks for abstract types take most of the time of a long plan.
        if kind is str:
            total += len(each)
        elif kind in _SINGLE:
            total += _CHARACTERS_OF_AN_ITEM
        else:
            inner = each if kind is dict or kind is list else _list_shown(each)
            total += len(each) if isinstance(each, str) else _CHARACTERS_OF_AN_ITEM
            check_characters(total + len(inner) * _CHARACTERS_OF_AN_ITEM)
            open_values += inner
            open_values += inner.values() if isinstance(inner, dict | Mapping) else ()
    check_characters(total)
    return total


def _list_shown(value: Any) -> Collection[Any]:
    """Return the values inside a value that its text shows."""
    # Its members cannot be listed, so that its text cannot be measured.
    if isinstance(value, Namespace):
        raise TooMuchWork("a namespace cannot be rendered as text; render its members")
    is_shown_whole = isinstance(value, str | bytes | range)
    return value if isinstance(value, Collection) and not is_shown_whole else ()


def check_filled(text: str, values: Iterable[Any]) -> None:
    """Raise TooMuchWork if filling `values` into a format could make too long a text: each place
    may take the longest value."""
    places = text.count("%") + text.count("{")
    add_characters(len(text) + places * max(map(_measure, values), default=0))


def check_method(method: Any, arguments: tuple[Any, ...]) -> None:
    """Raise TooMuchWork for a string method that would make too long a text."""
    text = getattr(method, "__self__", None)
    if not isinstance(text, str):
        return
    add_characters(len(text))
    if method.__name__ == "replace" and len(arguments) > 1:
        _check_replaced(text, *arguments[:2])
    if method.__name__ == "join" and arguments and isinstance(arguments[0], list | tuple):
        add_characters(len(text) * len(arguments[0]) + _measure(arguments[0]))


class CountedWork(NodeTransformer):
    """Changes a template's tree so that its loops and filters count their steps and `~` checks its
    result."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        """Count the turns of a loop."""
        self.generic_visit(node)
        node.iter = _add_filter(node.iter, "_of_loop")
        return node

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802
        """Count the input of a filter."""
        self.generic_visit(node)
        if node.node is not None and not isinstance(node.node, nodes.Const):
            is_of_items = _OF_ITEMS.fullmatch(node.name)
            node.node = _add_filter(node.node, "_of_filter" if is_of_items else "_of_text")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Check the text made by `~`."""
        self.generic_visit(node)
        return _add_filter(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "_joined")


def _add_filter(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _CountedItems:
    """A long or endless sequence whose items are counted as they are used."""

    def __init__(self, items: Any) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        is_counted = hasattr(self._items, "__len__")
        for number, item in enumerate(self._items):
            # The items of a known number are counted already; now and then the clock is looked at.
            if not is_counted or number % 256 == 0:
                add_steps(0 if is_counted else 1)
            yield item


# With the context as an argument, filters are not evaluated at compile time.
@pass_context
def _of_loop(_: Context, items: Any) -> Any:
    size = len(items) if hasattr(items, "__len__") else None
    add_steps(1 + (size or 0))
    is_short = size is not None and size <= _LONG_LOOP
    return items if is_short or not isinstance(items, Iterable) else _CountedItems(items)


@pass_context
def _of_filter(_: Context, value: Any) -> Any:
    if isinstance(value, str):
        # A filter makes text at most a few times as long as its input, and may be applied again.
        check_characters(len(value))
        add_steps(1 + len(value) // _CHARACTERS_OF_A_STEP)
    elif isinstance(value, _SIZED):
        add_steps(1 + len(value))
    return value


@pass_context
def _of_text(context: Context, value: Any) -> Any:
    return _of_filter(context, check_shown(value))


@pass_context
def _concatenate(_: Context, parts: tuple[Any, ...]) -> str:
    texts = [each if isinstance(each, str) else str(check_shown(each)) for each in parts]
    add_characters(sum(map(len, texts)))
    return "".join(texts)


@pass_context
def _join(context: Context, value: Iterable[Any], d: str = "", attribute: Any = None) -> Any:
    chosen = value if attribute is None else do_map(context, value, attribute=attribute)
    items = list(chosen)
    add_characters(len(d) * len(items) + _measure(items))
    return do_join(context.eval_ctx, items, d)


@pass_context
def _replace(context: Context, s: Any, old: str, new: str, count: int | None = None) -> str:
    _check_replaced(str(s), old, new)
    return do_replace(context.eval_ctx, s, old, new, count)


@pass_context
def _sum(context: Context, iterable: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    chosen = iterable if attribute is None else do_map(context, iterable, attribute=attribute)
    items = list(chosen)
    add_characters(sum(len(each) for each in items if isinstance(each, list | tuple)))
    return sum(items, start)


def _indent(s: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    size = width if isinstance(width, int) else len(width)
    add_characters(len(s) + size * (1 + str(s).count("\n")))
    return do_indent(s, width, first, blank)


@pass_context
def _to_json(context: Context, value: Any, indent: int | None = None) -> Any:
    _check_number(indent or 0)
    return do_tojson(context.eval_ctx, value, indent)


def _of_limited_number(work: Callable[..., Any]) -> Callable[..., Any]:
    def check_number(value: Any, number: int, fill_with: Any = None) -> Any:
        _check_number(number)
        return work(value, number, fill_with)

    return check_number


def _check_number(number: int) -> None:
    if number > _MOST_OF_A_NUMBER:
        raise TooMuchWork(f"a filter's argument is a number of more than {_MOST_OF_A_NUMBER:,}")


def _check_replaced(text: str, old: Any, new: Any) -> None:
    times = len(text) + 1 if not old else text.count(str(old))
    add_characters(len(text) + times * _measure(new))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "_of_loop": _of_loop,
    "_of_filter": _of_filter,
    "_of_text": _of_text,
    "_joined": _concatenate,
    "batch": _of_limited_number(do_batch),
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "sum": _sum,
    "slice": _of_limited_number(do_slice),
    "tojson": _to_json,
}
"""Jinja filters that could make text of any length, each with its cap, and the filters that
`CountedWork` adds."""
