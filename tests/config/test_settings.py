from pathlib import Path

import pytest
import yaml
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.global_hydra import GlobalHydra
from hydra.version import VersionBase
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from aeon.config.compose.composed import Composed
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import Composition
from aeon.config.load import compose, read_inputs, read_task, require_task, settings_from
from aeon.config.provider import resolve_provider
from aeon.config.settings import Settings, configuration_hash
from aeon.domain.errors import ConfigError, SchemaFileError, TaskTextError
from aeon.llm.settings import OpenAIProvider, SimulatedProvider

CONF = packaged_config_dir()
OPTIONS = sorted(path.relative_to(CONF) for path in CONF.rglob("*.yaml"))
GROUP_OPTIONS = [path for path in OPTIONS if path.parent != Path() and path.parts[0] != "hydra"]
GROUPS = [
    *(
        "provider",
        "roles",
        "reasoning",
        "mode",
        "convergence",
        "ttl",
        "limits",
        "refinement",
        "execution",
        "answer",
    ),
    *(
        "prompts",
        "schemas",
        "tools",
        "memory",
        "store",
        "observability",
        "progress",
        "interaction",
        "sweep",
        "env",
    ),
    "experiment",
]


def error_of(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        compose(list(overrides))
    return caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("depth", [150, 5_000])
def test_a_value_that_is_nested_too_deeply_is_a_mistake_of_the_person(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    assert error_of(f"+inputs={deep}") == (
        "a value of the configuration is nested too deeply to be composed"
    )


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_of_the_design_has_an_option(group: str) -> None:
    assert any(path.parts[0] == group for path in GROUP_OPTIONS)


@pytest.mark.parametrize("option", GROUP_OPTIONS, ids=str)
def test_every_option_of_every_group_composes_and_validates(option: Path) -> None:
    assert isinstance(compose([f"{option.parent}={option.stem}"]), Settings)


@pytest.mark.parametrize("environment_name", ["dev", "prod", "ci"])
@pytest.mark.parametrize("experiment", ["none", "quick", "thorough"])
def test_environments_and_experiments_compose_together(
    environment_name: str, experiment: str
) -> None:
    assert compose([f"env={environment_name}", f"experiment={experiment}"]).env == environment_name


GLOBAL = ("experiment", "mode")


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_file_and_every_key_is_commented(option: Path) -> None:
    lines = (CONF / option).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    depths = ("depth", "typical_steps", "reasoning_mode", "complexity")
    tables = (*depths, "sufficiency", "breadth", "tools", "confidence")
    inside, uncommented = "", []
    for before, line in zip(["", *lines], lines, strict=False):
        key = line.strip().split(":")[0]
        if not line.startswith(" "):
            inside = key
        if (
            option.parts[0] in ("hydra", "config.yaml")
            or not line.strip()
            or line.strip().startswith(("#", "- "))
        ):
            continue
        entry_of_a_commented_table = line.startswith(" ") and inside in (*tables, "params")
        if (
            inside != "defaults"
            and not entry_of_a_commented_table
            and not before.strip().startswith("#")
        ):
            uncommented.append((inside, line))
    headings = (
        {
            "limits",
            "refinement",
            "roles",
            "grader",
            "mode",
            "ttl",
            "answer",
            "convergence",
            "evaluation",
        }
        if option.parts[0] in GLOBAL
        else set()
    )
    assert [line for _, line in uncommented if line.strip().rstrip(":") not in headings] == []


def test_what_the_files_say_is_what_the_code_defaults_to() -> None:
    composed, default = compose().model_dump(), Settings().model_dump()
    modes = composed.pop("reasoning")
    default.pop("reasoning")
    assert composed["provider"].pop("models"), (
        "what OpenAI's models take is known to its file alone"
    )
    assert default["provider"].pop("models") == ()
    assert composed == default
    assert [modes[mode]["effort"] for mode in ("shallow", "balanced", "deep")] == [
        "low",
        "medium",
        "high",
    ]


VARIANTS = [
    path for path in sorted(CONF.glob("*/*.yaml")) if (path.parent / "default.yaml").is_file()
]
VARIANTS = [
    path for path in VARIANTS if path.stem not in ("default", "none")
]  # `none` clears every key for certain


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_variant_of_the_default_holds_only_what_differs(path: Path) -> None:
    usual, own = (
        yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in (path.with_stem("default"), path)
    )
    assert own.pop("defaults") == ["default", "_self_"]
    assert own
    assert [name for name, value in own.items() if value == usual[name]] == []


def test_a_variant_composes_to_the_default_with_its_differences() -> None:
    usual, small = compose(), compose(["limits=small"])
    changed = {"max_seconds": 120, "max_tokens": 200_000, "max_llm_calls": 60, "max_passes": 5}
    assert small.limits == usual.limits.model_copy(update=changed)
    strict = {"completeness": 0.98, "coherence": 0.95, "consistency": 0.95}
    assert compose(["convergence=strict"]).convergence == usual.convergence.model_copy(
        update=strict
    )
    assert compose(["execution=sequential"]).execution == usual.execution.model_copy(
        update={"max_parallel": 1}
    )


@pytest.mark.parametrize(
    "path", sorted(CONF.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_no_file_holds_a_key_that_settings_do_not_have(path: Path) -> None:
    section = getattr(Settings(), path.parent.name, None)
    if not hasattr(section, "model_dump") or path.parent.name == "provider":
        return
    text = path.read_text(encoding="utf-8")
    if text.startswith("# @package"):
        return
    keys = set(yaml.safe_load(text)) - {"defaults"}
    assert keys <= {*section.model_dump(by_alias=True), *type(section).model_fields}


def test_short_paths_reach_their_settings() -> None:
    found = compose(
        [
            "convergence.completeness=0.5",
            "ttl.base=20",
            "limits.max_passes=3",
            "refinement.max_attempts_total=5",
            "execution.max_parallel=4",
            "execution.max_steps=7",
            "reasoning.deep.effort=xhigh",
            "provider.model=some-model",
            "roles.grader.model=judge",
            "ttl.depth.3=3.3",
        ]
    )
    assert (found.convergence.completeness, found.ttl.base, found.limits.max_passes) == (0.5, 20, 3)
    assert (
        found.refinement.max_attempts_total,
        found.execution.max_parallel,
        found.execution.max_steps,
    ) == (5, 4, 7)
    assert (found.reasoning.deep.effort, found.provider.model, found.roles.grader.model) == (
        "xhigh",
        "some-model",
        "judge",
    )
    assert found.ttl.depth[3] == 3.3


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        (
            "convergence.completness=0.9",
            "convergence.completness: unknown key; did you mean `completeness`?",
        ),
        ("completeness=0.9", "did you mean convergence.completeness?"),
        (
            "max_llm_calls=9",
            "did you mean limits.max_llm_calls or batch.max_llm_calls or sweep.max_llm_calls?",
        ),
        ("provider.modle=x", "did you mean `model`?"),
        ("limits.max_pases=3", "did you mean `max_passes`?"),
        ("roles.grader.modell=x", "did you mean `model`?"),
        ("+tasks=x", "did you mean `task`?"),
        ("answer.shema=x", "did you mean `schema`?"),
        (
            "provider.fallbacks=[{provider: groq, modle: m}]",
            "provider.fallbacks.0.modle: unknown key; did you mean",
        ),
    ],
)
def test_an_unknown_key_names_the_nearest_known_one(override: str, meant: str) -> None:
    assert meant in error_of(override)


def test_an_unknown_option_names_the_nearest_and_all_there_are() -> None:
    message = error_of("provider=opnai")
    assert "did you mean provider=openai?" in message
    assert all(f" {name}," in message for name in ("auto", "ollama", "openai", "simulated"))


@pytest.mark.parametrize(
    ("override", "path", "allowed"),
    [
        ("convergence.coherence=1.7", "convergence.coherence=1.7", "less than or equal to 1"),
        ("convergence.coherence=high", "convergence.coherence=high", "valid number"),
        ("output=xml", "output=xml", "'answer' or 'json'"),
        ("progress.kind=loud", "progress.kind=loud", "'auto', 'live', 'plain' or 'none'"),
        ("provider.kind=claude", "provider.kind=claude", "'auto', 'simulated', 'openai'"),
        ("execution.max_parallel=0", "execution.max_parallel=0", "greater than or equal to 1"),
        ("ttl.depth.5=1.0", "ttl", "must not fall"),
        ("refinement.reject_severity=HUGE", "refinement.reject_severity=HUGE", "'CRITICAL'"),
        ("provider.retry.attempts=11", "provider.retry.attempts=11", "less than or equal to 10"),
        ("limits.max_passes=null ".strip() + "x", "limits.max_passes=nullx", "valid integer"),
        ("mode.kind=wild", "mode.kind=wild", "'adaptive'"),
    ],
)
def test_a_bad_value_names_its_path_and_what_is_allowed(
    override: str, path: str, allowed: str
) -> None:
    message = error_of(override)
    assert path in message
    assert allowed in message


def test_all_problems_are_told_at_once() -> None:
    message = error_of("convergence.coherence=1.7", "ttl.base=0", "provder.model=x", "output=xml")
    assert "4 problems" in message
    assert all(
        part in message
        for part in ("convergence.coherence=1.7", "ttl.base=0", "provder", "output=xml")
    )


@pytest.mark.parametrize("override", ["convergence={", "limits.max_passes=[1", "ttl.base=1,2"])
def test_an_override_that_cannot_be_read_is_quoted_back(override: str) -> None:
    assert override in error_of(override)


@pytest.mark.parametrize("override", ["ttl=20", "env=null", "provider={kind: openai2}"])
def test_a_group_is_chosen_by_name(override: str) -> None:
    assert override.split("=")[0] in error_of(override)


def test_an_interpolation_that_leads_nowhere_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="output"):
        settings_from(Composed(OmegaConf.create({"output": "${nowhere}"}), Composition()))


def test_composing_leaves_hydra_as_it_was() -> None:
    version = VersionBase.instance().getbase()
    compose(["convergence=strict"])
    with pytest.raises(ConfigError):
        compose(["convergence=none-such"])
    assert not GlobalHydra.instance().is_initialized()
    assert VersionBase.instance().getbase() is version


def test_a_folder_of_ones_own_comes_before_the_packaged_one_and_need_not_be_complete(
    tmp_path: Path,
) -> None:
    (tmp_path / "ttl").mkdir()
    (tmp_path / "ttl" / "mine.yaml").write_text("base: 3\n", encoding="utf-8")
    (tmp_path / "limits").mkdir()
    (tmp_path / "limits" / "default.yaml").write_text("max_passes: 2\n", encoding="utf-8")
    found = compose(["ttl=mine"], tmp_path)
    assert (found.ttl.base, found.limits.max_passes, found.convergence.completeness) == (3, 2, 0.95)


def test_ones_own_search_path_stays_in_front_of_the_packaged_one(tmp_path: Path) -> None:
    (tmp_path / "first" / "limits").mkdir(parents=True)
    (tmp_path / "first" / "limits" / "mine.yaml").write_text("max_passes: 4\n", encoding="utf-8")
    (tmp_path / "second" / "ttl").mkdir(parents=True)
    (tmp_path / "second" / "ttl" / "mine.yaml").write_text("base: 4\n", encoding="utf-8")
    found = compose(
        [f"hydra.searchpath=[file://{tmp_path / 'second'}]", "ttl=mine"], tmp_path / "first"
    )
    assert found.ttl.base == 4


def test_a_configuration_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        compose([], tmp_path / "nowhere")


@pytest.mark.slow
def test_a_file_that_has_changed_is_composed_as_it_is_now_and_hydra_s_own_way_of_reading_is_left_as_it_was(
    tmp_path: Path,
) -> None:
    own = tmp_path / "limits" / "mine.yaml"
    own.parent.mkdir()
    compose([])
    registered = dict(SourcesRegistry.instance().types)
    for passes in (3, 4):
        own.write_text(f"defaults: [default]\nmax_passes: {passes}\n")
        assert [compose(["limits=mine"], tmp_path).limits.max_passes for _ in range(2)] == [
            passes
        ] * 2
    assert SourcesRegistry.instance().types == registered


SPECIAL = st.sampled_from(list("\\'\"${}[](),=:#~%@!|&*;`<>? \t\r\n"))
LITERAL = st.text(st.one_of(SPECIAL, st.characters(codec="utf-8")), max_size=30)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(LITERAL, min_size=1, max_size=8))
def test_free_text_survives_composition_byte_for_byte(texts: list[str]) -> None:
    named = {f"text-{index}": text for index, text in enumerate(texts)}
    overrides = [f"inputs.{name}={text}" for name, text in named.items()]
    found = compose([f"task={texts[0]}", f"convergence.criteria.mine=.{texts[-1]}", *overrides])
    assert (found.task, found.convergence.criteria["mine"], found.inputs) == (
        texts[0],
        f".{texts[-1]}",
        named,
    )


@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_free_text_is_literal_however_it_is_added(prefix: str) -> None:
    assert compose([f"{prefix}task=a, 'b' ${{c}} [d"]).task == "a, 'b' ${c} [d"


def test_text_that_is_not_valid_unicode_names_the_offset() -> None:
    with pytest.raises(TaskTextError, match=r"task .*U\+D800 at offset 2"):
        compose(["task=ab\ud800"])


def test_the_task_is_read_from_its_file_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "task, (1).md"
    path.write_bytes("\ufeffline one\r\nline two\r".encode())
    assert read_task(Settings(task_file=path)) == "\ufeffline one\r\nline two\r"


def test_a_file_that_is_not_utf8_names_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "task.md"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(TaskTextError, match="0xe9 at offset 3"):
        read_task(Settings(task_file=path))
    with pytest.raises(TaskTextError, match=r"input_files\.x=.*offset 3"):
        read_inputs(Settings(input_files={"x": path}))


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_a_blank_task_is_refused(text: str) -> None:
    with pytest.raises(TaskTextError, match="empty"):
        read_task(Settings(task=text))


def test_one_task_must_be_given_and_only_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no task"):
        require_task(Settings())
    with pytest.raises(ConfigError, match="both"):
        read_task(Settings(task="x", task_file=tmp_path / "x"))
    with pytest.raises(ConfigError, match="missing"):
        read_task(Settings(task_file=tmp_path / "missing"))


def test_inputs_come_as_text_and_from_files_under_different_names(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"from file\r\n")
    assert read_inputs(Settings(inputs={"a": "text"}, input_files={"b": path})) == {
        "a": "text",
        "b": "from file\r\n",
    }
    with pytest.raises(ConfigError, match="both"):
        read_inputs(Settings(inputs={"a": "text"}, input_files={"a": path}))


@pytest.mark.parametrize(
    ("overrides", "environ", "kind"),
    [
        ([], {}, SimulatedProvider),
        ([], {"OPENAI_API_KEY": "k"}, OpenAIProvider),
        ([], {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, OpenAIProvider),
        (["provider.base_url='http://127.0.0.1:1/v1'"], {}, OpenAIProvider),
        (["provider=simulated"], {"OPENAI_API_KEY": "k"}, SimulatedProvider),
        (["env=ci"], {"OPENAI_API_KEY": "k"}, SimulatedProvider),
        (["env=prod"], {"OPENAI_API_KEY": "k"}, OpenAIProvider),
    ],
)
def test_the_provider_is_settled_by_configuration_and_environment(
    overrides: list[str], environ: dict[str, str], kind: type
) -> None:
    assert isinstance(resolve_provider(compose(overrides), environ).provider, kind)


def test_auto_passes_its_keys_on_to_the_provider_it_becomes() -> None:
    auto = compose(["provider.model=m", "provider.seed=7", "provider.latency_seconds=0.5"])
    simulated = resolve_provider(auto, {}).provider
    openai = resolve_provider(auto, {"OPENAI_API_KEY": "k"}).provider
    assert isinstance(simulated, SimulatedProvider)
    assert isinstance(openai, OpenAIProvider)
    assert (simulated.seed, simulated.latency_seconds, simulated.model) == (7, 0.5, "simulated")
    assert openai.model == "m"


def test_the_address_in_the_environment_is_the_providers_unless_one_is_configured() -> None:
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k"}
    found = resolve_provider(compose(["provider=openai"]), environ).provider
    own = resolve_provider(
        compose(["provider=openai", "provider.base_url='http://127.0.0.1:2/v1'"]), environ
    ).provider
    assert isinstance(found, OpenAIProvider)
    assert isinstance(own, OpenAIProvider)
    assert (found.base_url, own.base_url) == ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")


@pytest.mark.parametrize("provider", ["auto", "simulated"])
def test_production_never_falls_back(provider: str) -> None:
    with pytest.raises(ConfigError, match="env=prod"):
        resolve_provider(compose(["env=prod", f"provider={provider}"]), {"OPENAI_API_KEY": "k"})


def test_a_missing_key_is_named_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="MY_KEY") as caught:
        resolve_provider(compose(["provider=openai", "provider.api_key_env=MY_KEY"]), {})
    assert "MY_KEY" in caught.value.hint
    assert "provider.require_key=false" in caught.value.hint


def test_a_server_without_keys_needs_none() -> None:
    without = compose(["provider=openai", "provider.require_key=false"])
    assert isinstance(resolve_provider(without, {}).provider, OpenAIProvider)


@pytest.mark.parametrize(
    ("address", "needed"),
    [
        ("http://localhost:8000/v1", False),
        ("http://127.0.0.1:8000/v1", False),
        ("http://[::1]:8000/v1", False),
        ("http://10.0.0.7:8000/v1", True),
        ("http://localhost.example.com/v1", True),
    ],
)
def test_a_server_on_this_machine_needs_no_key(address: str, needed: bool) -> None:
    settings = compose(["provider=openai", f"provider.base_url='{address}'"])
    if needed:
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            resolve_provider(settings, {})
    else:
        assert isinstance(resolve_provider(settings, {}).provider, OpenAIProvider)
    from_environment = resolve_provider(
        compose(["provider=openai"]), {"OPENAI_BASE_URL": "http://localhost:1/v1"}
    )
    assert isinstance(from_environment.provider, OpenAIProvider)


def test_a_header_whose_variable_is_missing_is_named() -> None:
    settings = compose(["provider=openai", "+provider.extra_headers_env.X-Team=TEAM"])
    with pytest.raises(ConfigError, match="TEAM"):
        resolve_provider(settings, {"OPENAI_API_KEY": "k"})


def test_a_cap_on_cost_needs_a_price_for_every_model() -> None:
    prices = "provider.prices={gpt-5: {input: 1.0, output: 2.0}}"
    environ = {"OPENAI_API_KEY": "k"}
    capped = compose(["provider=openai", "limits.max_cost=1", prices, "roles.grader.model=judge"])
    with pytest.raises(ConfigError, match="judge") as caught:
        resolve_provider(capped, environ)
    assert "gpt-5-mini" not in caught.value.message
    assert (
        resolve_provider(
            compose(["provider=openai", "limits.max_cost=1", prices]), environ
        ).limits.max_cost
        == 1
    )


def test_criteria_come_from_the_configuration_and_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "criteria.yaml"
    path.write_text(
        "cited: Every claim names its source.\nshort: from the file\n", encoding="utf-8"
    )
    found = compose(
        [f"convergence.criteria_file={path}", "convergence.criteria.short=At most, say, a page."]
    )
    assert found.convergence.criteria == {
        "cited": "Every claim names its source.",
        "short": "At most, say, a page.",
    }


@pytest.mark.parametrize("text", ["- a list", "name: 3", "a: [", ""])
def test_a_criteria_file_that_is_no_mapping_to_words_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "criteria.yaml"
    path.write_text(text, encoding="utf-8")
    assert str(path) in error_of(f"convergence.criteria_file={path}")


def test_the_schema_of_the_answer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"type": "object"}', encoding="utf-8")
    assert compose([f"answer.schema={path}"]).answer.json_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n "type": }', ":2:10: not JSON"),
        ('{"properties": {"a": {"type": "nothing"}}}', "#/properties/a/type"),
        ("[]", "an object"),
    ],
)
def test_a_schema_file_that_is_no_schema_names_where(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SchemaFileError) as caught:
        compose([f"answer.schema={path}"])
    assert f"{path}" in caught.value.message
    assert where in caught.value.message


def test_the_configuration_hash_depends_on_what_configures_the_engine_alone(tmp_path: Path) -> None:
    base = compose()
    same = compose(
        [
            "task=x",
            "inputs.a=b",
            "output=json",
            "progress=none",
            "store=cache",
            f"prompts.dir={tmp_path}",
        ]
    )
    assert configuration_hash(same) == configuration_hash(base)
    assert configuration_hash(compose(["convergence.coherence=0.5"])) != configuration_hash(base)
    assert len(configuration_hash(base)) == 64


def test_a_key_of_another_provider_is_unknown_to_the_chosen_one() -> None:
    message = error_of("provider=openai", "provider.seed=1")
    assert "provider.seed: unknown key; allowed are" in message


def test_a_mistyped_key_of_a_check_is_answered_with_those_of_its_type() -> None:
    check = "{type: command, value: [sh, a.sh], fils: [a.sh]}"
    message = error_of(f"convergence.checks.mine={check}")
    assert "mine.fils: unknown key; did you mean `files`? allowed are type, " in message
    assert "timeout_seconds" in message


def test_a_misspelt_key_under_a_name_of_ones_own_keeps_that_name() -> None:
    message = error_of("tools=mcp", "+tools.mcp.servers.clock.comand=[x]")
    assert "tools.mcp.servers.clock.comand: unknown key; did you mean `command`?" in message


def test_true_and_false_are_no_numbers() -> None:
    with pytest.raises(ConfigError, match=r"^ttl\.base: must be a number, not true or false"):
        compose(["ttl.base=true"])


def test_true_and_false_are_kept_where_they_may_be() -> None:
    found = compose(
        ["provider=openai", "provider.require_key=false", "provider.extra_body.stream=true"]
    )
    assert isinstance(found.provider, OpenAIProvider)
    assert (found.provider.require_key, found.provider.extra_body) == (False, {"stream": True})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine", "", "says nothing"),
        ("mine", " \t", "says nothing"),
        *(
            (name, "words", "reason code")
            for name in ("complete", "incoherent", "consistency", "blocking_issue")
        ),
        ("evaluation_unavailable", "words", "reason code"),
        ("omission_detected", "words", "reason code"),
    ],
)
def test_a_criterion_says_something_and_has_a_name_of_its_own(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    assert said in error_of(f"convergence.criteria.{name}={text}")
    path = tmp_path / "criteria.yaml"
    path.write_text(f'{name}: "{text}"\n'.replace("\t", "\\t"), encoding="utf-8")
    message = error_of(f"convergence.criteria_file={path}")
    assert str(path) in message


def test_auto_that_becomes_simulated_waits_as_briefly_unless_told_otherwise() -> None:
    usual = resolve_provider(compose(), {}).provider
    own = resolve_provider(
        compose(["provider.retry.initial_seconds=7", "provider.retry.attempts=2"]), {}
    ).provider
    assert usual.retry == compose(["provider=simulated"]).provider.retry
    assert (own.retry.initial_seconds, own.retry.attempts, own.retry.max_seconds) == (7, 2, 1)


def test_a_reference_that_leads_nowhere_names_the_schema_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(
        '{"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}', encoding="utf-8"
    )
    with pytest.raises(SchemaFileError) as caught:
        compose([f"answer.schema={path}"])
    assert f"{path}#/properties/a/$ref" in caught.value.message
    assert "/$defs/none" in caught.value.message


def test_production_does_not_advise_what_it_refuses() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as refused:
        resolve_provider(compose(["env=prod"]), {})
    assert "env=dev provider=simulated" in refused.value.hint
