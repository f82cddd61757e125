"""Which overrides go into a cassette."""

from __future__ import annotations

from aeon.config.recorded import make_portable


def test_what_holds_a_secret_or_an_address_stays_behind_and_is_named_if_a_replay_would_miss_it() -> None:
    kept = ["mode=core", "progress=none", "~limits.max_cost"]
    missed = ["convergence.criteria.a='it has sk-plain'", "provider={kind: openai, base_url: http://10.0.0.7/v1}"]
    not_missed = ["provider.base_url=http://10.0.0.7/v1", "provider.fallbacks=[{name: a, base_url: http://a/v1}]"]
    made = make_portable([*kept, *missed, *not_missed], lambda text: "sk-" in text)
    assert made == (tuple(kept), ("convergence.criteria.a", "provider"))
