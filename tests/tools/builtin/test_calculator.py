import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.tools.builtin.calculator import calculator, evaluate
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from tests.support.timing import SOON


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("5 + 10", 15),
        ("0.1 + 0.2", 0.3),
        ("100 * 1.1", 110),
        ("(19.99 * 3 + 5) / 2", 32.485),
        ("10 / 2", 5),
        ("1 / 4", 0.25),
        ("7 / 3", 7 / 3),
        ("2 ** 10", 1024),
        ("2 ** -2", 0.25),
        ("2 ** 0.5", math.sqrt(2)),
        ("-2 ** 2", -4),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("-7.5 % 3", 1.5),
        ("-7.5 // 2", -4),
        ("123456789012345678901234567890 + 1", 123456789012345678901234567891),
        ("sqrt(2)", math.sqrt(2)),
        ("round(2.675, 2)", 2.68),
        ("round(2.5)", 3),
        ("round(1234.5, -2)", 1200),
        ("round(1.5, 300)", 1.5),
        ("abs(-3) + floor(2.7) + ceil(2.1)", 8),
        ("sum(1, 2.5) + mean(1, 2) + min(3, 1) + max(3, 1)", 9),
        ("log(8, 2)", 3),
        ("log10(1000)", 3),
        ("exp(log(2))", 2),
        ("sin(0) + cos(0) + tan(0)", 1),
        ("factorial(20)", math.factorial(20)),
        ("pow(2, 3)", 8),
        ("round(2 * pi, 5) + round(e, 2)", 9.00319),
        ("1_000.5 * 2", 2001),
        ("1 +\n 2", 3),
        ("10 ** -400", 0),
    ],
)
def test_the_value_of_an_expression(expression: str, value: float) -> None:
    found = evaluate(expression)
    assert found == pytest.approx(value, rel=1e-15, abs=1e-15)
    assert type(found) is int or not float(value).is_integer()


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("9 ** 9 ** 9", "1200 digits"),
        ("pow(10, 10 ** 9)", "1200 digits"),
        ("2 ** 3000 * 2 ** 3000", "1200 digits"),
        ("9.0 ** 9 ** 9", "1200 digits"),
        ("1e1200", "1200 digits"),
        ("2e308 + 0.5", "larger than 1e308"),
        ("factorial(501)", "0 to 500"),
        ("factorial(10 ** 10)", "0 to 500"),
        ("factorial(1.5)", "whole number"),
        ("round(1.5, 10 ** 9)", "at most 300"),
        ("sin(2 ** 2000)", "math domain error"),
        ("(" * 500 + "1" + ")" * 500, "not an expression"),
        ("-" * 1900 + "1", "nested too deeply"),
        ("+".join("1" * 500), "sum(a, b, ...)"),
        ("1" * 2001, "longer than 2000"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "no result"),
        ("1.5 // 0", "no result"),
        ("sqrt(-1)", "real numbers"),
        ("(-8) ** (1 / 3)", "real numbers"),
        ("log(0)", "no finite number"),
        ("2 ^ 3", "a power is written **"),
        ("x + 1", "'x' is not defined"),
        ("foo(1)", "'foo' not defined"),
        ("abs", "no finite number"),
        ("abs(1, 2)", "cannot be called like this"),
        ("max(1, abs)", "cannot be called like this"),
        ("max()", "empty"),
        ("", "not an expression"),
        ("1; 2", "not an expression"),
        ("x = 1", "not an expression"),
        ("1j", "not a real number"),
        ("True", "not a real number"),
        ("'a' * 3", "not a real number"),
        ("1 < 2", "Compare is not available"),
        ("[1]", "List is not available"),
        ("(1).real", "Attribute is not available"),
        ("abs.__globals__", "Attribute is not available"),
        ("abs(*[1])", "Starred is not available"),
        ("[x for x in (1, 2)]", "ListComp is not available"),
        ("(lambda: 1)()", "Lambda Functions not implemented"),
        ("__import__('os')", "not defined"),
        ("f'{1}'", "JoinedStr is not available"),
    ],
)
def test_what_is_refused_is_said_in_words_and_at_once(expression: str, said: str) -> None:
    started = time.monotonic()
    with pytest.raises(ValueError, match=r".") as caught:
        evaluate(expression)
    assert said in str(caught.value)
    assert time.monotonic() - started < SOON


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["+".join([one] * 41) for one in ("exp(1)", "log(2)", "log10(2)", "2**.5", "pow(2, .5)")],
)
def test_what_takes_a_series_is_counted(expression: str) -> None:
    with pytest.raises(ValueError, match="more than 40 exponentials, logarithms and powers"):
        evaluate(expression)
    assert evaluate("+".join(["2**2"] * 41)) == 164


@pytest.mark.parametrize(("sign", "value"), [("", 2.7183), ("-", 0.3679)])
def test_a_power_whose_exponent_has_too_many_digits_is_refused(sign: str, value: float) -> None:
    assert evaluate(f"round((1 + 1 / 10**50) ** ({sign}10**50), 4)") == value
    with pytest.raises(ValueError, match=r"an exponent is beyond 1e\+50, the largest allowed"):
        evaluate(f"(1 + 1 / 10**1190) ** ({sign}10**1190)")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1e40 % 3", 1),
        ("1e35 % 7", 10**35 % 7),
        ("1e300 % 7", 10**300 % 7),
        ("12345678901234567890123456789012345678.5 % 10", 8.5),
        ("1e40 // 3", 10**40 // 3),
        ("-1e40 // 3", -(10**40) // 3),
        ("(1e40 + 1) % 3", 2),
        ("(1e40 * 3 + 1) % 3", 1),
        ("1e40 + 1", 10**40 + 1),
        ("5.5 // -2", -3),
        ("-7.5 % 3", 1.5),
        ("7.5 % -3", -1.5),
        ("1e308 // 1e-308", 10**616),
        ("0.3 % 0.1", 0),
    ],
)
def test_whole_quotients_and_remainders_are_exact_whatever_the_size(
    expression: str, value: float
) -> None:
    assert evaluate(expression) == value


@given(st.integers(-(10**60), 10**60), st.integers(1, 10**45), st.integers(0, 20))
def test_quotient_and_remainder_of_decimals_are_those_of_whole_numbers_scaled(
    a: int, b: int, digits: int
) -> None:
    assert evaluate(f"({a}e-{digits}) // ({b}e-{digits})") == a // b
    assert evaluate(f"(({a}e-{digits}) % ({b}e-{digits})) * 1e{digits}") == a % b


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=4),
    st.decimals(-(10**9), 10**9, places=4),
)
def test_decimal_numbers_are_exact(a: object, b: object) -> None:
    assert evaluate(f"({a}) + ({b}) - ({b})") == evaluate(f"{a}")


@given(st.text(alphabet="0123456789.+-*/%() ,eabsroundmxi_", max_size=60))
def test_any_text_is_a_finite_number_or_a_refusal(expression: str) -> None:
    try:
        value = evaluate(expression)
    except ValueError:
        return
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_as_a_tool_a_refusal_is_an_error() -> None:
    calls = ToolInvoker(ToolRegistry([calculator]))
    assert calls.invoke("calculator", {"expression": "6 * 7"}).text == "42"
    refused = calls.invoke("calculator", {"expression": "1 / 0"})
    assert (refused.error_kind, refused.error) == ("raised", "ValueError: division by zero")
    assert calls.invoke("calculator", {"expression": "1" * 2001}).error_kind == "invalid_arguments"
