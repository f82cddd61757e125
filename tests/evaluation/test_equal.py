"""`equal=tokens`: the numbers of samples by which all arms spend the same."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aeon.batch.dataset import Arm
from aeon.config.compose.literal import Composition
from aeon.config.load import compose_settings
from aeon.domain.errors import ConfigError
from aeon.evaluation.equal import WITHIN, Equalizer, describe_equality, forecast_equality
from aeon.evaluation.models import Measurement
from aeon.evaluation.samples import ArmSamples
from aeon.execution.settings import ExecutionSettings
from tests.evaluation.test_table import measured

ROWS = 40


def samples(total: int, answers: int = ROWS) -> ArmSamples:
    return ArmSamples(total, answers, ExecutionSettings())


def spent(folder: Path, single: int, full: int) -> Measurement:
    """A measurement in which the arms have spent so many tokens."""
    measurement = measured(folder, [True], [True])
    tokens = {"single": single, "full": full}
    arms = [
        arm.model_copy(update={"tokens": tokens[arm.name], "cost": tokens[arm.name] / 1000})
        for arm in measurement.arms
    ]
    return measurement.model_copy(update={"arms": tuple(arms)})


def test_samples_are_spread_evenly_over_the_answers() -> None:
    assert [samples(7, 3).count(index) for index in range(3)] == [3, 2, 2]


def test_an_answer_has_one_sample_at_least_and_64_at_most() -> None:
    assert samples(3, 3).with_total(0).total == 3
    assert samples(3, 3).with_total(1_000).total == 3 * 64


def test_an_arm_that_says_no_way_to_choose_lets_its_samples_vote() -> None:
    composition = Composition(overrides=("mode=single", "provider=simulated"))
    arm = ArmSamples.of(compose_settings(composition), 2).with_total(7)
    configured = arm.configure(Arm("one", ("mode=single",), "c"), 0)
    assert configured.overrides == (
        "mode=single",
        "execution.samples=4",
        "execution.select=vote",
        "ttl.base=28",
    )
    assert configured.configuration != "c"
    settings = compose_settings(
        composition.with_overrides((*composition.overrides, *configured.overrides))
    )
    assert settings.execution.samples == 4


def test_a_knock_out_has_the_budget_for_its_comparisons() -> None:
    overrides = ("mode=single", "provider=simulated", "execution.select=pairwise")
    arm = ArmSamples.of(compose_settings(Composition(overrides=overrides)), 1)
    assert arm.most == 26  # 26 samples and 25 comparisons, two cycles each, of a limit of 100
    configured = arm.with_total(8).configure(Arm("one", overrides, "c"), 0)
    assert configured.overrides[3:] == ("execution.samples=8", "ttl.base=46")


def test_an_arm_that_takes_what_it_is_configured_with_is_left_as_it_is() -> None:
    arm = Arm("one", ("mode=single",), "c")
    assert samples(ROWS).configure(arm, 0) is arm


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(lambda total: 70 * total, id="every sample costs the same"),
        pytest.param(lambda total: 20_000 + 50 * total, id="a plan costs, too"),
        pytest.param(lambda total: 65 * total + (total % 7) * 40, id="samples differ"),
    ],
)
def test_a_few_rounds_bring_an_arm_within_2_percent_of_the_dearest(
    tmp_path: Path, cost: Callable[[int], int]
) -> None:
    equalizer = Equalizer(tmp_path / "s.json", {"single": samples(ROWS), "full": samples(ROWS)})
    dearest = 61_000
    for _ in range(5):
        if not equalizer.plan(spent(tmp_path, cost(equalizer.samples["single"].total), dearest)):
            break
    tokens = cost(equalizer.samples["single"].total)
    assert abs(dearest - tokens) <= WITHIN * dearest
    assert equalizer.samples["full"].total == ROWS


def test_what_cannot_be_equal_ends_and_says_how_far_apart_the_arms_are(tmp_path: Path) -> None:
    equalizer = Equalizer(tmp_path / "s.json", {"single": samples(1, 1), "full": samples(1, 1)})
    assert equalizer.plan(spent(tmp_path, 10, 1_000_000))
    assert equalizer.samples["single"].total == 64
    measurement = spent(tmp_path, 640, 1_000_000)
    assert not equalizer.plan(measurement)
    told = describe_equality(measurement, equalizer.samples)
    assert "the arms spent 99.9 % apart, more than 2 %" in told
    assert "single takes 64 samples for an answer" in told


def test_what_was_found_is_there_for_a_measurement_that_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    arms = {"single": samples(ROWS), "full": samples(ROWS)}
    before = Equalizer(path, dict(arms))
    before.plan(spent(tmp_path, 10_000, 100_000))
    before.save()
    assert Equalizer(path, dict(arms)).samples == before.samples


def test_the_samples_of_other_rows_are_refused_unless_all_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    before = Equalizer(path, {"single": samples(ROWS), "full": samples(ROWS)})
    before.plan(spent(tmp_path, 10_000, 100_000))
    before.save()
    others = {"single": samples(42, 42)}
    with pytest.raises(ConfigError, match="samples are for 40 answers, and now there are 42") as no:
        Equalizer(path, dict(others))
    assert "none can be added or left out" in no.value.hint
    assert "batch.changed=again" in no.value.hint
    with pytest.raises(ConfigError, match="now there are 38") as no:
        Equalizer(path, {"single": samples(38, 38)})
    assert "batch.changed=again" not in no.value.hint
    assert Equalizer(path, dict(others), begins_anew=True).samples == others


def test_samples_of_an_arm_that_stops_at_the_first_that_passes_are_a_bound(tmp_path: Path) -> None:
    stops = ArmSamples(160, ROWS, ExecutionSettings(select="check"))
    told = describe_equality(spent(tmp_path, 100, 100), {"single": stops})
    assert "single takes up to 4 samples for an answer" in told


def test_what_the_samples_cost_is_foreseen(tmp_path: Path) -> None:
    foreseen = forecast_equality(spent(tmp_path, 10_000, 100_000), {"single": samples(400)}, 40)
    assert foreseen.least_cost == pytest.approx(90)
    assert foreseen.words == "equal=tokens: single takes 10 samples for an answer."


def test_nothing_is_made_equal_where_the_tokens_are_unknown(tmp_path: Path) -> None:
    measurement = spent(tmp_path, 100, 900)
    single, full = measurement.arms
    arms = (single.model_copy(update={"unreported": 1}), full)
    measurement = measurement.model_copy(update={"arms": arms})
    numbers = {"single": samples(ROWS), "full": samples(ROWS)}
    assert not Equalizer(tmp_path / "samples.json", numbers).plan(measurement)
    assert describe_equality(measurement, numbers) == (
        "equal=tokens: nothing was made equal, since the tokens of single are unknown: "
        "its server did not report the usage of all calls."
    )
