"""Which files and overrides set the value of a key, in the order in which they are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import Composition
from aeon.config.compose.sources import Source, find_sources
from aeon.domain.errors import ConfigError

CONF = packaged_config_dir()


def sources_of(key: str, *overrides: str, config_dir: Path | None = None) -> list[tuple[str, str]]:
    of = Composition(overrides=overrides, config_dir=config_dir)
    return [(source.place, source.value) for source in find_sources(of, key)[1]]


def line_of(path: Path, key: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.strip().startswith(f"{key}:"))


def test_a_packaged_value_stands_in_its_file_and_line() -> None:
    path = CONF / "ttl" / "default.yaml"
    assert sources_of("ttl.base") == [(f"{path}:{line_of(path, 'base')}", "10")]


def test_later_files_and_overrides_take_the_place_of_earlier_ones() -> None:
    found = sources_of(
        "convergence.completeness", "experiment=quick", "convergence.completeness=0.9"
    )
    names = [Path(place.partition(":")[0]).name for place, _ in found[:-1]]
    assert names == ["default.yaml", "lenient.yaml"]
    assert found[-1] == ("convergence.completeness=0.9", "0.9")


def test_a_file_that_an_override_chose_names_it() -> None:
    value, sources = find_sources(Composition(overrides=("provider=groq",)), "provider.kind")
    assert {source.chosen_by for source in sources} == {"provider=groq"}
    assert value == sources[-1].value


def test_a_value_within_a_mapping_that_an_override_gives_counts() -> None:
    found = sources_of("convergence.checks.sum.value", "++convergence.checks.sum={value: 15}")
    assert found == [("++convergence.checks.sum={value: 15}", "15")]


def test_files_of_ones_own_and_of_the_whole_configuration_count(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    (folder / "experiment").mkdir(parents=True)
    path = folder / "experiment" / "mine.yaml"
    path.write_text("# @package _global_\nttl:\n  base: 33\n", encoding="utf-8")
    found = sources_of("ttl.base", "experiment=mine", config_dir=folder)
    assert found[-1] == (f"{path}:3", "33")


def test_an_interpolation_is_shown_as_written_and_in_force_as_it_is() -> None:
    of = Composition(overrides=("ttl.base=${limits.max_passes}", "limits.max_passes=7"))
    value, sources = find_sources(of, "ttl.base")
    assert value == "7"
    assert sources[-1] == Source("ttl.base=${limits.max_passes}", '"${limits.max_passes}"')


def test_a_key_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="no such key"):
        find_sources(Composition(), "ttl.bass")


def test_a_file_of_a_searched_folder_is_found(tmp_path: Path) -> None:
    path = tmp_path / "convergence" / "mine.yaml"
    path.parent.mkdir()
    path.write_text("defaults: [default]\ncompleteness: 0.5\n")
    overrides = (f"hydra.searchpath=[file://{tmp_path}]", "convergence=mine")
    assert sources_of("convergence.completeness", *overrides)[-1] == (f"{path}:2", "0.5")
