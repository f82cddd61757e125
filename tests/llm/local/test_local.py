"""A model in this process. Its weights are random: form and termination are shown, never reasoning."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.errors import ProviderError, RequestRefused, Truncated
from aeon.domain.request import CallName, LLMAdapter, Message, Parameters
from aeon.llm.local import adapter as module
from aeon.llm.schemas import CALLS, load_packaged_schemas
from tests.llm.local.conftest import MakeAdapter, WriteModel
from tests.support.requests import request
from tests.support.timing import SOON
from tests.support.tiny_templates import IM_TEMPLATE

# Every answer to it is short, whatever the dice say.
BOUNDED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["yes", 'no "quotes"', "é\\n", "tab\tnew\nline"]},
        "sure": {"type": ["boolean", "null"]},
        "count": {"type": "integer"},
        "marks": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3},
        "note": {"type": "string", "minLength": 2, "maxLength": 8},
        "detail": {"anyOf": [{"$ref": "#/$defs/detail"}, {"type": "null"}]},
    },
    "required": ["verdict", "sure", "count", "marks", "note", "detail"],
    "additionalProperties": False,
    "$defs": {
        "detail": {
            "type": "object",
            "properties": {"kind": {"const": "one"}},
            "required": ["kind"],
            "additionalProperties": False,
        }
    },
}


def test_it_is_an_adapter(local: MakeAdapter) -> None:
    assert isinstance(local(), LLMAdapter)


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_of_its_schema_whatever_the_weights_say(local: MakeAdapter, seed: int) -> None:
    adapter = local(seed=1000 * seed)
    for sample in range(8):
        response = adapter.complete(request(schema=BOUNDED, sample=sample))
        Draft202012Validator(BOUNDED).validate(json.loads(response.text))
        assert (response.finish_reason, response.synthetic) == ("stop", False)


def test_a_vocabulary_of_the_other_kind_is_held_to_schemas_as_well(
    local: MakeAdapter, write_model: WriteModel
) -> None:
    adapter = local(model_path=write_model(tokenizer="gpt2", chat_template=IM_TEMPLATE))
    for sample in range(8):
        Draft202012Validator(BOUNDED).validate(
            json.loads(adapter.complete(request(schema=BOUNDED, sample=sample)).text)
        )


@pytest.mark.parametrize("call", CALLS)
def test_answers_to_every_call_are_of_its_schema_or_are_cut_off(
    local: MakeAdapter, call: CallName
) -> None:
    adapter = local(schema_in_prompt=False)
    wire = load_packaged_schemas().wire(
        call, tools=("calculator",), criteria=("brief",) if call == "convergence" else ()
    )
    answers = [
        answer for sample in range(6) if (answer := whole(adapter, call, wire.schema, sample))
    ]
    assert answers
    for answer in answers:
        Draft202012Validator(wire.schema).validate(json.loads(answer))


def whole(adapter: LLMAdapter, call: CallName, schema: dict[str, Any], sample: int) -> str:
    """An answer that was not cut off, else nothing."""
    try:
        return adapter.complete(request(call, schema=schema, sample=sample)).text
    except Truncated:
        return ""


def test_a_string_that_never_ends_is_cut_off_and_paid(
    local: MakeAdapter, endless_model: Path
) -> None:
    adapter = local(model_path=endless_model, max_tokens=50)
    with pytest.raises(Truncated, match="cut off after 50 tokens") as raised:
        adapter.complete(request())
    assert raised.value.usage.output_tokens == 50
    assert raised.value.usage.input_tokens > 50
    assert (raised.value.model, raised.value.retryable) == (endless_model.stem, False)
    assert "provider.max_tokens" in raised.value.hint


def test_an_answer_that_fills_the_context_is_cut_off(
    local: MakeAdapter, endless_model: Path
) -> None:
    adapter = local(model_path=endless_model, n_ctx=1024, max_tokens=100_000)
    with pytest.raises(Truncated, match="cut off after") as raised:
        adapter.complete(request())
    assert raised.value.usage.total_tokens == 1024
    assert "provider.n_ctx" in raised.value.hint
    # The context can be used again.
    with pytest.raises(Truncated, match="cut off after"):
        adapter.complete(request(sample=1))


def test_a_prompt_longer_than_the_context_is_refused_with_its_numbers(local: MakeAdapter) -> None:
    adapter = local(n_ctx=512)
    with pytest.raises(
        RequestRefused, match=r"prompt has \d{4} tokens, the context holds 512"
    ) as raised:
        adapter.complete(request(messages=(Message("user", "x" * 1000),)))
    assert "provider.n_ctx" in raised.value.hint
    assert not raised.value.ends_run
    assert adapter.complete(
        request(schema=BOUNDED, messages=(Message("user", "x"),), call="repair")
    )


def test_the_context_may_be_as_long_as_the_model_was_trained_with(local: MakeAdapter) -> None:
    adapter = local(n_ctx=0)
    assert adapter.complete(request(schema=BOUNDED, messages=(Message("user", "x" * 20_000),))).text


def test_tokens_are_counted(local: MakeAdapter) -> None:
    adapter = local()
    first, second = (
        adapter.complete(request(schema=BOUNDED, sample=sample)).usage for sample in (0, 1)
    )
    assert first.requests == 1
    assert first.input_tokens == second.input_tokens > len(json.dumps(BOUNDED))
    assert first.output_tokens > 20


def test_equal_requests_get_equal_answers_and_samples_differ(local: MakeAdapter) -> None:
    def texts(seed: int) -> list[str]:
        adapter = local(seed=seed)
        found = [
            adapter.complete(request(schema=BOUNDED, sample=sample)).text for sample in range(3)
        ]
        adapter.close()
        return found

    assert texts(5) == texts(5)
    assert len({*texts(5), *texts(50)}) == 6


def test_temperature_zero_takes_the_likeliest_whatever_the_seed(local: MakeAdapter) -> None:
    adapter = local()
    coldest = Parameters(temperature=0.0)
    texts = {
        adapter.complete(request(schema=BOUNDED, sample=sample, parameters=coldest)).text
        for sample in (0, 1, 2)
    }
    assert len(texts) == 1


def test_a_requests_own_limit_wins(local: MakeAdapter, endless_model: Path) -> None:
    adapter = local(model_path=endless_model, max_tokens=500)
    with pytest.raises(Truncated, match="after 7 tokens"):
        adapter.complete(request(parameters=Parameters(max_tokens=7, effort="high")))


def test_another_model_is_refused_and_its_own_name_is_not(local: MakeAdapter) -> None:
    adapter = local(model="mine")
    with pytest.raises(RequestRefused, match="requests the model gpt-5; only mine is available"):
        adapter.complete(request(parameters=Parameters(model="gpt-5")))
    response = adapter.complete(request(schema=BOUNDED, parameters=Parameters(model="mine")))
    assert response.model == "mine"


def test_many_threads_take_turns_at_one_model(local: MakeAdapter, loads: list[Path]) -> None:
    adapters = [local(), local()]
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(
                lambda n: adapters[n % 2].complete(request(schema=BOUNDED, sample=n)).text,
                range(16),
            )
        )
    assert all(Draft202012Validator(BOUNDED).is_valid(json.loads(text)) for text in done)
    assert len(loads) == 1


def test_another_model_takes_the_place_of_the_one_in_memory(
    local: MakeAdapter, loads: list[Path], write_model: WriteModel
) -> None:
    one, other = local(), local(model_path=write_model(seed=1))
    for adapter in (one, other, other, one):
        adapter.complete(request(schema=BOUNDED))
    assert len(loads) == 3
    assert module._in_memory is not None
    one.close()
    other.close()
    assert module._in_memory is None


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were loaded."""
    found: list[Path] = []
    load = module.LocalModel

    def noted(loading: Any) -> Any:
        found.append(loading.path)
        return load(loading)

    monkeypatch.setattr(module, "LocalModel", noted)
    return found


def test_closing_ends_the_call_under_way_and_the_ones_that_wait(
    local: MakeAdapter, endless_model: Path
) -> None:
    adapter = local(model_path=endless_model, n_ctx=65536, max_tokens=60_000)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(adapter.complete, request(sample=sample)) for sample in (0, 1)]
        wait_until(lambda: module._lock.locked() and module._in_memory is not None)
        time.sleep(0.05)
        adapter.close()
        for call in calls:
            with pytest.raises(ProviderError, match="was closed"):
                call.result(timeout=10)
    assert module._in_memory is None


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_closed_adapter_answers_again(local: MakeAdapter) -> None:
    adapter = local()
    before = adapter.complete(request(schema=BOUNDED)).text
    adapter.close()
    adapter.close()
    assert adapter.complete(request(schema=BOUNDED)).text == before


def test_a_call_that_takes_too_long_is_ended_and_paid(
    local: MakeAdapter, endless_model: Path
) -> None:
    adapter = local(model_path=endless_model, n_ctx=65536, max_tokens=60_000, timeout_seconds=1.0)
    started = time.monotonic()
    with pytest.raises(ProviderError, match=r"no answer to the plan call within 1 s") as raised:
        adapter.complete(request())
    assert time.monotonic() - started < SOON
    assert not raised.value.retryable
    assert raised.value.usage.output_tokens > 0


def test_an_interrupt_between_two_tokens_leaves_the_model_usable(
    local: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, other = local(), local()
    expected = adapter.complete(request(schema=BOUNDED)).text
    answer = module.LocalModel.answer

    def interrupted(self: Any, *args: Any, **given: Any) -> Any:
        for number, piece in enumerate(answer(self, *args, **given)):
            if number == 5:
                raise KeyboardInterrupt
            yield piece

    with monkeypatch.context() as patched:
        patched.setattr(module.LocalModel, "answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            adapter.complete(request(schema=BOUNDED))
    assert not module._lock.locked()
    assert other.complete(request(schema=BOUNDED)).text == expected


@pytest.mark.parametrize("size", [4, 40, 4000, -1000])
def test_a_broken_file_is_named_with_the_reason(
    local: MakeAdapter, tiny_model: Path, tmp_path: Path, size: int
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_model.read_bytes()[:size])
    adapter = local(model_path=broken)
    with pytest.raises(
        ProviderError, match=r"broken\.gguf: the model could not be loaded: .+"
    ) as raised:
        adapter.complete(request())
    assert raised.value.ends_run
    assert "complete" in raised.value.hint


def test_nothing_is_written_to_the_terminal(
    local: MakeAdapter, capfd: pytest.CaptureFixture[str]
) -> None:
    adapter = local()
    adapter.complete(request(schema=BOUNDED))
    adapter.close()
    assert capfd.readouterr() == ("", "")
