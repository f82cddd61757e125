"""Two runs held against each other."""

import shutil
from pathlib import Path

import pytest

from aeon import Aeon
from aeon.report.compare.divergence import Divergence, compare_texts, find_divergence
from aeon.report.compare.rows import compare_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in {"a": 1, "b": 2, "again": 1}.items():
        with Aeon.from_config(["provider=simulated", f"provider.seed={seed}"]) as aeon:
            aeon.run("plan a move", directory=folder / name)
    return folder


def divergence_of(*directories: Path) -> Divergence:
    found = find_divergence(compare_runs(directories))
    assert found is not None
    return found


def test_two_runs_of_the_same_do_not_part(runs: Path) -> None:
    found = divergence_of(runs / "a", runs / "again")
    assert found.number is None
    assert found.fields == ()
    assert all(found.asked.values())
    assert not any(found.differences.values())


def test_the_first_event_that_differs_is_told_with_its_fields(runs: Path) -> None:
    found = divergence_of(runs / "a", runs / "b")
    assert found.number == 6
    assert found.places == ("profile_inferred", "profile_inferred")
    assert ("profile.reasoning_depth", "3", "4") in found.fields
    assert [name for name, same in found.asked.items() if not same] == ["configuration"]
    plan = found.differences["The plan that execution started with"]
    assert any(line.mark == "-" and "examples" in line.parts[0][1] for line in plan)


def test_a_run_that_was_cut_off_parts_where_its_journal_ends(runs: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(runs / "a", cut)
    (cut / "result.json").unlink()
    (cut / "history.json").unlink()
    lines = (cut / "events.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "events.jsonl").write_bytes(b"".join(lines[:40]))
    found = divergence_of(runs / "a", cut)
    assert (found.number, found.counts) == (41, (len(lines), 40))
    assert found.places[1].startswith("no event")
    assert found.differences == {"The plan that execution started with": ()}


def test_three_runs_do_not_part(runs: Path) -> None:
    assert find_divergence(compare_runs([runs])) is None


def test_words_that_changed_are_marked() -> None:
    removed, added = compare_texts(["the old house"], ["the new house"])
    assert removed.parts == ((False, "the "), (True, "old"), (False, " house"))
    assert added.parts == ((False, "the "), (True, "new"), (False, " house"))


def test_far_lines_are_left_out() -> None:
    first = [str(number) for number in range(100)]
    second = ["x" if number in (10, 90) else str(number) for number in range(100)]
    found = compare_texts(first, second)
    assert [line.mark for line in found].count("@") == 1
    assert len(found) < 20
    assert compare_texts(first, list(first)) == ()
