"""A dataset may be a stranger's: what its rows may configure, and up to which value."""

from __future__ import annotations

import pytest

from aeon.batch.overrides import check_changes, check_overrides, modes_among
from aeon.config.compose.literal import Composition
from aeon.config.load import compose_settings
from aeon.domain.errors import ConfigError

BATCH = (
    "provider=openai",
    "limits.max_cost=2",
    "limits.max_llm_calls=50",
    "ttl.limit=60",
    "tools=builtin",
    "tools.builtin.only=[calculator]",
    "++tools.approval={*: never}",
    "env=prod",
)


def check(*overrides: str) -> None:
    """Check a row of a batch with the configuration above."""
    check_overrides(overrides)
    settings = compose_settings(Composition(overrides=(*BATCH, *overrides)))
    configured = compose_settings(Composition(overrides=(*BATCH, *modes_among(overrides))))
    check_changes(settings, configured)


@pytest.mark.parametrize(
    "override",
    [
        "convergence.completeness=0.5",
        "convergence={coherence:0.5,consistency:1}",
        "convergence=strict",
        "mode=core",
        "mode={kind:auto}",
        "provider.model=other",
        "roles.grader.model=other",
        "reasoning.deep={model:other}",
        "limits.max_llm_calls=50",
        "limits.max_seconds=10",
        "limits={max_cost:1.5,max_tokens:1000}",
        "ttl=small",
        "ttl={base:60}",
        "ttl.limit=10",
    ],
)
def test_a_row_may_set_models_thresholds_modes_and_lower_limits(override: str) -> None:
    check(override)


@pytest.mark.parametrize(
    "override",
    [
        *("provider.base_url=http://elsewhere.test", "+provider.base_url=http://elsewhere.test"),
        *("provider=custom", "provider={kind:custom}", "provider.kind=custom", "/provider=custom"),
        *("provider.adapter=this:d", "provider.api_key_env=HOME", "provider.headers.a=b"),
        *("provider.retry.attempts=10", "provider.prices={}", "provider.max_tokens=9"),
        *("provider.extra_body={a:1}", "provider.fallbacks=[groq]"),
        *("tools.functions.x=this:d", "tools.builtin.allowed_hosts=[elsewhere.test]"),
        *("tools.builtin.only=null", "tools.approval={}", "tools=mcp", "~tools.builtin"),
        *("convergence.criteria_file=/etc/passwd", "convergence.criteria.x=it"),
        *("provider.model='${oc.env:HOME}'", "prompts.set=terse", "prompts.dir=elsewhere"),
        *("mode.one_step=say", "execution.max_parallel=100", "memory.entries={a:b}"),
        *("batch.parallel=2", "sweep.parallel=2", "hydra.run.dir=x", "env=dev"),
        *("store.path=x", "task=x", "resume=x", "experiment=x", "limits=../../x"),
        *("interaction.kind=ask", "answer.schema=x", "ttl.depth={1:9}", "no.such=1"),
    ],
)
def test_a_row_may_set_nothing_else(override: str) -> None:
    with pytest.raises(ConfigError, match=r"a row may not set .*: a row may only set") as raised:
        check("mode=core", override)
    assert "command line" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("limits.max_cost=null", "limits.max_cost=null: .* beyond limits.max_cost=2"),
        ("limits.max_cost=2.5", "limits.max_cost=2.5: .* beyond limits.max_cost=2"),
        ("limits={max_llm_calls:51}", "limits.max_llm_calls=51: .* beyond limits.max_llm_calls=50"),
        ("limits=none", "beyond limits.max_"),
        ("ttl.base=61", "ttl.base=61: .* beyond ttl.limit=60"),
        ("ttl.limit=100", "ttl.limit=100: .* beyond ttl.limit=60"),
    ],
)
def test_a_row_may_only_lower_what_is_configured(override: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check(override)
