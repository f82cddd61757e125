"""`aeon baseline RUN`: one direct call to the task of a run, and which of the two answers is better."""

from __future__ import annotations

from argparse import Namespace

from aeon.app.baseline import require_answer
from aeon.cli.job.arguments import read_composition
from aeon.cli.job.attendance import attend_run
from aeon.cli.job.prepare import prepare_job
from aeon.cli.terminal.status import DONE, INTERRUPTED
from aeon.cli.terminal.streams import put, warn
from aeon.config.load import compose_settings
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.observability import artefacts
from aeon.report.ending import describe_baseline
from aeon.report.page.build import write_report


def baseline(given: Namespace) -> int:
    """Compare the answer of a finished run with that of one direct call; both are in its result and
    on its page afterwards. Raises ConfigError for a run without an answer, ArtefactError."""
    given.overrides = [f"resume={given.run}", *given.overrides]
    composition = read_composition(given)
    settings = compose_settings(composition)
    try:
        result = artefacts.load(given.run)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint) from error
    require_answer(result, settings)
    aeon, run = prepare_job(settings, composition)
    with aeon, attend_run(aeon.settings) as (attendance, _):
        warn(*aeon.warnings)
        report = run.measure_baseline(result, attendance, given.run)
    result = result.model_copy(update={"baseline": report})
    artefacts.write(result, given.run)
    write_report(given.run, result)
    sentence = describe_baseline(report)
    put(f"{sentence[0].upper()}{sentence[1:]}.")
    put("\n".join(f"  {words}" for words in report.explanations))
    return INTERRUPTED if attendance.control.stop_requested else DONE
