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

MAX_CHARACTERS = 2_000
MAX_DEPTH = 100
MAX_BITS = 4_096

# Digits of what has no end, a quotient or a root. A sum, difference or product of what can be written in an expression
# keeps all of its digits, far more of them than these.
_PRECISION = 34
_EXACT_PRECISION = 8_000
_CONTEXT = Context(
    prec=_EXACT_PRECISION,
    Emax=308,
    Emin=-308,
    traps=[InvalidOperation, DivisionByZero, Overflow, FloatOperation],
    flags=[],
)
_ALLOWED = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)

Number = int | Decimal


def calculator_tool() -> Tool:
    """`calculator`: one arithmetic expression."""
    evaluator = _evaluator()

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
        return evaluate(expression, evaluator)

    return calculator


def evaluate(expression: str, evaluator: SimpleEval | None = None) -> int | float:
    """The value of an arithmetic expression. Raises ValueError, in words, for one that has none or is not allowed."""
    with localcontext(_CONTEXT):
        try:
            body = _parsed(expression)
            return _as_number((evaluator or _evaluator()).eval(expression, previously_parsed=body))
        except InvalidExpression as error:
            raise ValueError(str(error)) from None
        except Overflow:
            raise ValueError("a number is larger than 1e308") from None
        except OverflowError:
            raise ValueError("a number is larger than a function can take") from None
        except (DivisionByZero, ZeroDivisionError):
            raise ValueError("division by zero") from None
        except InvalidOperation:
            raise ValueError("an operation has no result among the real numbers") from None
        except TypeError as error:
            raise ValueError(f"a function cannot be called like this: {error}") from None


def _parsed(expression: str) -> ast.expr:
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
            node.value = _literal(node, text)
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


def _literal(node: ast.Constant, text: str) -> Any:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise ValueError(f"{node.value!r} is not a real number")
    if isinstance(node.value, int):
        return _bounded(node.value)
    # What was written, and not the binary fraction nearest to it.
    written = ast.get_source_segment(text, node) or repr(node.value)
    return getcontext().create_decimal(written.replace("_", ""))


def _evaluator() -> SimpleEval:
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_CONSTANTS)
    evaluator.nodes = {kind: handler for kind, handler in evaluator.nodes.items() if kind in _ALLOWED}
    return evaluator


_LARGEST = Decimal("1.7976931348623157e308")  # what a JSON number of most readers can hold
_LONG = Decimal(10) ** _PRECISION


def _as_number(value: Any) -> int | float:
    if not isinstance(value, int | Decimal):
        raise ValueError("the expression has no number as its value")
    if isinstance(value, int):
        return value
    if not value.is_finite():
        raise ValueError("the expression has no finite value")
    if abs(value) > _LARGEST:
        raise ValueError("a number is larger than 1e308")
    if value != value.to_integral_value():
        return float(value)
    # A large one may be written briefly, 1e+40, where that is the very number.
    return float(value) if abs(value) >= _LONG and Decimal(repr(float(value))) == value else int(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError(f"a number has more than {MAX_BITS} bits")
    return value


def _checked(function: Callable[..., Number]) -> Callable[..., Number]:
    return lambda *operands: _bounded(function(*operands))


def _rounding(function: Callable[..., Number]) -> Callable[..., Number]:
    """The function with its results rounded to `_PRECISION` digits."""

    def rounded(*operands: Number) -> Number:
        with localcontext(prec=_PRECISION):
            return function(*operands)

    return rounded


def _divided(a: Number, b: Number) -> Number:
    return Decimal(a) / Decimal(b)


def _floor_divided(a: Number, b: Number) -> Number:
    # A quotient of decimals is rounded, and the floor of a rounded one may be another number.
    return a // b if isinstance(a, int) and isinstance(b, int) else Fraction(a) // Fraction(b)


def _modulo(a: Number, b: Number) -> Number:
    # The sign of the divisor, for whole and decimal numbers alike.
    return a - b * _floor_divided(a, b)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if base.bit_length() * exponent > MAX_BITS and abs(base) > 1:
            raise ValueError(f"a power has more than {MAX_BITS} bits")
        return int(base**exponent)
    return Decimal(base) ** Decimal(exponent)


def _by_float(function: Callable[[float], float]) -> Callable[[Number], Number]:
    return lambda value: Decimal(repr(function(float(value))))


def _logarithm(value: Number, base: Number | None = None) -> Number:
    return Decimal(value).ln() if base is None else Decimal(value).ln() / Decimal(base).ln()


def _factorial(value: Number) -> Number:
    if value != int(value) or not 0 <= int(value) <= 500:
        raise ValueError("factorial takes a whole number from 0 to 500")
    return math.factorial(int(value))


def _rounded(value: Number, digits: Number = 0) -> Number:
    if digits != int(digits) or abs(int(digits)) > 300:
        raise ValueError("round takes a whole number of digits, at most 300")
    number = Decimal(value)
    if -int(number.as_tuple().exponent) <= digits:
        return value
    return number.quantize(Decimal(1).scaleb(-int(digits)), rounding="ROUND_HALF_UP")


def _mean(*values: Number) -> Number:
    return _rounding(_divided)(_total(*values), len(values))


def _smallest(*values: Any) -> Number:
    found: Number = min(values)
    return found


def _largest(*values: Any) -> Number:
    found: Number = max(values)
    return found


def _total(*values: Number) -> Number:
    return sum(values)


_CONSTANTS = {"pi": Decimal("3.141592653589793238462643383279503"), "e": Decimal("2.718281828459045235360287471352662")}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: _checked(operator.add),
    ast.Sub: _checked(operator.sub),
    ast.Mult: _checked(operator.mul),
    ast.Div: _checked(_rounding(_divided)),
    ast.FloorDiv: _checked(_floor_divided),
    ast.Mod: _checked(_modulo),
    ast.Pow: _checked(_rounding(_power)),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": abs,
    "ceil": math.ceil,
    "cos": _by_float(math.cos),
    "exp": _rounding(lambda value: Decimal(value).exp()),
    "factorial": _checked(_factorial),
    "floor": math.floor,
    "log": _rounding(_logarithm),
    "log10": _rounding(lambda value: Decimal(value).log10()),
    "max": _largest,
    "mean": _mean,
    "min": _smallest,
    "pow": _checked(_rounding(_power)),
    "round": _rounded,
    "sin": _by_float(math.sin),
    "sqrt": _rounding(lambda value: Decimal(value).sqrt()),
    "sum": _checked(_total),
    "tan": _by_float(math.tan),
}
