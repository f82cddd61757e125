"""The patterns of a run in sentences: what stands out, and the heading of docs/not-converged.md that is about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aeon.domain.values import Value
from aeon.report.patterns import Patterns, RefinedFragment, RefinementGain
from aeon.report.scores import Blocker, JudgeConflict, Regression
from aeon.report.words import count_noun, list_names, one_line, round_down

_LONGEST = 200
_MANY_REPAIRS, _MUCH_TIME = 0.2, 0.5


class Finding(Value):
    """One thing that stands out. `topic` is the heading of docs/not-converged.md that says what to do about it."""

    topic: str
    text: str


def find_findings(patterns: Patterns) -> tuple[Finding, ...]:
    """What stands out, what held convergence back at the end first. Texts are the model's in part: escape them."""
    fell = [each for each in patterns.regressions if each.after < patterns.thresholds.get(each.name, 1)]
    found = [*map(_blocker, patterns.blockers), *_progress(patterns), *map(_regression, fell)]
    found += [*map(_conflict, patterns.judge_conflicts)]
    found += [("a-step-is-refined-again-and-again", _fragment(each)) for each in patterns.fragments if each.times > 1]
    found += [("changes-are-refused", _refused(each)) for each in patterns.refinements if each.refused]
    found += _costs(patterns)
    return tuple(Finding(topic=topic, text=one_line(text)) for topic, text in found)


def _blocker(blocker: Blocker) -> tuple[str, str]:
    where, words = name_passes(blocker.passes), f": {blocker.words[0]}" if blocker.words else ""
    words = one_line(words, _LONGEST)
    if blocker.kind == "score" and blocker.best is not None and blocker.last is not None:
        bar = f" {blocker.threshold:.2f}" if blocker.threshold is not None else " its threshold"
        values = f"best {round_down(blocker.best):.2f}, at the end {round_down(blocker.last):.2f}"
        return "a-score-stays-below-its-threshold", f"{blocker.score} was below{bar} in {where}: {values}"
    if blocker.kind == "criterion":
        return "a-criterion-is-not-met", f"criterion {blocker.code} was not met in {where}{words}"
    if blocker.kind == "unavailable":
        return "an-evaluation-could-not-be-had", f"{where} could not be assessed"
    return "an-issue-blocks", f"{blocker.code} in {where}{words}"


def _progress(patterns: Patterns) -> Iterator[tuple[str, str]]:
    for stretch in patterns.plateaus:
        yield "nothing-gets-better", f"from pass {stretch[0]} to pass {stretch[-1]} no score changed noticeably"
    if patterns.without_gain:
        tokens = sum(patterns.by_pass[number].tokens for number in patterns.without_gain if number in patterns.by_pass)
        text = f"{name_passes(patterns.without_gain)} improved nothing that is judged ({tokens:,} tokens)"
        yield "nothing-gets-better", text
    last = patterns.assessed[-1].pass_number if patterns.assessed else None
    if patterns.best_pass is not None and patterns.best_pass != last:
        yield "it-was-better-before", f"pass {patterns.best_pass} came closest, not the last one assessed, {last}"


def _regression(fell: Regression) -> tuple[str, str]:
    how = f"fell from {round_down(fell.before):.2f} to {round_down(fell.after):.2f}"
    how = how if fell.kind == "score" else "was met before and is not any more"
    refined = f", after {list_names(list(dict.fromkeys(fell.refined)))} had been changed" if fell.refined else ""
    return "it-was-better-before", f"{fell.name} {how} in pass {fell.to_pass}{refined}"


def _conflict(conflict: JudgeConflict) -> tuple[str, str]:
    topic = "the-judge-contradicts-itself"
    if conflict.kind == "pairs":
        score = f"{round_down(conflict.values[0]):.2f}"
        where = name_passes(conflict.passes)
        return topic, f"{where}: {conflict.name} is said to be inconsistent, at a consistency score of {score}"
    first, second = (f"{value:.2f}" for value in conflict.values)
    where = name_passes(conflict.passes)
    return topic, f"{where}: {conflict.name} was judged {first} and then {second} for the same answer and outputs"


def _fragment(fragment: RefinedFragment) -> str:
    left = "; it was left to a person" if fragment.left_to_person else ""
    return f"step {fragment.step_id} was refined {fragment.times} times ({name_passes(fragment.passes)}){left}"


def _refused(made: RefinementGain) -> str:
    return f"the refinement of pass {made.pass_number} had {count_noun(made.refused, 'change')} refused"


def _costs(patterns: Patterns) -> Iterator[tuple[str, str]]:
    for name, rate in patterns.repairs_by_call.items():
        broken = rate.repaired + rate.unrecoverable
        if broken and (rate.rate >= _MANY_REPAIRS or rate.unrecoverable):
            lost = f", {rate.unrecoverable} beyond repair" if rate.unrecoverable else ""
            yield (
                "answers-break-their-schema",
                f"{broken} of {count_noun(rate.answers, 'answer')} to {name} broke the schema{lost}",
            )
    for kind, wait in patterns.waits.items():
        yield (
            "much-of-the-time-is-waiting",
            f"{wait.seconds:.1f} s were waited after {kind}, {count_noun(wait.times, 'time')}",
        )
    steps = {name: spent.seconds for name, spent in patterns.by_step.items()}
    slowest = next(iter(steps), None)
    if slowest is not None and len(steps) > 2 and steps[slowest] > _MUCH_TIME * sum(steps.values()):
        text = f"step {slowest} took {steps[slowest]:.1f} s of the {sum(steps.values()):.1f} s of all steps"
        yield "one-step-takes-the-time", text


def name_passes(numbers: Sequence[int]) -> str:
    """`pass 2`, `passes 2, 3 and 5`, `passes 1 to 4`."""
    if len(numbers) < 2:
        return "".join(f"pass {number}" for number in numbers)
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2:
        return f"passes {numbers[0]} to {numbers[-1]}"
    return f"passes {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
