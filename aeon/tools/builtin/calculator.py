"""Arithmetic, with the expression evaluator of simpleeval: decimal numbers are exact, and nothing is ever executed."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from decimal import (
    Context,
    Decimal,
    DivisionByZero,
    FloatOperation,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field
from simpleeval import InvalidExpression, SimpleEval

from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

MAX_CHARACTERS = 2_000
MAX_DEPTH = 100
MAX_BITS = 4_096

# Digits of a quotient or a root, which may have no end. Sums, differences and products keep all of their digits, which
# are more for what can be written in an expression.
_PRECISION = 34
_CONTEXT = Context(
    prec=8_000, Emax=308, Emin=-308, traps=[InvalidOperation, DivisionByZero, Overflow, FloatOperation], flags=[]
)
_LARGEST = Decimal("1.7976931348623157e308")  # the largest JSON number that most readers can hold
_ALLOWED = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)
_REASONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (Overflow, "a number is larger than 1e308"),
    ((DivisionByZero, ZeroDivisionError), "division by zero"),
    (InvalidOperation, "an operation has no result among the real numbers"),
    (OverflowError, "a number is larger than a function can take"),
)

Number = int | Decimal
Function = Callable[..., Any]


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:  # noqa: ARG001
    """`calculator`, which needs no settings."""
    return (calculator_tool(),)


def calculator_tool() -> Tool:
    """`calculator`: one arithmetic expression."""

    @tool(pure=True, examples=[{"expression": "(19.99 * 3 + 5) / 2"}, {"expression": "round(sqrt(2), 4)"}])
    def calculator(
        expression: Annotated[
            str, Field(min_length=1, max_length=MAX_CHARACTERS, description="For example (1.5 + 2) * 3 ** 2.")
        ],
    ) -> int | float:
        """Work out an arithmetic expression and return the number.

        Operators: + - * / // % ** and parentheses. Functions: abs, ceil, cos, exp, factorial, floor, log(x) or
        log(x, base), log10, max, mean, min, pow, round(x, digits), sin, sqrt, sum, tan (angles in radians; sum, mean,
        min and max take any number of values). Constants: pi, e. Decimal numbers are exact: 0.1 + 0.2 is 0.3.
        """
        return evaluate(expression)

    return calculator


def evaluate(expression: str) -> int | float:
    """The value of an arithmetic expression. Raises ValueError, in words, for one that has none or is not allowed."""
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_CONSTANTS)
    evaluator.nodes = {kind: handler for kind, handler in evaluator.nodes.items() if kind in _ALLOWED}
    with localcontext(_CONTEXT):
        try:
            return _to_json_number(evaluator.eval(expression, previously_parsed=_parse(expression)))
        except TypeError as error:
            raise ValueError(f"a function cannot be called like this: {error}") from None
        except (InvalidExpression, ArithmeticError) as error:
            reason = next((reason for kinds, reason in _REASONS if isinstance(error, kinds)), str(error))
            raise ValueError(reason) from None


def _parse(expression: str) -> ast.expr:
    text = " ".join(expression.split())
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the expression is longer than {MAX_CHARACTERS} characters")
    try:
        body = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None
    _check_nodes(body)
    for node in ast.walk(body):
        if isinstance(node, ast.Constant):
            node.value = _literal(node, text)  # type: ignore[assignment] # a Decimal, which the evaluator only returns
    return body


def _check_nodes(body: ast.expr) -> None:
    layer: list[ast.AST] = [body]
    for _ in range(MAX_DEPTH):
        for node in layer:
            if isinstance(node, ast.expr) and not isinstance(node, _ALLOWED):
                raise ValueError(f"{type(node).__name__} is not arithmetic")
            if isinstance(node, ast.operator | ast.unaryop) and type(node) not in _OPERATORS:
                raise ValueError(f"the operator {type(node).__name__} is not arithmetic; a power is written **")
        layer = [child for node in layer for child in ast.iter_child_nodes(node)]
        if not layer:
            return
    raise ValueError(f"the expression is nested deeper than {MAX_DEPTH} levels; sum(a, b, ...) takes many numbers")


def _literal(node: ast.Constant, text: str) -> Number:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise ValueError(f"{node.value!r} is not a real number")
    if isinstance(node.value, int):
        return _check_size(node.value)
    # As written, not the binary fraction nearest to it.
    written = ast.get_source_segment(text, node) or repr(node.value)
    return getcontext().create_decimal(written.replace("_", ""))


def _to_json_number(value: Any) -> int | float:
    if isinstance(value, int):
        return value
    if not isinstance(value, Decimal):
        raise ValueError("the expression has no number as its value")
    if not value.is_finite():
        raise ValueError("the expression has no finite value")
    if abs(value) > _LARGEST:
        raise ValueError("a number is larger than 1e308")
    if value != value.to_integral_value():
        return float(value)
    # A large number may be written briefly, 1e+40, where that is exact.
    return float(value) if value.adjusted() >= _PRECISION and Decimal(repr(float(value))) == value else int(value)


def _check_size(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError(f"a number has more than {MAX_BITS} bits")
    return value


def _sized(function: Function) -> Function:
    return lambda *operands: _check_size(function(*operands))


def _rounding(function: Function) -> Function:
    """The function with its results rounded to `_PRECISION` digits."""

    def rounded(*operands: Number) -> Number:
        with localcontext(prec=_PRECISION):
            return _check_size(function(*operands))

    return rounded


def _by_float(function: Callable[[float], float]) -> Function:
    return lambda value: Decimal(repr(function(float(value))))


def _floor_divide(a: Number, b: Number) -> Number:
    # A quotient of decimals is rounded, and the floor of a rounded one may be another number.
    return a // b if isinstance(a, int) and isinstance(b, int) else Fraction(a) // Fraction(b)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if base.bit_length() * exponent > MAX_BITS and abs(base) > 1:
            raise ValueError(f"a power has more than {MAX_BITS} bits")
        return int(base**exponent)
    return Decimal(base) ** Decimal(exponent)


def _logarithm(value: Number, base: Number | None = None) -> Number:
    return Decimal(value).ln() if base is None else Decimal(value).ln() / Decimal(base).ln()


def _factorial(value: Number) -> Number:
    if value != int(value) or not 0 <= int(value) <= 500:
        raise ValueError("factorial takes a whole number from 0 to 500")
    return math.factorial(int(value))


def _round(value: Number, digits: Number = 0) -> Number:
    if digits != int(digits) or abs(int(digits)) > 300:
        raise ValueError("round takes a whole number of digits, at most 300")
    number = Decimal(value)
    if -int(number.as_tuple().exponent) <= digits:
        return value
    return number.quantize(Decimal(1).scaleb(-int(digits)), rounding="ROUND_HALF_UP")


_CONSTANTS = {"pi": Decimal("3.141592653589793238462643383279503"), "e": Decimal("2.718281828459045235360287471352662")}
_OPERATORS: dict[type[ast.AST], Function] = {
    ast.Add: _sized(operator.add),
    ast.Sub: _sized(operator.sub),
    ast.Mult: _sized(operator.mul),
    ast.Div: _rounding(lambda a, b: Decimal(a) / Decimal(b)),
    ast.FloorDiv: _sized(_floor_divide),
    ast.Mod: _sized(lambda a, b: a - b * _floor_divide(a, b)),  # the sign is that of the divisor
    ast.Pow: _rounding(_power),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Function] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": _by_float(math.cos),
    "exp": _rounding(lambda value: Decimal(value).exp()),
    "factorial": _sized(_factorial),
    "floor": math.floor,
    "log": _rounding(_logarithm),
    "log10": _rounding(lambda value: Decimal(value).log10()),
    "max": lambda *values: max(values),
    "mean": _rounding(lambda *values: Decimal(sum(values)) / len(values)),
    "min": lambda *values: min(values),
    "pow": _rounding(_power),
    "round": _round,
    "sin": _by_float(math.sin),
    "sqrt": _rounding(lambda value: Decimal(value).sqrt()),
    "sum": _sized(lambda *values: sum(values)),
    "tan": _by_float(math.tan),
}
