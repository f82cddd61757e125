"""Hydra's private parts that composing swaps or calls, each with what it is for."""

from __future__ import annotations

from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf

from aeon.config.compose import hydra_private
from aeon.config.compose.compose import compose
from aeon.config.compose.hydra_private import hydra_in, packaged_config_dir, read_packaged
from aeon.config.compose.literal import Composition
from aeon.domain.errors import ConfigError
from aeon.files.pinned import Pinned, pin


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The choices of options whose files Hydra was asked to merge."""
    asked: list[list[str]] = []
    usual = hydra.compose

    def counting(name: str, overrides: list[str], **options: bool) -> object:
        asked.append(overrides)
        return usual(name, overrides, **options)

    monkeypatch.setattr(hydra, "compose", counting)
    monkeypatch.setattr(hydra_private, "_merged", {})
    return asked


PACKAGED = sorted(packaged_config_dir().rglob("*.yaml"))


@pytest.mark.parametrize("path", PACKAGED, ids=[str(path.name) for path in PACKAGED])
def test_a_packaged_file_means_what_omegaconf_reads_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert repr(read_packaged(text)) == repr(OmegaConf.to_container(OmegaConf.create(text)))


@pytest.mark.parametrize(
    "overrides",
    [
        ("ttl=large", "ttl.base=7", "provider=groq"),
        ("limits={max_passes: 2}", "~limits.max_passes", "+inputs.a=b"),
        ("env=ci", "mode=core", "experiment=quick", "++convergence.criteria.x='y, z'"),
        ("tools=[builtin]", "ttl.limit=${ttl.base}"),
    ],
)
def test_values_are_applied_to_merged_options_as_hydra_applies_them(
    overrides: tuple[str, ...],
) -> None:
    made = compose(Composition(overrides=overrides)).values
    with hydra_in(None):
        expected = hydra.compose("config", list(overrides))
    assert OmegaConf.to_container(made) == OmegaConf.to_container(expected)


def test_apply_overrides_to_config_merges_the_files_of_a_choice_of_options_once(
    merged: list[list[str]],
) -> None:
    for base in (7, 8, 9):
        made = compose(Composition(overrides=("ttl=large", f"ttl.base={base}"))).values
        assert made.ttl.base == base
    assert merged == [["ttl=large"]]


def test_what_is_composed_belongs_to_whoever_asked(merged: list[list[str]]) -> None:
    compose(Composition()).values.ttl.base = 99
    assert compose(Composition()).values.ttl.base != 99


@pytest.mark.slow
def test_a_folder_of_ones_own_is_read_each_time(tmp_path: Path, merged: list[list[str]]) -> None:
    (tmp_path / "limits").mkdir()
    file = tmp_path / "limits" / "mine.yaml"
    for passes in (2, 3):
        file.write_text(f"max_passes: {passes}\n", encoding="utf-8")
        made = compose(Composition(overrides=("limits=mine",), config_dir=tmp_path)).values
        assert made.limits.max_passes == passes


def test_the_source_of_files_reads_a_pinned_folder_as_it_was_trusted(tmp_path: Path) -> None:
    (tmp_path / "limits").mkdir()
    file = tmp_path / "limits" / "mine.yaml"
    file.write_text("max_passes: 2\n", encoding="utf-8")
    pin(Pinned(tmp_path, {"limits/mine.yaml": file.read_bytes()}, frozenset({tmp_path})))
    file.write_text("max_passes: 999\n", encoding="utf-8")
    made = compose(Composition(overrides=("limits=mine",), config_dir=tmp_path)).values
    assert made.limits.max_passes == 2


def test_the_source_of_files_names_the_line_of_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / "mine.yaml").write_text("a: 1\nb: [2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.yaml:\d"):
        compose(Composition(overrides=("limits=mine",), config_dir=tmp_path))


def test_what_an_editor_leaves_beside_a_file_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / "mine.yaml").write_text("max_passes: 2\n", encoding="utf-8")
    (tmp_path / ".#mine.yaml").symlink_to("nobody@host.1")
    made = compose(Composition(overrides=("provider=simulated",), config_dir=tmp_path)).values
    assert made.provider.kind == "simulated"
