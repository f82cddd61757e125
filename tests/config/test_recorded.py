"""Which overrides go into a cassette, and in which words."""

from __future__ import annotations

import pytest

from aeon.config.recorded import Portable, make_portable

SECRET = "sk-it's-\\"


def made(*overrides: str) -> Portable:
    return make_portable(
        overrides, lambda text: "sk-" in text, lambda text: text.replace(SECRET, "[A]").replace("sk-plain", "[A]")
    )


@pytest.mark.parametrize(
    ("override", "kept"),
    [
        ("provider.extra_body.user=sk-plain", "provider.extra_body.user='[A]'"),
        ("++provider.extra_body={a: sk-plain, b: [1, true, null, x]}", None),
        ("convergence.criteria.a='it has sk-plain'", "convergence.criteria.a='it has [A]'"),
        ("convergence.criteria.a='sk-it\\'s-\\\\'", "convergence.criteria.a='[A]'"),
        ("mode=core", "mode=core"),
        ("progress=none", "progress=none"),
        ("~limits.max_cost", "~limits.max_cost"),
    ],
)
def test_a_value_with_a_secret_is_quoted_anew(override: str, kept: str | None) -> None:
    kept = kept or "++provider.extra_body={a: '[A]',b: [1,true,null,'x']}"
    assert made(override) == Portable((kept,), ())


@pytest.mark.parametrize(
    ("override", "left_out"),
    [
        ("provider.base_url=http://10.0.0.7/v1", ()),
        ("provider.fallbacks=[{name: a, base_url: http://10.0.0.7/v1}]", ()),
        ("provider={kind: openai, base_url: http://10.0.0.7/v1}", ("provider",)),
        ("provider.extra_body={a: 'sk-plain ${oc.env:HOME}'}", ("provider.extra_body",)),
        ("limits.max_cost=1,2,sk-plain", ("limits.max_cost",)),
        ("=[sk-plain", ("",)),
    ],
)
def test_what_cannot_be_said_without_its_secret_or_address_is_left_out(
    override: str, left_out: tuple[str, ...]
) -> None:
    assert made(override) == Portable((), left_out)
