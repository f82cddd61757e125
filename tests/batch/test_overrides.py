"""A dataset may be a stranger's: what its rows may configure."""

from __future__ import annotations

import pytest

from aeon.batch.overrides import check_overrides
from aeon.domain.errors import ConfigError


@pytest.mark.parametrize(
    "override",
    [
        "convergence.completeness=0.5",
        "ttl=small",
        "ttl={base:9}",
        "mode=core",
        "provider.model=other",
        "provider.temperature=0.2",
        "limits.max_llm_calls=5",
        "prompts.set=terse",
    ],
)
def test_a_row_may_set_models_thresholds_limits_and_modes(override: str) -> None:
    check_overrides((override,), None)


@pytest.mark.parametrize(
    "override",
    [
        *("provider.base_url=http://elsewhere.test", "+provider.base_url=http://elsewhere.test"),
        *(
            "provider=openai",
            "provider=custom",
            "provider={kind:custom}",
            "provider.kind=custom",
            "/provider=custom",
        ),
        *(
            "provider.adapter=this:d",
            "tools.functions.x=this:d",
            "provider.api_key_env=HOME",
            "provider.headers.a=b",
        ),
        *(
            "convergence.criteria_file=/etc/passwd",
            "convergence.criteria.x='${oc.env:HOME}'",
            "prompts.dir=elsewhere",
        ),
        *(
            "batch.parallel=2",
            "sweep.parallel=2",
            "hydra.run.dir=x",
            "store.path=x",
            "task=x",
            "resume=x",
        ),
    ],
)
def test_a_row_may_not_send_read_or_start_anything_nor_set_what_holds_for_all(
    override: str,
) -> None:
    with pytest.raises(ConfigError, match="a row may not set") as raised:
        check_overrides(("mode=core", override), None)
    assert "command line" in (raised.value.hint or "")
