"""Arithmetic with simpleeval's expression evaluator: decimal numbers are exact, and nothing is ever
executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from decimal import (
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)
from functools import partial
from typing import Annotated, Any

from pydantic import Field
from simpleeval import InvalidExpression, OperatorNotDefined, SimpleEval

from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

MAX_CHARACTERS = 2_000
MAX_DIGITS = 1_200
MAX_SERIES = 40
"""Most exponentials, logarithms and powers that are not whole in one expression: each is a series
of hundreds of long terms."""
MAX_EXPONENT = Decimal("1e50")
"""Largest exponent: a power takes a multiplication of long numbers for each of its binary digits."""

_CONTEXT = Context(
    prec=MAX_DIGITS, Emax=MAX_DIGITS - 1, traps=[InvalidOperation, DivisionByZero, Overflow]
)
_REASONS: dict[type[Exception], str] = {
    Overflow: f"a number has more than {MAX_DIGITS} digits",
    DivisionByZero: "division by zero",
    InvalidOperation: "an operation has no result among the real numbers",
    RecursionError: "the expression is nested too deeply; sum(a, b, ...) takes many numbers",
    MemoryError: "the expression is nested too deeply",
    OperatorNotDefined: "an operator is not arithmetic; a power is written **",
}


@tool(
    pure=True, examples=[{"expression": "(19.99 * 3 + 5) / 2"}, {"expression": "round(sqrt(2), 4)"}]
)
def calculator(
    expression: Annotated[
        str,
        Field(
            min_length=1, max_length=MAX_CHARACTERS, description="For example (1.5 + 2) * 3 ** 2."
        ),
    ],
) -> int | float:
    """Work out an arithmetic expression and return the number.

    Operators: + - * / // % ** and parentheses. Functions: abs, ceil, cos, exp, factorial, floor,
    log(x) or log(x, base), log10, max, mean, min, pow, round(x, digits), sin, sqrt, sum, tan
    (angles in radians; sum, mean, min and max take any number of values). Constants: pi, e. Decimal
    numbers are exact: 0.1 + 0.2 is 0.3.
    """
    return evaluate(expression)


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:  # noqa: ARG001
    """Return `calculator`, which needs no settings."""
    return (calculator,)


def evaluate(expression: str) -> int | float:
    """Evaluate an arithmetic expression. Raises ValueError with a readable message if it has no
    value or is not allowed."""
    text = " ".join(expression.split())
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the expression is longer than {MAX_CHARACTERS} characters")
    series = _Series()
    evaluator = SimpleEval(
        operators={**_OPERATORS, ast.Pow: series.power},
        functions={**_FUNCTIONS, "pow": series.power, **series.functions()},
        names=_CONSTANTS,
    )
    evaluator.nodes = {
        kind: evaluator.nodes[kind] for kind in (ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)
    }
    evaluator.nodes[ast.Constant] = partial(_read_literal, text)
    with localcontext(_CONTEXT):
        try:
            return _to_json_number(
                evaluator.eval(text, previously_parsed=ast.parse(text, mode="eval").body)
            )
        except SyntaxError as error:
            raise ValueError(f"not an expression: {error.msg}") from None
        except TypeError as error:
            raise ValueError(f"a function cannot be called like this: {error}") from None
        except (InvalidExpression, ArithmeticError, RecursionError, MemoryError) as error:
            raise ValueError(_REASONS.get(type(error), str(error))) from None


class _Series:
    """Counts the operations of one expression that are computed as a series. Raises ValueError for
    more than MAX_SERIES of them."""

    def __init__(self) -> None:
        self._count = 0

    def power(self, base: Decimal, exponent: Decimal) -> Decimal:
        if abs(exponent) > MAX_EXPONENT:
            raise ValueError(f"an exponent is beyond {MAX_EXPONENT:.0e}, the largest allowed")
        if exponent != exponent.to_integral_value():
            self._add()
        return base**exponent

    def functions(self) -> dict[str, Callable[..., Decimal]]:
        return {
            "exp": self._count_calls_of(Decimal.exp),
            "log": self._count_calls_of(_log),
            "log10": self._count_calls_of(Decimal.log10),
        }

    def _count_calls_of(self, function: Callable[..., Decimal]) -> Callable[..., Decimal]:
        def work_out(*values: Decimal) -> Decimal:
            self._add()
            return function(*values)

        return work_out

    def _add(self) -> None:
        self._count += 1
        if self._count > MAX_SERIES:
            raise ValueError(
                f"more than {MAX_SERIES} exponentials, logarithms and powers that are not whole"
            )


def _log(value: Decimal, base: Decimal | None = None) -> Decimal:
    return value.ln() if base is None else value.ln() / base.ln()


def _read_literal(text: str, node: ast.Constant) -> Decimal:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise ValueError(f"{node.value!r} is not a real number")
    if isinstance(node.value, int):
        return getcontext().create_decimal(node.value)
    # The decimal text, not the nearest binary fraction.
    return getcontext().create_decimal(str(ast.get_source_segment(text, node)).replace("_", ""))


def _to_json_number(value: object) -> int | float:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise ValueError("the expression has no finite number as its value")
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    if math.isinf(number):
        raise ValueError("a number with decimals is larger than 1e308")
    return int(number) if number.is_integer() else number


def _by_float(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    return lambda value: Decimal(repr(function(float(value))))


def _floor_divide(a: Decimal, b: Decimal) -> Decimal:
    return a // b - 1 if a % b and (a < 0) != (b < 0) else a // b


def _modulo(a: Decimal, b: Decimal) -> Decimal:
    return a % b + b if a % b and (a < 0) != (b < 0) else a % b  # the sign is the divisor's


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or not 0 <= value <= 500:
        raise ValueError("factorial takes a whole number from 0 to 500")
    return Decimal(math.factorial(int(value)))


def _round(value: Decimal, digits: Decimal = Decimal(0)) -> Decimal:
    if digits != digits.to_integral_value() or abs(digits) > 300:
        raise ValueError("round takes a whole number of digits, at most 300")
    return value.quantize(Decimal(1).scaleb(-digits), rounding="ROUND_HALF_UP")


_CONSTANTS = {
    "pi": Decimal("3.141592653589793238462643383279503"),
    "e": Decimal("2.718281828459045235360287471352662"),
}
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _modulo,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": lambda value: value.to_integral_value(rounding="ROUND_CEILING"),
    "cos": _by_float(math.cos),
    "factorial": _factorial,
    "floor": lambda value: value.to_integral_value(rounding="ROUND_FLOOR"),
    "max": lambda *values: max(values),
    "mean": lambda *values: sum(values) / Decimal(len(values)),
    "min": lambda *values: min(values),
    "round": _round,
    "sin": _by_float(math.sin),
    "sqrt": Decimal.sqrt,
    "sum": lambda *values: sum(values, Decimal(0)),
    "tan": _by_float(math.tan),
}
