"""What the GitHub action does: runs a task or a measurement with Aeon, and writes its outcome as Markdown.

The inputs come through the environment (AEON_TASK, AEON_TASK_FILE, AEON_DATASET, AEON_OVERRIDES, AEON_MAX_COST,
AEON_OUT). The status, the page, the answer and the summary go to $GITHUB_OUTPUT, the summary to $GITHUB_STEP_SUMMARY
too. It ends with 0 even where Aeon does not, so that later steps can tell of it; a later step ends with Aeon's status.
"""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MOST_OF_AN_ANSWER = 20_000
"""Characters of an answer in a comment, which may have 65,536 in all."""
MEANINGS = {
    0: "done",
    1: "failed",
    2: "the command or its configuration cannot be used",
    3: "ended without converging",
    4: "below the threshold, or worse than the baseline",
    5: "something could not be measured",
    6: "waits for a person",
    130: "interrupted",
}


def make_command(inputs: Mapping[str, str]) -> list[str]:
    """The command line of Aeon. Exits with a message unless just one of task, task file and dataset is given."""
    given = [name for name in ("AEON_TASK", "AEON_TASK_FILE", "AEON_DATASET") if inputs.get(name)]
    if len(given) != 1:
        sys.exit("Error: give one of task, task-file and dataset.")
    overrides = [
        line.strip() for line in inputs.get("AEON_OVERRIDES", "").splitlines() if line.strip()
    ]
    cost = inputs.get("AEON_MAX_COST") or "1"
    out = find_folder(inputs)
    program = [sys.executable, "-m", "aeon"]
    if given == ["AEON_DATASET"]:
        caps = [f"batch.max_cost={cost}", f"batch.confirm_above_cost={cost}"]
        command = ["eval", f"dataset={inputs['AEON_DATASET']}", f"out={out}"]
    else:
        caps = [f"limits.max_cost={cost}"]
        key = "task" if given == ["AEON_TASK"] else "task_file"
        command = [f"{key}={inputs[given[0]]}", f"hydra.run.dir={out}", "progress=none"]
    return [*program, *command, *([] if cost == "none" else caps), *overrides]


def find_folder(inputs: Mapping[str, str]) -> Path:
    """The folder of what is left. Exits with a message for a name that would end a line of an output."""
    name = inputs.get("AEON_OUT") or "aeon-out"
    if not name.isprintable():
        sys.exit("Error: out must be a name on one line.")
    return Path(name)


def stamp_files(folder: Path) -> dict[Path, tuple[int, int]]:
    """The files of a folder, each with what tells that it was written again."""
    stamps = {path: path.stat() for path in folder.glob("*") if path.is_file()}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in stamps.items()}


def summarise(files: Mapping[str, Path], status: int) -> str:
    """The outcome as Markdown: of a run its end, figures and answer, of a measurement its table."""
    result = read_json(files.get("result.json"))
    measured = read_json(files.get("eval.json"))
    lines = [f"### Aeon: {MEANINGS.get(status, f'exit status {status}')}", ""]
    if measured:
        lines += describe_measurement(measured)
    elif result:
        lines += describe_run(result)
    else:
        lines += ["Nothing was left of it: see the log of this step."]
    return "\n".join(lines) + "\n"


def describe_run(result: Mapping[str, Any]) -> Iterator[str]:
    """How a run ended, what it took, and its answer."""
    total = result["usage"]["total"]
    scores = result.get("scores") or {}
    judged = [
        f"{name.removesuffix('_score')} {scores[name]:.2f}"
        for name in scores
        if name.endswith("_score")
    ]
    yield "| ended | scores | passes | calls | tokens | cost |"
    yield "|---|---|---:|---:|---:|---:|"
    cost = "unknown" if total.get("cost") is None else f"{total['cost']:.4f}"
    yield (
        f"| {result['termination_reason'].replace('_', ' ')} | {', '.join(judged) or 'none'} | {result['passes']} "
        f"| {total['requests']:,} | {total['total_tokens']:,} | {cost} |"
    )
    if result.get("error"):
        yield f"\n**{escape(result['error']['message'])}**"
    answer = result.get("answer") or ""
    if answer:
        cut = "\n..." if len(answer) > MOST_OF_AN_ANSWER else ""
        shown = html.escape(answer[:MOST_OF_AN_ANSWER]) + cut
        yield f"\n<details><summary>Answer</summary>\n\n<pre>{shown}</pre>\n</details>"


def describe_measurement(measured: Mapping[str, Any]) -> Iterator[str]:
    """A row for each arm, and what comparing them says."""
    yield "| arm | passed | rate | 95 % | not measured | tokens | cost |"
    yield "|---|---:|---:|---|---:|---:|---:|"
    for arm in measured["arms"]:
        low, high = arm["pass_rate_interval"]
        cost = "unknown" if arm["cost"] is None else f"{arm['cost']:.4f}"
        yield (
            f"| {escape(arm['name'])} | {arm['passed']} of {arm['answers']} | {arm['pass_rate']:.1%} "
            f"| {low:.1%} to {high:.1%} | {arm['not_measured']} | {arm['tokens']:,} | {cost} |"
        )
    for compared in measured["comparisons"]:
        yield f"\n{escape(compared['sentence'])}"


def escape(text: str) -> str:
    """A text that neither ends a table's cell nor is HTML or a mention."""
    return html.escape(" ".join(text.split())).replace("|", "\\|").replace("@", "@<!-- -->")


def read_json(path: Path | None) -> Any:
    """The document in a file; None where there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError):
        return None


def main(environ: Mapping[str, str]) -> None:
    """Run, and write what came of it to the files that GitHub names."""
    command = make_command(environ)
    folder = find_folder(environ)
    older = stamp_files(folder)
    status = subprocess.run(command, check=False).returncode
    # An earlier step may have left its run in this folder.
    files = {
        path.name: path for path, stamp in stamp_files(folder).items() if older.get(path) != stamp
    }
    text = summarise(files, status)
    summary = Path(environ.get("RUNNER_TEMP", "."), "aeon-summary.md")
    summary.write_text(text, encoding="utf-8")
    outputs = {
        "status": str(status),
        "page": str(files.get("report.html") or files.get("eval.html") or ""),
        "answer": str(files.get("answer.md") or ""),
        "summary": str(summary),
    }
    with Path(environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())
    with Path(environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(os.environ)
