"""Every call, made ready and not sent."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from aeon import Aeon, ConfigError
from aeon.app import rehearsal
from aeon.app.job import resolve_job
from aeon.app.process import build_process
from aeon.app.rehearsal import render_call as render
from aeon.config.load import compose
from aeon.domain.errors import PromptError
from aeon.domain.request import CallName
from aeon.files.resources import resource_root
from tests.support.strict_subset import violations

SIMULATED = "provider=simulated"
SENT = (
    "task_profile",
    "plan",
    "semantic_validation",
    "refinement",
    "subplan",
    "direct",
    "step",
    "convergence",
    "comparison",
    "repair",
)


@pytest.fixture(scope="module")
def aeon() -> Aeon:
    return Aeon.from_config([SIMULATED], environ={})


def own_prompts(directory: Path, **templates: str) -> str:
    """A folder of prompt sets with these templates in the default one; the override that uses it."""
    (directory / "default").mkdir(parents=True)
    for name, text in templates.items():
        call, part = name.rsplit("_", 1)
        (directory / "default" / f"{call}.{part}.j2").write_text(text, encoding="utf-8")
    return f"prompts.dir={directory}"


@pytest.mark.parametrize("call", SENT)
def test_every_call_can_be_shown_as_it_would_be_sent(aeon: Aeon, call: str):
    shown = aeon.render(call, "make tea")
    assert shown.call == call
    assert shown.system
    if call != "repair":
        assert "make tea" in shown.user
        assert shown.files["schema"].name == f"{call}.json"
    assert violations(shown.schema) == []
    assert shown.strict
    assert {part: path.name for part, path in shown.files.items() if part != "schema"} == {
        "system": f"{call}.system.j2",
        "user": f"{call}.user.j2",
    }


def test_every_call_there_is_is_among_them():
    assert set(get_args(CallName)) - {"tool_arguments"} == set(SENT)


def test_inputs_are_shown_where_they_would_be(aeon: Aeon):
    assert "mind the milk" in aeon.render("plan", "make tea", {"note": "mind the milk"}).user


def test_a_call_that_is_none_is_refused_with_those_there_are(aeon: Aeon):
    with pytest.raises(ConfigError) as raised:
        aeon.render("poem", "make tea")
    assert "poem" in raised.value.message
    assert "convergence" in raised.value.hint


def test_settings_alone_are_enough(aeon: Aeon):
    assert "An example task." in render(aeon.settings, "plan").user


def test_a_template_of_ones_own_is_shown_with_its_file(tmp_path: Path):
    override = own_prompts(tmp_path / "own", plan_user="Plan this: {{ task }}")
    with Aeon.from_config([SIMULATED, override], environ={}) as made:
        shown = made.render("plan", "make tea")
    assert shown.user == "Plan this: make tea"
    assert shown.files["user"] == tmp_path / "own" / "default" / "plan.user.j2"
    assert tmp_path not in shown.files["system"].parents


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ taks }}", ["plan.user.j2:1", "'taks'", "task"]),
        ("\n\n{% if %}", ["plan.user.j2:3"]),
        ("{% include 'gone.j2' %}", ["plan.user.j2:1", "gone.j2"]),
        ("\n{% include '/etc/passwd' %}", ["plan.user.j2:2", "/etc/passwd"]),
        ("\n{% include '../default/_task.j2' %}", ["plan.user.j2:2", "../default/_task.j2"]),
        ("{{ task.nothing.at_all }}", ["plan.user.j2:1"]),
    ],
)
def test_a_template_that_cannot_be_used_is_named_before_any_model_is_asked(
    tmp_path: Path, template: str, words: list[str]
):
    override = own_prompts(tmp_path / "own", plan_user=template)
    with pytest.raises(PromptError) as raised:
        Aeon.from_config([SIMULATED, override], environ={})
    assert [word for word in words if word not in raised.value.message] == []


@pytest.mark.parametrize(
    ("call", "variables"),
    [
        (
            "step",
            "{{ step.description }}{{ step.incoming_context }}{{ previous_output }}"
            "{{ previous_reason }}{{ answer_schema }}",
        ),
        ("convergence", "{{ criteria }}{{ memory }}{{ answer.text }}{{ issues }}"),
        (
            "semantic_validation",
            "{{ artifact_type }}{{ memory }}{{ structural_findings }}{{ tools }}",
        ),
        ("refinement", "{{ reasons }}{{ issues }}{{ closed_steps }}{{ executed_step_ids }}"),
        ("task_profile", "{{ observed }}{{ context }}{{ tools }}"),
        ("subplan", "{{ parent.step_id }}{{ previous_output }}"),
        ("repair", "{{ original }}{{ errors }}{{ schema }}{{ tools }}{{ attempt }}{{ call }}"),
    ],
)
def test_a_template_may_use_whatever_its_call_has(tmp_path: Path, call: str, variables: str):
    task = "" if call == "repair" else "{{ task }}"
    override = own_prompts(tmp_path / "own", **{f"{call}_user": task + variables})
    Aeon.from_config([SIMULATED, override], environ={}).close()


ABOUT_A_TASK = [call for call in get_args(CallName) if call != "repair"]


@pytest.mark.parametrize("call", ABOUT_A_TASK)
def test_a_prompt_that_does_not_show_the_task_is_refused_with_its_file(tmp_path: Path, call: str):
    override = own_prompts(tmp_path / "own", **{f"{call}_user": ""})
    with pytest.raises(PromptError) as raised:
        Aeon.from_config([SIMULATED, override], environ={})
    expected = f"{tmp_path / 'own' / 'default'}/{call}.user.j2: a prompt of the call {call!r} does not show the task"
    assert raised.value.message.splitlines()[0].startswith(expected)


def test_an_included_template_that_hides_the_task_is_the_file_that_is_named(tmp_path: Path):
    own = tmp_path / "own" / "default"
    own.mkdir(parents=True)
    (own / "_task.j2").write_text("")
    with pytest.raises(PromptError) as raised:
        Aeon.from_config([SIMULATED, f"prompts.dir={tmp_path / 'own'}"], environ={})
    lines = raised.value.message.splitlines()
    assert {line.split(": ")[0] for line in lines} == {str(own / "_task.j2")}
    assert len(lines) == len(ABOUT_A_TASK)


@pytest.mark.parametrize("call", ["step", "tool_arguments"])
@pytest.mark.parametrize(
    "words",
    [
        "",
        "{{ plan.goal }}",
        "{% if plan.steps | length > 1 %}{{ plan.steps | json }}{% endif %}",
        "{% if ttl_remaining is none %}{{ step.description }}{% endif %}",
    ],
)
def test_a_workers_prompt_that_does_not_show_the_step_is_refused(
    tmp_path: Path, call: str, words: str
):
    override = own_prompts(tmp_path / "own", **{f"{call}_user": "{{ task }}" + words})
    with pytest.raises(
        PromptError,
        match=rf"{call}\.user\.j2: a prompt of the call '{call}' does not show the step",
    ):
        Aeon.from_config([SIMULATED, override], environ={})


def test_a_step_may_be_put_to_the_worker_in_other_words(tmp_path: Path):
    override = own_prompts(
        tmp_path / "own", step_system="{{ task }}", step_user="Tu: {{ plan.steps | json }}"
    )
    Aeon.from_config([SIMULATED, override], environ={}).close()


def test_a_repair_need_not_show_the_task(tmp_path: Path):
    override = own_prompts(tmp_path / "own", repair_user="{{ original }}")
    Aeon.from_config([SIMULATED, override], environ={}).close()


def test_a_rehearsal_asks_no_model_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with Aeon.from_config(
        ["provider=openai", "provider.base_url=http://127.0.0.1:9"], environ={"OPENAI_API_KEY": "k"}
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["adaptive", "auto", "core"])
@pytest.mark.parametrize(
    "more", [(), ("tools=[builtin]",), ("convergence.criteria.short='At most a page.'",)]
)
def test_the_packaged_templates_can_be_used_with_what_their_calls_have(
    mode: str, more: tuple[str, ...]
):
    job = resolve_job(compose([SIMULATED, f"mode={mode}", *more]), {})
    rehearsal.try_templates(build_process(job, {}))


def test_templates_are_tried_where_prompts_or_schemas_are_a_persons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tried: list[Path | None] = []
    monkeypatch.setattr(
        rehearsal, "try_templates", lambda shared: tried.append(shared.settings.schemas.dir)
    )
    schema = resource_root() / "schemas" / "step.json"
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "step.json").write_text(schema.read_text(encoding="utf-8"))
    for own in (
        [],
        [own_prompts(tmp_path / "own", plan_user="{{ task }}")],
        [f"schemas.dir={tmp_path / 'schemas'}"],
    ):
        Aeon.from_config([SIMULATED, *own], environ={}).close()
    assert tried == [None, tmp_path / "schemas"]


def test_what_is_shown_is_the_form_of_the_mode_in_force():
    core = render(compose([SIMULATED, "mode=core"]), "step")
    adaptive = render(compose([SIMULATED]), "step")
    assert "LLM cycles left" in core.user
    assert "LLM cycles left" not in adaptive.user


def test_a_step_is_shown_with_the_tools_that_it_may_call() -> None:
    settings = compose([SIMULATED, "tools=builtin", "execution.step_tools=[calculator]"])
    shown = render(settings, "step")
    assert "These are the tools that you may call" in shown.system
    assert '"name":"calculator"' in shown.system
    assert '"name":"echo"' not in shown.system
    assert "tool_calls" in shown.schema["properties"]
