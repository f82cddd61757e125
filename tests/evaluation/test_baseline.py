"""An earlier measurement as the line that a later one may not fall below."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aeon.app.tools import build
from aeon.batch.dataset import Common, Dataset, open_dataset
from aeon.checks.selection import CheckMaker
from aeon.config.settings import BatchColumns
from aeon.domain.checks import (
    CheckSettings,
    CommandCheck,
    ComparingCheck,
    NamedCheck,
    OuterCheck,
    ToolCheck,
)
from aeon.domain.errors import ConfigError
from aeon.evaluation.baseline import (
    bless,
    compare_with_baseline,
    digest_checks,
    read_baseline,
    require_replaceable,
)
from aeon.evaluation.models import Measurement
from aeon.evaluation.table import measure
from aeon.tools.settings import ToolSettings
from tests.evaluation.test_table import ARMS, dataset, line, measured, repeated


def earlier(folder: Path, passes: list[bool]) -> Measurement:
    return measured(folder, passes, passes)


def test_an_arm_is_worse_once_the_one_sided_test_says_so(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True] * 10)
    four_worse = compare_with_baseline(
        earlier(tmp_path, [False] * 4 + [True] * 6), before, "b.json"
    )
    five_worse = compare_with_baseline(
        earlier(tmp_path, [False] * 5 + [True] * 5), before, "b.json"
    )
    assert (four_worse.p, four_worse.is_worse) == (1 / 16, False)
    assert (five_worse.p, five_worse.is_worse) == (1 / 32, True)
    assert five_worse.sentence.startswith("full is worse than the baseline b.json: of 10 rows")


def test_improvements_stand_against_what_got_worse(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True] * 5 + [False] * 5)
    now = earlier(tmp_path, [False] * 5 + [True] * 5)
    compared = compare_with_baseline(now, before, "b.json")
    assert (compared.improved, compared.degraded, compared.is_worse) == (5, 5, False)


def test_an_arm_whose_pass_rate_rose_is_not_worse_although_more_rows_degraded(
    tmp_path: Path,
) -> None:
    before = [1] * 10 + [0, 0]
    now = [0] * 10 + [10, 10]
    earlier_one = repeated(tmp_path, {"single": before, "full": before}, 10)
    later = repeated(tmp_path, {"single": now, "full": now}, 10)
    compared = compare_with_baseline(later, earlier_one, "b.json")
    assert (compared.improved, compared.degraded, compared.is_worse) == (2, 10, False)
    assert compared.p < 0.05
    assert compared.sentence.startswith("full is not worse")
    assert "p = 0.019. No fewer answers passed." in compared.sentence


def test_rows_that_ask_for_something_else_now_are_not_compared(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True] * 10)
    rows = [row.model_copy(update={"asked": "else"}) for row in before.rows[:4]]
    changed = before.model_copy(update={"rows": (*rows, *before.rows[4:])})
    assert compare_with_baseline(changed, before, "b.json").rows == 6


def without_ids(measurement: Measurement, asked: str) -> Measurement:
    """A measurement of rows that have no ids of their own, but are called by their numbers; each
    letter stands for what a row asks for."""
    rows = zip(measurement.rows, asked, strict=True)
    named = [
        row.model_copy(update={"id": str(number), "asked": letter})
        for number, (row, letter) in enumerate(rows, start=1)
    ]
    return measurement.model_copy(update={"rows": tuple(named)})


@pytest.mark.parametrize("asked", ["Xabcdefghij", "abXcdefghij", "jihgfedcbXa"])
def test_rows_without_ids_are_known_by_what_they_ask_for(tmp_path: Path, asked: str) -> None:
    before = without_ids(earlier(tmp_path, [True] * 10), "abcdefghij")
    now = without_ids(earlier(tmp_path, [False] * 11), asked)
    compared = compare_with_baseline(now, before, "b.json")
    assert (compared.rows, compared.degraded, compared.is_worse) == (10, 10, True)


def test_equal_rows_without_ids_are_compared_in_their_order(tmp_path: Path) -> None:
    before = without_ids(earlier(tmp_path, [True, False, True]), "aab")
    now = without_ids(earlier(tmp_path, [True, True, True, False]), "Xbaa")
    compared = compare_with_baseline(now, before, "b.json")
    assert (compared.rows, compared.improved, compared.degraded) == (3, 0, 0)


def test_equal_rows_with_ids_are_compared_by_these(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True, False])
    same = [row.model_copy(update={"asked": "a"}) for row in before.rows]
    before = before.model_copy(update={"rows": tuple(same)})
    now = before.model_copy(update={"rows": (same[1],)})
    compared = compare_with_baseline(now, before, "b.json")
    assert (compared.rows, compared.degraded) == (1, 0)


def test_few_rows_in_common_are_named(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True] * 10)
    words = "Only {} of the 10 rows of the baseline are among the present ones."
    few = compare_with_baseline(earlier(tmp_path, [True] * 4), before, "b.json")
    assert words.format(4) in few.sentence
    half = compare_with_baseline(earlier(tmp_path, [True] * 5), before, "b.json")
    assert "Only" not in half.sentence


def test_a_baseline_of_rows_without_ids_is_read_although_one_was_put_before_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "base.json"
    bless(measured_without_ids(tmp_path, "01"), path)
    given = dataset_without_ids(tmp_path, "901")
    assert len(read_baseline(path, "full", given, 1, "").rows) == 2


def dataset_without_ids(folder: Path, numbers: str) -> Dataset:
    path = folder / "tasks.jsonl"
    path.write_text("".join(f'{{"task": "say {n}", "target": {n}}}\n' for n in numbers))
    return open_dataset(path, BatchColumns(), Common())


def measured_without_ids(folder: Path, numbers: str) -> Measurement:
    lines = [
        {**line(arm.name, 1, 0, passes=False), "id": f"{arm.name}/1/{place}"}
        for arm in ARMS
        for place in range(1, len(numbers) + 1)
    ]
    return measure(dataset_without_ids(folder, numbers), ARMS, 1, lines)


def test_a_baseline_that_was_blessed_is_read_again(tmp_path: Path) -> None:
    before = earlier(tmp_path, [True, False])
    path = tmp_path / "new" / "base.json"
    bless(before, path)
    assert read_baseline(path, "full", dataset(tmp_path, 2), 1, "") == before


@pytest.mark.parametrize(
    ("arm", "repeat", "rows", "message"),
    [
        ("other", 1, 2, "it has no arm other, but single, full"),
        ("full", 2, 2, "it has repeat=1, this measurement repeat=2"),
        ("full", 1, 0, "it has none of the present rows of this dataset"),
    ],
)
def test_a_baseline_of_something_else_is_refused(
    tmp_path: Path, arm: str, repeat: int, rows: int, message: str
) -> None:
    path = tmp_path / "base.json"
    bless(earlier(tmp_path, [True, False]), path)
    given = dataset(tmp_path, 2)
    if not rows:
        given.path.write_text('{"id": "z", "task": "t", "target": "u"}\n')
        given = type(given)(given.path, given.columns, given.common, 1, _state(given.path))
    with pytest.raises(ConfigError, match=message):
        read_baseline(path, arm, given, repeat, "")


def test_a_baseline_that_is_not_all_measured_is_refused(tmp_path: Path) -> None:
    """A row that was not measured could never get worse."""
    lines = [line(arm.name, 1, row, passes=True) for arm in ARMS for row in (0, 1)]
    path = tmp_path / "base.json"
    bless(measure(dataset(tmp_path, 2), ARMS, 1, lines[:-1]), path)
    read_baseline(path, "single", dataset(tmp_path, 2), 1, "")
    with pytest.raises(ConfigError, match="1 of the 2 answers of the arm full are not measured"):
        read_baseline(path, "full", dataset(tmp_path, 2), 1, "")


def test_a_baseline_that_other_checks_decided_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    before = earlier(tmp_path, [True, False])
    bless(before.model_copy(update={"decided_by": {"full": "one"}}), path)
    read_baseline(path, "full", dataset(tmp_path, 2), 1, "one")
    with pytest.raises(ConfigError, match="pass has changed since: its checks, or the judge"):
        read_baseline(path, "full", dataset(tmp_path, 2), 1, "other")


def test_an_older_baseline_is_read_and_said_not_to_tell_by_which_checks(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    before = earlier(tmp_path, [True, False])
    bless(before, path)
    read = read_baseline(path, "full", dataset(tmp_path, 2), 1, "any")
    words = (
        "The baseline does not tell by which checks it was graded: bless=true writes one that does."
    )
    assert compare_with_baseline(before, read, "b.json").sentence.endswith(words)
    told = before.model_copy(update={"decided_by": {"full": "one"}})
    assert words not in compare_with_baseline(before, told, "b.json").sentence


def digest(configured: Mapping[str, CheckSettings], **of_judge: float) -> str:
    return digest_checks(CheckMaker(configured).prepare({}), of_judge)


def test_what_decides_are_the_required_checks_with_their_code(tmp_path: Path) -> None:
    test = tmp_path / "test.py"
    test.write_text("assert True")
    word = ComparingCheck(type="contains", value="tea")
    other = ComparingCheck(type="contains", value="milk")
    command = CommandCheck(type="command", value=("sh", "test.py"), files=(test,))
    (moved := tmp_path / "moved").mkdir()
    there = moved / "test.py"
    there.write_text("assert True")
    same: list[dict[str, CheckSettings]] = [
        {"it": word, "run": command},
        {"it": word.model_copy(update={"weight": 2}), "run": command},
        {"run": command.model_copy(update={"files": (there,)}), "it": word},
        {"it": word, "run": command, "more": other.model_copy(update={"required": False})},
    ]
    first = digest(same[0])
    assert {digest(one) for one in same} == {first}
    others: list[dict[str, CheckSettings]] = [{}, {"it": word}, {"it": other, "run": command}]
    digests = [first, *map(digest, others), digest(same[0], coherence=0.9)]
    test.write_text("assert 1 == 1")
    digests.append(digest(same[0]))
    assert len(set(digests)) == 6


def test_what_decides_are_the_checks_of_a_plan_files_steps_too() -> None:
    word = ComparingCheck(type="contains", value="tea")
    other = ComparingCheck(type="contains", value="milk")
    maker = CheckMaker({"it": word})
    by_step: list[dict[str, dict[str, OuterCheck]]] = [
        {},
        {"draft": {"it": NamedCheck()}},
        {"draft": {"more": word}},
        {"draft": {"more": other}},
        {"final": {"more": other}},
    ]
    assert len({digest_checks(maker.prepare(one)) for one in by_step}) == 5
    optional = {"draft": {"more": other.model_copy(update={"required": False})}}
    assert digest_checks(maker.prepare(optional)) == digest({"it": word})


def test_what_decides_is_the_code_of_a_tool_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    module = tmp_path / "own_tool_of_a_check.py"
    module.write_text(
        "def look(answer: str) -> bool:\n    'Whether it is good.'\n    return True\n"
    )
    settings = ToolSettings(functions={"look": "own_tool_of_a_check:look"})
    check = ToolCheck(type="tool", value="look")

    def digest_now() -> str:
        maker = CheckMaker({"it": check}, build(settings, {}))
        return digest_checks(maker.prepare({}))

    before = digest_now()
    assert digest_now() == before
    module.write_text(module.read_text() + "# mended\n")
    assert digest_now() != before


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def test_a_file_that_is_no_baseline_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    with pytest.raises(ConfigError, match="there is no such file") as missing:
        read_baseline(path, "full", dataset(tmp_path, 2), 1, "")
    assert "bless=true" in missing.value.hint
    path.write_text('{"format": "aeon.eval/0"}')
    with pytest.raises(ConfigError, match=r"not an eval\.json of this version") as old:
        read_baseline(path, "full", dataset(tmp_path, 2), 1, "")
    assert "bless=true" in old.value.hint
    path.write_text("{}")
    with pytest.raises(ConfigError, match=r"this is not an eval\.json") as other:
        read_baseline(path, "full", dataset(tmp_path, 2), 1, "")
    assert "with bless=true a new file" in other.value.hint


def test_a_baseline_replaces_nothing_but_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    require_replaceable(path)
    path.write_text('{"format": "aeon.eval/0"}')
    require_replaceable(path)
    for text in ('{"format": "aeon.eval.samples/1"}', '{"id": "a"}\n{"id": "b"}\n', "notes", "[]"):
        path.write_text(text)
        with pytest.raises(ConfigError, match=r"this is not an eval\.json"):
            require_replaceable(path)
    with pytest.raises(ConfigError, match="Is a directory"):
        require_replaceable(tmp_path)
