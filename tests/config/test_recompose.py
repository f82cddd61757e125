"""Going on with a recorded run composes once."""

from __future__ import annotations

from pathlib import Path

import hydra
import pytest

from aeon.config.compose import hydra_private
from aeon.config.compose.literal import Composition
from aeon.config.load import compose, compose_settings, composition
from aeon.config.origin import Origin, ProviderOrigin
from aeon.config.recompose import make_portable, recompose


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the primary files that Hydra was asked to compose."""
    asked: list[str] = []
    usual = hydra.compose

    def counting(config_name: str, *arguments: object, **options: object) -> object:
        asked.append(config_name)
        return usual(config_name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hydra, "compose", counting)
    monkeypatch.setattr(hydra_private, "_merged", {})
    return asked


def origin(*overrides: str, **more: object) -> Origin:
    provider = ProviderOrigin(kind="simulated")
    values = {
        "run_id": "r",
        "overrides": overrides,
        "task": "t",
        "provider": provider,
        "synthetic": True,
    }
    elsewhere = {
        "store_mode": "record",
        "working_directory": "/elsewhere",
        "started": "2026-11-22T10:00:00+00:00",
    }
    return Origin.model_validate({**values, **elsewhere, **more})


def test_settings_are_composed_once(composed: list[str]) -> None:
    compose(["ttl=large"])
    assert composed == ["config"]


def test_a_recorded_run_is_composed_once_with_todays_overrides_after_its_own(
    composed: list[str],
) -> None:
    again = recompose(
        origin("ttl.base=7", "ttl.limit=9"), Composition(overrides=("ttl.base=8",)), "resume=DIR"
    )
    settings = compose_settings(again)
    assert (settings.ttl.base, settings.ttl.limit) == (8, 9)
    assert composed == ["config"]


def test_recorded_paths_are_absolute_but_for_those_that_are_set_today(tmp_path: Path) -> None:
    paths = {
        "convergence.criteria_file": "/elsewhere/criteria.yaml",
        "memory.path": "/elsewhere/memory.sqlite",
    }
    recorded = origin("convergence.criteria_file=criteria.yaml", paths=paths)
    again = recompose(recorded, Composition(overrides=("memory=in_memory",)), "resume=DIR")
    recorded_first = (
        "convergence.criteria_file=criteria.yaml",
        "convergence.criteria_file='/elsewhere/criteria.yaml'",
    )
    assert again.overrides == (*recorded_first, "memory=in_memory")


def test_nothing_is_composed_to_find_out_what_is_to_be_composed(composed: list[str]) -> None:
    composition(["ttl=large", "provider.model=m"])
    assert composed == []


def test_what_holds_a_secret_or_an_address_stays_behind_and_is_named_if_a_replay_would_miss_it() -> (
    None
):
    kept = ["mode=core", "progress=none", "~limits.max_cost"]
    missed = [
        "convergence.criteria.a='it has sk-plain'",
        "provider={kind: openai, base_url: http://10.0.0.7/v1}",
    ]
    not_missed = [
        "provider.base_url=http://10.0.0.7/v1",
        "provider.fallbacks=[{name: a, base_url: http://a/v1}]",
    ]
    made = make_portable([*kept, *missed, *not_missed], lambda text: "sk-" in text)
    assert made == (kept, ["convergence.criteria.a", "provider"])
