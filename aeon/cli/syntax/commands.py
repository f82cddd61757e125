"""The commands that come with Aeon, and their arguments. The docstring of a declaration is the help
of its command, its first line the entry in the list of commands. A command's own module is imported
when the command is carried out."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

from aeon.cli.syntax.parser import CommandParser, Declare
from aeon.cli.syntax.registered import is_registered, load_declaration
from aeon.domain.errors import ConfigError
from aeon.domain.request import CallName

TEXTS = Path(__file__).parent / "texts"
"""Files that commands print or copy."""
SHELLS = ("bash", "fish", "zsh")
CALLS: tuple[str, ...] = get_args(CallName)


def declare_run(parser: CommandParser) -> None:
    """Run a task."""
    parser.usage = 'aeon task="..." [key=value ...] [group=option ...]'
    parser.add_overrides()
    parser.function = "aeon.cli.commands.run:run"


def declare_ask(parser: CommandParser) -> None:
    """Run a task with mode=auto, which spends little on a small one.

    TASK is one argument, taken literally; `aeon ask -` reads it from standard input. Everything else
    is configured as for any run, the mode too: `aeon help` explains.

      aeon ask "name three rivers"
      aeon ask "design a logo" experiment=quick provider.model=gpt-5
    """
    declare_run(parser)
    parser.usage = 'aeon ask "TASK" [key=value ...] [group=option ...]'


def declare_init(parser: CommandParser) -> None:
    """Copy configuration, prompts and schemas for editing.

    They are copied into DIR with an aeon.yaml that uses them: a run from DIR needs no flags. DIR is
    made if it does not exist, and nothing is overwritten. The commands that use the copies are
    printed.

      aeon init mine
      aeon init --only step
    """
    parser.add("[DIR]", "a folder; with --only by default this one", type=Path)
    parser.add("[--only CALL]", "only the prompt and the schema of one call", known=CALLS)
    parser.function = "aeon.cli.commands.files:init"


def declare_render(parser: CommandParser) -> None:
    """Show the prompt and the schema of one call.

    They are printed as they would be sent, in a small worked example, with the file that each part
    comes from. No model is called.

      aeon render step task="name three rivers" prompts.dir=mine/prompts
    """
    parser.add("CALL", ", ".join(CALLS), known=CALLS)
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.files:render"


def declare_plan(parser: CommandParser) -> None:
    """Make a plan without running it; plan_file=plan.yaml runs it.

    The task is profiled, planned, and the plan reviewed and refined. It is written as a workflow
    file, and as `plan.yaml` into its own directory under outputs/; change it as you like, check it
    with `aeon check plan.yaml`, run it with `aeon plan_file=plan.yaml`. The steps are drawn on
    standard error. Everything else is configured as for a run: `aeon help` explains.

    A plan that was interrupted, killed or cut short is in that directory as far as it came: `aeon
    plan resume=DIR` resumes it without paying again for stored answers.
    """
    parser.add("[out=FILE]", "a new file; without it, standard output")
    parser.add_overrides()
    parser.function = "aeon.cli.commands.plan:plan"


def declare_check(parser: CommandParser) -> None:
    """Report every mistake in a plan file, and draw the plan.

    Files are YAML or JSON, and nothing is run. Every problem is reported at once, as
    path:line:column: severity: message. For a file without errors a summary is printed, and its
    steps with their dependencies. Overrides configure the check as they do a run: tools=builtin,
    inputs.NAME=..., execution.max_steps=..., answer.schema=...

    Status 0: every file can be run; 2: one cannot.
    """
    parser.add("[FILE ...]", "a workflow file")
    parser.add("[--json]", "print one JSON document, not text")
    parser.add("[--ascii]", "draw with ASCII characters only")
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.check:check"


def declare_tools(parser: CommandParser) -> None:
    """List the tools that steps may use.

    Each is listed with its schemas, examples and conditions; servers in tools.mcp are started to
    list theirs. `aeon tools tools=builtin` lists those that come with Aeon; `aeon docs tools`
    explains how to add your own.
    """
    parser.add("[--json]", "what a model is shown of each tool, and its conditions, as JSON")
    parser.add_overrides()
    parser.function = "aeon.cli.commands.tools:tools"


def declare_doctor(parser: CommandParser) -> None:
    """Test the provider with one tiny call per role.

    The configuration, the prompts, the schemas and the tools are checked; then one structured call
    is made for each role (planner, worker, grader, repairer) and one to each fallback. The report
    says which works, how long it took, and what to change. No call is retried; no key is ever shown.

    Status 0: everything works; 1: something does not; 2: the configuration cannot be used.
    """
    parser.add_overrides()
    parser.function = "aeon.cli.commands.provider:doctor"


def declare_verify(parser: CommandParser) -> None:
    """Run five small tasks in both modes on your provider, as a table.

    The table has the order of the phases, how many answers were valid by their schema at once,
    repairs, how each run ended, calls, tokens and cost. limits.max_cost=0.50 applies to all runs
    together, the other limits to each run. No artefacts are written.

    Status 0: every run came to its end, phases in order, and no checked answer is wrong; 1: a run did
    not; 3: an answer is wrong, or limits.max_cost was used up before all were run; 2: the
    configuration cannot be used.
    """
    parser.add_overrides()
    parser.function = "aeon.cli.commands.provider:verify"


def declare_inspect(parser: CommandParser) -> None:
    """Make the page of a finished run: why it ended so, and every call.

    It is made from the files in the run's directory. Each run writes it as report.html, unless
    observability.report=false; this command also makes it for older runs.

      output=json    the key facts, the findings and all patterns across the passes
      output=text    the findings, in a few lines
      output=cycles  each LLM cycle as a line of JSON, in order, with the whole plan that it saw
    """
    parser.add("RUN", "a run's directory", type=Path)
    parser.add("[--open]", "open the page in the browser")
    parser.add(
        "[--output FILE]", "write it to this file, not to RUN/report.html", type=Path, dest="page"
    )
    parser.add("[output=json|text|cycles]", "print this, and make no page")
    parser.function = "aeon.cli.commands.inspect:inspect"


def declare_baseline(parser: CommandParser) -> None:
    """Compare a run's answer with one direct call.

    The run's worker answers the task once more, without a plan or a review, and the run's grader
    compares the two answers, in both orders, without knowing which is which. Three calls, with the
    reasoning effort that the run's profile gave worker and grader. The result and the page of the
    run then say which answer is better, and at how many times the tokens; answer.baseline=true does
    the same at the end of a run.

      aeon baseline outputs/2026-07-01/09-30-00
      aeon baseline outputs/2026-07-01/09-30-00 roles.grader.model=NAME
    """
    parser.add("RUN", "a run's directory", type=Path)
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.compare:baseline"


def declare_runs(parser: CommandParser) -> None:
    """List the runs under a folder, newest first.

    Each has its directory, how it ended, its scores (completeness, coherence, consistency), cost,
    size and task. A killed run is shown with the command that resumes it.
    """
    parser.add(
        "[DIR]", "the folder, without hidden ones; by default this one", type=Path, default=Path()
    )
    parser.add(
        "[where=CONDITION]", "those that it is true for, as in 'completeness<0.9 and cost>1'"
    )
    parser.add("[since=TIME]", "those that began since then: 7d, 12h, 2026-07-01")
    parser.add("[task~=TEXT]", "those whose task has this text")
    parser.add("[limit=N]", "at most N; by default 50", type=_read_limit)
    parser.add("[output=json]", "a list of objects", known=("json",))
    parser.function = "aeon.cli.commands.runs:runs"


def declare_prune(parser: CommandParser) -> None:
    """Remove runs and their files, after asking.

    Your own files stay, and so do runs that are or may be under way (`unfinished`: no journal
    tells), and runs that a stopped run depends on. With both --keep and --older-than, a run is
    removed if both allow it.
    """
    parser.add("[DIR]", "the folder; by default this one", type=Path, default=Path())
    parser.add("[--keep N]", "keep the newest N", type=int)
    parser.add("[--older-than DAYS]", "keep those that began within DAYS", type=int)
    parser.add("[--yes]", "do not ask, for scripts")
    parser.function = "aeon.cli.commands.runs:prune"


def declare_answer(parser: CommandParser) -> None:
    """Answer what a run waits for (interaction=defer).

    With interaction=defer, a run that needs a person ends with status 6: for a question of its
    planner, for the approval of a tool, for a step that a person does. This command takes the
    answers, from anybody, and `aeon resume=RUN` continues the run. An approval is answered yes or
    no, a step with its output; an empty answer to a question accepts its assumption. Without
    answers it asks at the terminal; where there is none, it shows the open questions.

      aeon answer outputs/2026-11-23/10-00-00-123456-1a2b3c4d approval-1f2e3d4c=yes
      aeon answer outputs/2026-11-23/10-00-00-123456-1a2b3c4d answers.json

    A file of answers is an object: {"ID": "TEXT", ...}. All answers are taken, or none. Status 0:
    no question is open; 6: one is; 2: the answers do not fit.
    """
    parser.add("RUN", "a run's directory", type=Path)
    parser.add("[ANSWER ...]", "ID=TEXT, or one FILE.json", dest="answers")
    parser.function = "aeon.cli.commands.people.answer:answer"


def declare_mcp(parser: CommandParser) -> None:
    """Serve MCP clients, such as an IDE or a desktop assistant.

    A client gets the tool run_task, and one for each plan file of the folder mcp.plans. It starts
    this command itself and talks to it through standard input and output; with mcp.transport=http
    it connects to http://127.0.0.1:8643/mcp. Runs are stored in the folder mcp.folder: they
    continue after a stop or a kill. Everything else is configured as for a run, when the server is
    started; clients give only a task and inputs. `aeon docs mcp-server`
    shows how to add it to a client.

      aeon mcp provider=openai limits.max_cost=1
      aeon mcp mcp.plans=plans mcp.transport=http
    """
    parser.add_overrides()
    parser.function = "aeon.cli.commands.service.mcp:mcp"


def declare_compare(parser: CommandParser) -> None:
    """Show runs side by side.

    The table has the parameters that differ, how each run ended, scores, passes, tokens, cost and
    seconds, and why one failed or was cut off. For two runs it also has the first event at which
    they diverge, and the differences of their plans and answers. The table is printed on standard
    output; compare.html and compare.csv are written.
    """
    parser.add(
        "[RUN ...]",
        "a run's directory, or a folder with runs under it, such as a multirun's",
        type=Path,
    )
    parser.add(
        "[out=DIR]",
        "where the files go: by default the one folder that was named, else this one",
        type=Path,
    )
    parser.add("[output=table|json|csv]", "print that instead, and write nothing", default="table")
    parser.add("[--open]", "open the page in a browser")
    parser.function = "aeon.cli.commands.compare:compare"


def declare_batch(parser: CommandParser) -> None:
    """Run each row of a dataset as a task, many at once.

    A line of JSON is written for each row. Repeat the command to resume after an interruption:
    finished rows are not run again, interrupted rows continue where they were, failed rows are
    run again. Columns of a dataset: task, id, inputs (an object of texts), overrides (an
    object); batch.columns.task=COLUMN, .id=COLUMN, .inputs.NAME=COLUMN name others.
    Keys of a batch:

      task="..."                     the task of rows without one
      batch.parallel=16              how many rows run at once
      batch.order=dataset            results in the order of the dataset; else as rows end
      batch.records=all|failed|none  which rows leave a record
      batch.changed=again            run changed rows again; else they are refused
      batch.confirm_above_cost=5     ask, or stop, when the batch will cost more
      batch.max_cost=5               stop at this cost; repeat the command to resume
      batch.max_llm_calls=1000       the same for calls

    Exit status: 0 every row converged (mode=core: is complete), 1 a row failed or cannot be run, 2
    usage, or a batch that would cost more than may be spent without asking, 6 a row waits for a
    person, 3 a row did not converge, or a cap stopped the batch, 130 interrupted.
    """
    parser.add(
        "dataset=FILE",
        ".jsonl (an object a line), .csv or .tsv with a "
        "header, .parquet; - is JSON Lines from standard input",
    )
    parser.add(
        "out=FILE",
        "where the results go, JSON Lines; - is standard output, which cannot be resumed",
    )
    parser.add(
        "[shard=i/n]",
        "only every n-th row from the i-th on, for n jobs in parallel",
        default="1/1",
    )
    parser.add_overrides()
    parser.function = "aeon.cli.commands.batch:batch"


def declare_serve(parser: CommandParser) -> None:
    """Serve runs to other programs, by OpenAI's HTTP interface.

    Any OpenAI client can request a run from http://127.0.0.1:8642/v1; people look at
    http://127.0.0.1:8642/runs. Runs under way when the server is stopped or killed continue with
    the next start. Keys of the server:

      serve.host=0.0.0.0     listen where others can reach it; needs a token in AEON_SERVE_TOKEN
      serve.port=8642        the port; 0 takes a free one
      serve.parallel=4       how many runs are carried out at once
      serve.queue=16         how many runs may wait; further requests are refused
      serve.folder=DIR       the folder of its runs

      aeon serve 'serve.models.small=["mode=single"]' 'serve.models.large=["limits.max_cost=1"]'

    Exit status: 0 stopped by Ctrl-C or SIGTERM, 2 it cannot be started.
    """
    parser.add_overrides()
    parser.function = "aeon.cli.commands.service.serve:serve"


def declare_merge(parser: CommandParser) -> None:
    """Merge the results of shards, in the order of the dataset.

    Missing and duplicate rows are refused.
    """
    parser.add("RESULTS ...", "the results files of the shards", type=Path)
    parser.add("out=FILE", "a new file; FILE.csv is a table", type=Path)
    parser.function = "aeon.cli.commands.batch:merge_results"


def declare_record(parser: CommandParser) -> None:
    """Write the record of a row of a batch into a folder, with its page."""
    parser.add("RESULTS", "the results file of a batch", type=Path)
    parser.add("ID", "the id of a row")
    parser.add("DIR", "a new folder", type=Path)
    parser.function = "aeon.cli.commands.batch:unpack_row"


def declare_eval(parser: CommandParser) -> None:
    """Measure configurations against each other on a dataset.

    Each arm answers each row, and a program grades the answers: by the row's `target` (or
    `expected_output`), and by the configured checks. Arms are lists of overrides, each
    a quoted text, or come from a file of the group arms; without any, mode=single and mode=adaptive
    are measured:

    aeon eval dataset=tasks.jsonl out=first 'arms.one=["mode=single"]' 'arms.full=["mode=adaptive"]'

    Rows are run as in `aeon batch`, with its keys; repeat the command to resume after an
    interruption. DIR holds eval.json, eval.html, junit.xml and rows.csv; the table is printed on
    standard output. `aeon docs eval` explains how to read it.

    Exit status: 0 measured, 4 the judged arm, the last one, is below the threshold or worse than
    the baseline, 5 an answer could not be measured, 2 usage, or a measurement that would cost more
    than may be spent without asking, 130 interrupted.
    """
    parser.add(
        "dataset=FILE",
        "the rows, as for `aeon batch`, with a column "
        "target (or expected_output); - is standard input",
    )
    parser.add("out=DIR", "the folder of the measurement", type=Path)
    parser.add("[repeat=K]", "how often each arm answers each row", type=_read_count, default=1)
    parser.add(
        "[equal=tokens]", "give cheaper arms samples until all spend the same", known=("tokens",)
    )
    parser.add(
        "[judge=true|false]", "grade by the judge of the command line, corrected by its calibration"
    )
    parser.add("[threshold=RATE]", "the least pass rate, from 0 to 1", type=_read_share)
    parser.add("[arm=NAME]", "the judged arm, if not the last one", default="")
    parser.add("[baseline=FILE]", "an earlier eval.json that must not be better", type=Path)
    parser.add("[bless=true|false]", "write this measurement as the baseline")
    parser.add("[allow_simulated=true|false]", "measure the simulated provider, to try this out")
    parser.add(
        "[format=inspect]", "also write Inspect logs: DIR/inspect/ARM.eval", known=("inspect",)
    )
    parser.add("[shard=i/n]", "only every n-th row from the i-th on", default="1/1")
    parser.add_overrides()
    parser.function = "aeon.cli.commands.evaluation.eval:evaluate"


def declare_calibrate(parser: CommandParser) -> None:
    """Measure the judge on answers that you labelled, and choose a threshold.

    A line of LABELS is {"task": "...", "answer": "...", "good": true}; the buttons on the page of a
    run write such lines. The judge judges each answer K times. How often it is right is printed on
    standard output. If the labels suffice, a threshold is written as convergence=calibrated: with
    it, at most the share max_false of the runs called converged is wrong. `aeon docs calibrate`
    explains the conditions.

      aeon calibrate labels.jsonl max_false=0.2 roles.grader.model=NAME

    Answers are judged as rows of `aeon batch` are run, with its keys; repeat the command to resume
    after an interruption.

    Exit status: 0 a threshold is promised and written, 4 none is, 5 a judgement failed, 2 usage, or
    a cost above what may be spent without asking, 130 interrupted.
    """
    parser.add("LABELS", "the labelled answers, JSON Lines", type=Path)
    parser.add(
        "[out=DIR]", "the folder of the judgements; by default LABELS.calibration", type=Path
    )
    parser.add(
        "[repeat=K]", "how often each answer is judged; by default 3", type=_read_count, default=3
    )
    parser.add(
        "[max_false=SHARE]",
        "the share that may be wrong; by default 0.1",
        type=_read_open_share,
        default=0.1,
    )
    parser.add(
        "[passes=N]", "how often a run may be judged; by default 3", type=_read_count, default=3
    )
    parser.add("[allow_simulated=true|false]", "measure the simulated provider, to try this out")
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.evaluation.calibrate:calibrate"


def declare_replay_check(parser: CommandParser) -> None:
    """Check that recordings still decide as they did.

    Each recording is run on today's prompts, schemas, code and configuration, without a network:
    with its own settings, the folders that a trusted aeon.yaml names, and overrides. For one that
    requests or ends otherwise, the difference is shown, and the files, keys and versions that may
    explain it. Status 0: every recording decides as it did; 4: one does not.

      aeon replay-check recordings/*.aeon junit=replays.xml
    """
    parser.add("CASSETTE ...", "recordings (*.aeon)", type=Path, dest="files")
    parser.add("[junit=FILE]", "write the outcome as JUnit's XML", type=Path)
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.cassette:check_replays"


def declare_cassette(parser: CommandParser) -> None:
    """Recordings of runs as portable files: export and show."""
    parser.add("COMMAND", "as below", known=("export", "show"))


def declare_export(parser: CommandParser) -> None:
    """Write a run's answers into one file, a cassette.

    `aeon store=replay store.path=OUT.aeon` runs it again without a model.
    """
    parser.add("RUN", "a run's directory, a store (*.sqlite) or a cassette", type=Path)
    parser.add("OUT.aeon", "the file to write", type=Path)
    parser.add("[--answered-by TEXT]", "who answered; by default the models' names")
    parser.add("[--note TEXT]", "a note for those who replay it")
    parser.add(
        "[--files PLACE]",
        "the files that the models were given: beside the cassette, or inside; "
        "else only their hashes",
        known=("beside", "inside"),
    )
    parser.add("[--force]", "replace an existing file")
    parser.function = "aeon.cli.commands.cassette:export"


def declare_show(parser: CommandParser) -> None:
    """Print who answered a cassette and when, and every call of it."""
    parser.add("FILE.aeon", "a cassette", type=Path)
    parser.function = "aeon.cli.commands.cassette:show"


def declare_trust(parser: CommandParser) -> None:
    """Let an aeon.yaml or a .env take effect, after seeing its content.

    An aeon.yaml, the folders that it names and a .env can start programs and choose where your
    tasks and keys go. Nothing of a folder takes effect until you have trusted it. `aeon trust`
    shows everything of DIR (here, if you name none) that would take effect: aeon.yaml,
    configuration, prompts and schemas where they differ from the packaged ones, and the variables
    of .env. It asks, and remembers the folder with a hash of all of it; when anything changes, you
    are asked again.

    Where nobody can be asked, AEON_TRUST=HASH in the environment trusts just the content of that
    hash; it is printed when a run is refused. Trusted folders are recorded in ~/.local/state/aeon
    ($XDG_STATE_HOME/aeon, or the folder in AEON_STATE_DIR). `aeon docs trust` explains it, and
    whose runs may be resumed.
    """
    parser.add("[DIR]", "by default this folder", type=Path, default=Path())
    parser.add("[--list]", "the folders that you trust, and whether they have changed since")
    parser.add("[--forget]", "stop trusting DIR")
    parser.function = "aeon.cli.commands.trust:trust"


def declare_config(parser: CommandParser) -> None:
    """Find where the values of the configuration come from: why."""
    parser.add("COMMAND", "as below", known=("why",))


def declare_why(parser: CommandParser) -> None:
    """Print which file or override set a value, and what it overrode.

    The first line is the value in force. Below it are the values that it overrides, each with its
    file and line, and the override that chose the file.

      aeon config why ttl.base
      aeon config why convergence.completeness experiment=quick convergence.completeness=0.9
    """
    parser.add("KEY", "a key of the configuration, such as ttl.base")
    parser.add_overrides(and_bare_words=False)
    parser.function = "aeon.cli.commands.files:why"


def declare_docs(parser: CommandParser) -> None:
    """Print a page of the documentation, the meaning of a key, or search for words.

    Without words, the pages are listed. The name of a page prints it, a key of the configuration
    its meaning, type and default, a group its options and keys. Other words are searched for in all
    pages. Messages that name docs/NAME.md mean `aeon docs NAME`.

      aeon docs errors
      aeon docs convergence.completeness
      aeon docs ttl
      aeon docs exit status
    """
    parser.add("[WORD ...]", "a page, a key, a group, or words to search for")
    parser.add("[--search]", "search, also for the name of a page")
    parser.add_config_flags()
    parser.function = "aeon.cli.commands.docs:docs"


def declare_schema(parser: CommandParser) -> None:
    """Print the JSON Schema of configuration files, for editors.

    It is made from the settings: for a primary file (config.yaml), or for the files of a group
    (ttl/mine.yaml). With it an editor completes keys, explains them and marks mistakes.

      aeon schema > aeon.schema.json
      aeon schema ttl > ttl.schema.json

    The first line of a file names its schema, for every editor with the YAML language server:

      # yaml-language-server: $schema=../ttl.schema.json
    """
    parser.add("[GROUP]", "a folder of conf/, such as ttl")
    parser.function = "aeon.cli.commands.files:schema"


def declare_completion(parser: CommandParser) -> None:
    """Print the script of tab completion for a shell.

    It completes commands, groups, options and keys.

      bash  eval "$(aeon completion bash)"   in ~/.bashrc
      zsh   eval "$(aeon completion zsh)"    in ~/.zshrc, after compinit
      fish  aeon completion fish | source    in ~/.config/fish/config.fish

    The scripts call `aeon completion -- WORD...`, which prints the completions of the last word.
    """
    parser.add("[SHELL]", "the shell", known=SHELLS)
    parser.function = "aeon.cli.syntax.completion:completion"


def declare_help(parser: CommandParser) -> None:
    """Print the help of a command, the same as `aeon COMMAND --help`.

    Without COMMAND, the general help.
    """
    parser.add("[COMMAND ...]", "one or two words")
    parser.add_config_flags()
    parser.function = "aeon.cli.syntax.help:help"


COMMANDS: dict[str, Declare] = {
    "ask": declare_ask,
    "init": declare_init,
    "plan": declare_plan,
    "check": declare_check,
    "tools": declare_tools,
    "render": declare_render,
    "doctor": declare_doctor,
    "verify": declare_verify,
    "inspect": declare_inspect,
    "baseline": declare_baseline,
    "runs": declare_runs,
    "runs prune": declare_prune,
    "answer": declare_answer,
    "mcp": declare_mcp,
    "compare": declare_compare,
    "serve": declare_serve,
    "batch": declare_batch,
    "batch merge": declare_merge,
    "batch record": declare_record,
    "eval": declare_eval,
    "calibrate": declare_calibrate,
    "replay-check": declare_replay_check,
    "cassette": declare_cassette,
    "cassette export": declare_export,
    "cassette show": declare_show,
    "trust": declare_trust,
    "config": declare_config,
    "config why": declare_why,
    "docs": declare_docs,
    "schema": declare_schema,
    "completion": declare_completion,
    "help": declare_help,
}
"""The commands that come with Aeon, in the order of the general help. One with two words is found
by both words."""


def find_command(words: Sequence[str]) -> str:
    """Return the longest command name that the words begin with; empty where they begin with
    none."""
    names = {tuple(name.split()): name for name in COMMANDS}
    known = names.get(tuple(words[:2])) or names.get(tuple(words[:1]))
    if known is not None:
        return known
    return words[0] if words and is_registered(words[0]) else ""


def quote_task(words: Sequence[str]) -> list[str]:
    """Return the words behind `aeon ask` as those of a run: the first is the literal task, and the
    mode is `auto` unless another is given. Raises ConfigError when the first word is not a task."""
    problem = "aeon ask takes the task first, as one argument, then flags and overrides"
    hint = 'Quote it: `aeon ask "name three rivers" mode=core`'
    task, *rest = words or ["--"]
    is_flag = task.startswith("-") and task != "-" and len(task.split()) == 1
    if is_flag or (rest and re.match(r"[^-~=][^=]*$", rest[0])):
        raise ConfigError(problem, hint=hint)
    for text in rest:
        if text.startswith(("task=", "task_file=")):
            raise ConfigError(f"{text}: the task is given twice", hint="Leave one of them out.")
    return [f"task={task}", *_default_mode(rest), *rest]


def _default_mode(words: Sequence[str]) -> list[str]:
    is_given = any(text.startswith(("mode=", "mode.kind=")) for text in words)
    return [] if is_given else ["mode=auto"]


def make_parser(name: str) -> CommandParser:
    """Return the parser of a command, by the name that `find_command` returns; that of a run for
    the empty name."""
    if not name:
        return CommandParser("", declare_run)
    return CommandParser(name, COMMANDS.get(name) or load_declaration(name))


def _read_whole(text: str, most: int) -> int:
    # Also refuses the digits of other scripts, and a number too long for `int`.
    if text.isascii() and text.isdecimal() and 0 < int(text) <= most:
        return int(text)
    raise ArgumentTypeError(f"{text}: a number from 1 to {most:,}")


def _read_share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (share := float(text)) <= 1:
            return share
    raise ArgumentTypeError(f"{text}: must be a number from 0 to 1, such as 0.9")


def _read_open_share(text: str) -> float:
    share = _read_share(text)
    if 0 < share < 1:
        return share
    raise ArgumentTypeError(f"{text}: must be a number between 0 and 1, such as 0.1")


_read_count = partial(_read_whole, most=1_000)
_read_limit = partial(_read_whole, most=1_000_000)
