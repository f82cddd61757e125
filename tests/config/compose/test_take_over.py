"""Recorded settings with today's overrides after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hydra
import pytest

from aeon.config.compose import hydra_private
from aeon.config.compose.literal import Composition, RecordedSettings
from aeon.config.compose.recorded import record
from aeon.config.load import compose, compose_settings, composition
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the primary files that Hydra was asked to compose."""
    asked: list[str] = []
    usual = hydra.compose

    def count(config_name: str, *arguments: object, **options: object) -> object:
        asked.append(config_name)
        return usual(config_name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(hydra, "compose", count)
    monkeypatch.setattr(hydra_private, "_merged", {})
    return asked


def taken_over(
    before: Sequence[str],
    today: Sequence[str],
    kind: str = "openai",
    config_dir: Path | None = None,
    **more: Any,
) -> Settings:
    settings, missing = record(compose(before))
    name = settings["provider"].get("name")
    recorded = RecordedSettings(
        named="resume=DIR", settings=settings, missing=missing, provider=(kind, name)
    )
    of = composition(today, config_dir)
    return compose_settings(replace(of, recorded=replace(recorded, **more)))


def test_settings_are_composed_once(composed: list[str]) -> None:
    compose(["ttl.base=7"])
    assert composed == ["config"]


def test_nothing_is_composed_to_find_out_what_is_to_be_composed(composed: list[str]) -> None:
    composition(["ttl=large", "provider.model=m"])
    assert composed == []


def test_a_value_of_today_counts_for_its_key() -> None:
    settings = taken_over(["ttl.base=7", "ttl.limit=9"], ["ttl.base=8"])
    assert (settings.ttl.base, settings.ttl.limit) == (8, 9)


def test_a_mapping_of_today_counts_for_the_keys_in_it() -> None:
    settings = taken_over(["ttl.base=7", "ttl.limit=9"], ["ttl={base: 8}"])
    assert (settings.ttl.base, settings.ttl.limit) == (8, 9)


def test_an_option_of_today_counts_for_its_whole_group_and_for_no_other() -> None:
    settings = taken_over(["ttl.base=7", "limits.max_passes=3"], ["ttl=large"])
    assert settings.ttl == compose(["ttl=large"]).ttl
    assert settings.limits.max_passes == 3
    assert taken_over(["ttl=large"], ["ttl=default"]).ttl == compose().ttl


def test_a_value_of_today_counts_before_an_option_of_today() -> None:
    settings = taken_over(["ttl.base=7"], ["ttl=large", "ttl.base=8"])
    assert settings.ttl == compose(["ttl=large", "ttl.base=8"]).ttl


def test_an_experiment_of_today_counts_for_what_it_changes() -> None:
    settings = taken_over(["ttl.base=7", "refinement.max_nesting_depth=2"], ["experiment=quick"])
    assert settings.convergence == compose(["experiment=quick"]).convergence
    assert settings.refinement.max_nesting_depth == 2


def test_an_experiment_that_sets_a_key_of_the_provider_chooses_no_other(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        "# @package _global_\nprovider: {temperature: 0.5}\n"
    )
    provider: Any = taken_over(
        ["provider=groq", "provider.effort=low"], ["experiment=mine"], config_dir=tmp_path
    ).provider
    assert (provider.name, provider.effort, provider.temperature) == ("groq", "low", 0.5)


def test_a_criterion_of_today_stands_beside_the_recorded_ones() -> None:
    settings = taken_over(["convergence.criteria.a=one"], ["convergence.criteria.b=two"])
    assert settings.convergence.criteria == {"a": "one", "b": "two"}


def test_a_file_of_today_takes_the_place_of_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "criteria.yaml").write_text("b: two\n")
    file = f"convergence.criteria_file={tmp_path}/criteria.yaml"
    settings = taken_over(["convergence.criteria.a=one"], [file, "convergence.criteria.c=three"])
    assert settings.convergence.criteria == {"b": "two", "c": "three"}


def test_another_class_of_today_is_another_model() -> None:
    own = ["provider=custom", "provider.adapter=mine:One"]
    assert taken_over(own, [], "custom").provider.model == "mine:One"
    other = taken_over(own, ["provider.adapter=mine:Other"], "custom")
    assert other.provider.model == "mine:Other"


def test_what_looks_like_an_interpolation_in_a_recorded_text_is_text() -> None:
    texts = ["convergence.criteria.a=${ttl.base}", r"convergence.criteria.b=\${ttl.base}"]
    settings = taken_over(texts, [])
    assert settings.convergence.criteria == {"a": "${ttl.base}", "b": r"\${ttl.base}"}


def test_the_recorded_provider_keeps_its_settings_and_another_gets_none_of_them() -> None:
    before = ["provider=groq", "provider.base_url=http://elsewhere/v1", "provider.effort=low"]
    for today in ([], ["provider=groq"], ["provider.temperature=0"]):
        provider: Any = taken_over(before, today).provider
        assert (provider.base_url, provider.effort) == ("http://elsewhere/v1", "low")
    for today in (["provider=openai"], ["provider=auto"]):
        provider = taken_over(before, today).provider
        assert (provider.base_url, provider.effort) == (None, None)


def test_auto_that_was_settled_is_named_today() -> None:
    provider: Any = taken_over(["provider.effort=low"], ["provider=openai"]).provider
    assert (provider.kind, provider.effort) == ("openai", "low")


def test_what_was_left_out_is_to_be_given_again() -> None:
    with pytest.raises(ConfigError, match=r"resume=DIR: provider\.effort held a secret") as caught:
        taken_over([], [], missing=("provider.effort",))
    assert "provider.effort=..." in caught.value.hint
    settings = taken_over([], ["provider.effort=low"], missing=("provider.effort",))
    assert getattr(settings.provider, "effort", None) == "low"


def test_a_composition_without_a_recording_is_as_it_was() -> None:
    assert compose_settings(Composition()) == compose()
