"""The arms of a measurement, and each row of its dataset once for each arm and repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from aeon.app.aeon import Aeon
from aeon.batch.dataset import Arm, Dataset, Row
from aeon.batch.identity import identify
from aeon.batch.results import read_places
from aeon.batch.run import RowRunner
from aeon.config.compose.literal import key_of, quote_override
from aeon.domain.errors import ConfigError
from aeon.evaluation.grading import is_done
from aeon.evaluation.samples import ArmSamples

DEFAULT_ARMS: Mapping[str, Sequence[str]] = {
    "single": ("mode=single",),
    "adaptive": ("mode=adaptive",),
}
"""The arms measured where none are named."""
_NOT_OF_ARMS = {
    "store": "arms share no answers, so that each has its full cost",
    "batch": "it applies to the rows of all arms",
    "arms": "an arm has no arms",
    "sweep": "a measurement is not a sweep",
    "resume": "a measurement resumes by itself, from its folder",
    "trust": "it is given once, for all arms",
    "task": "the rows of the dataset give it",
    "task_file": "the rows of the dataset give it",
}


class AnswerName(NamedTuple):
    """The name of one answer in the results: its arm, its number from 1, and its row of the
    dataset."""

    arm: str
    repeat: int
    row: str

    @property
    def id(self) -> str:
        """The id of its row among the rows to run."""
        return f"{self.arm}/{self.repeat}/{self.row}"


@dataclass(frozen=True, slots=True)
class ArmRows(Dataset):
    """Each row of a dataset for each arm and repeat, grouped by row, so that a stopped measurement
    has compared the rows that it has run. `samples` are those of arms that depart from their
    settings."""

    arms: tuple[Arm, ...]
    repeat: int
    samples: Mapping[str, ArmSamples]
    shard: tuple[int, int]

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        arms: Sequence[Arm],
        repeat: int,
        *,
        samples: Mapping[str, ArmSamples] | None = None,
        shard: tuple[int, int] = (1, 1),
    ) -> ArmRows:
        """Return the rows of an open dataset, or of a shard of it."""
        count = dataset.count * len(arms) * repeat
        given = dataset.path, dataset.columns, dataset.common, count, dataset.state
        return cls(*given, tuple(arms), repeat, samples or {}, shard)

    def rows(self) -> Iterator[Row]:
        """See `Dataset`. A row has the same number in every shard."""
        for row in list_shard(Dataset.rows(self), self.shard):
            for repeat in range(1, self.repeat + 1):
                answer = (row.number - 1) * self.repeat + repeat - 1
                for place, arm in enumerate(self.arms, start=1):
                    if arm.name in self.samples:
                        arm = self.samples[arm.name].configure(arm, answer)
                    name = AnswerName(arm.name, repeat, row.id).id
                    yield replace(row, number=answer * len(self.arms) + place, id=name, arm=arm)


def require_answers_of(arms: Sequence[Arm], repeat: int, results: Path) -> None:
    """Raise ConfigError for results with finished answers of another arm, or of more repeats."""
    names = {arm.name for arm in arms}
    given = {(name, str(number)) for name in names for number in range(1, repeat + 1)}
    for _, line in read_places(results) if results.exists() else ():
        arm, *rest = line["id"].split("/", 2)
        # An id without these parts is of another command, which is reported later.
        if len(rest) == 2 and (arm, rest[0]) not in given and is_done(line):
            problem = f"more answers to a row than repeat={repeat}"
            if arm not in names:
                problem = f"answers of the arm {arm}, which is not given now"
            raise ConfigError(
                f"out={results.parent}: it has {problem}",
                hint="Give what it was begun with, or name another folder with out=.",
            )


def refuse_settings_of_arms(dataset: Dataset, arms: Sequence[Arm]) -> None:
    """Raise ConfigError for a row that sets what an arm sets: its value would win, and the row would
    measure something else than the arm."""
    of_arms = {key_of(text): arm.name for arm in arms for text in arm.overrides}
    for row in dataset.rows():
        for key, of_arm in product(map(key_of, row.overrides), of_arms):
            if _are_of_one_group(key, of_arm):
                raise ConfigError(
                    f"dataset={dataset.path}: line {row.line}: overrides: the row sets {key}, "
                    f"and the arm {of_arms[of_arm]} sets {of_arm}",
                    hint="Of the two the row's would be taken: leave it out of one of them.",
                )


def _are_of_one_group(key: str, other: str) -> bool:
    """Check whether two keys are equal, or one is a group that the other stands in."""
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def list_shard(rows: Iterable[Row], shard: tuple[int, int]) -> Iterator[Row]:
    """Return every n-th row of a dataset from the i-th on, for a shard (i, n)."""
    first, every = shard
    return (row for row in rows if (row.number - first) % every == 0)


def list_arms(given: Mapping[str, Sequence[str]]) -> list[Arm]:
    """Return the arms of a configuration. Raises ConfigError for settings that an arm may not
    have."""
    arms = []
    for name, texts in (given or DEFAULT_ARMS).items():
        overrides = tuple(map(quote_override, texts))
        _check(name, overrides)
        arms.append(Arm(name, overrides))
    return arms


@contextmanager
def name_arm(arm: Arm) -> Iterator[None]:
    """Name the arm in configuration errors raised by the block."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"arms.{arm.name}: {error.message}", hint=error.hint) from None


def open_arms(arms: Sequence[Arm], runner: RowRunner) -> list[tuple[Arm, Aeon]]:
    """Return the arms, each with the Aeon that runs it. Raises ConfigError for one that cannot be
    run."""
    opened = []
    for arm in arms:
        with name_arm(arm):
            aeon = runner.open_arm(arm.overrides)
        opened.append((replace(arm, configuration=identify(aeon)), aeon))
    return opened


def _check(name: str, overrides: Sequence[str]) -> None:
    if "/" in name:  # it separates the parts of an answer's id
        raise ConfigError(f"arms.{name}: the name of an arm may not contain /")
    for text in overrides:
        key = key_of(text)
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(
                f"arms.{name}: {text}: this is not an override (key=value or group=option)",
                hint="An arm is a list of quoted texts: "
                '\'arms.eight=["mode=single","execution.samples=8"]\'',
            )
        reason = _NOT_OF_ARMS.get(key.partition(".")[0])
        if reason is not None:
            raise ConfigError(f"arms.{name}: an arm may not set {key}: {reason}")
