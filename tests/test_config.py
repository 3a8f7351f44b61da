import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from otel_eval import config
from otel_eval.config import Config
from otel_eval.document import read
from otel_eval.errors import ConfigError
from otel_eval.evaluators import BUILT_IN, Evaluator, find
from otel_eval.extract import Keys
from otel_eval.quantities import host_and_port
from otel_eval.rules import Match, Rule, default_rules
from otel_eval.sinks.log_events import LogEventSink
from otel_eval.sinks.metrics import MetricsSink
from otel_eval.sinks.span_events import SpanEventSink
from otel_eval.validation import join
from tests.sinks.builders import evaluation

EXAMPLE = Path(__file__).parent.parent / "config.example.yaml"
RULE = {"name": "loops", "evaluators": [{"type": "tool-loop"}]}


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Config.parse(text, "eval.yaml")
    return list(caught.value.problems)


# What a file says.


def test_without_a_file_everything_has_its_default() -> None:
    assert (
        Config.parse("") == Config.parse({}) == Config.parse("rules:\nemit:\nforward:") == Config()
    )
    assert Config().rule_set().rules == default_rules().rules


def test_an_empty_list_of_rules_is_no_rules() -> None:
    assert Config.parse("rules: []").rule_set().rules == ()


def test_rules_are_parsed_and_keep_their_order() -> None:
    found = Config.parse({"rules": [RULE, {**RULE, "name": "b", "match": {"agent": "shop-*"}}]})

    assert [rule.name for rule in found.rule_set().rules] == ["loops", "b"]
    assert found.rules is not None
    assert found.rules[1].match == Match(agent="shop-*")


def test_rules_may_be_handed_in() -> None:
    rule = Rule.parse(RULE)

    assert Config(rules=(rule,)).rule_set().rules == (rule,)
    assert Config.parse({"rules": [rule]}).rule_set().rules == (rule,)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("500ms", 0.5), ("90", 90), (90, 90), ("1h30m", 5400), ("1.5s", 1.5), ("2d", 172800), (0, 0)],
)
def test_durations_have_units_or_are_seconds(written: str | int, seconds: float) -> None:
    assert Config.parse({"grouping": {"idle": written}}).grouping_limits().idle == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [(64, 64 << 20), ("64", 64 << 20), ("64MiB", 64 << 20), ("1 GiB", 1 << 30), ("500KB", 500_000)],
)
def test_sizes_have_units_or_are_mebibytes(written: str | int, size: int) -> None:
    given = {"grouping": {"max_buffer_mib": written, "max_trace_mib": 0.25}}

    assert Config.parse(given).grouping_limits().max_buffer_bytes == size


def test_a_front_doors_own_default_holds_where_the_file_says_nothing() -> None:
    given = Config.parse("grouping: {idle: 1m}")

    limits = given.grouping_limits(settle=2.0, idle=7.0)

    assert (limits.settle, limits.idle, limits.max_age) == (2.0, 60.0, 3600.0)


def test_extra_keys_go_to_extraction() -> None:
    given = Config.parse("extract: {agent_keys: [acme.agent], session_keys: [acme.chat]}")

    assert given.keys() == Keys(agent=("acme.agent",), session=("acme.chat",))


def test_variables_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EVAL_TEST_TOKEN", "0123")
    text = 'receivers: {otlp: {auth: {bearer_tokens: ["${env:OTEL_EVAL_TEST_TOKEN}"]}}}'

    assert Config.parse(text).receivers.otlp.auth.bearer_tokens == ("0123",)


@pytest.mark.parametrize(
    ("endpoint", "parts"),
    [("127.0.0.1:4317", ("127.0.0.1", 4317)), ("[::1]:0", ("::1", 0)), (":80", ("0.0.0.0", 80))],
)
def test_an_address_has_a_host_and_a_port(endpoint: str, parts: tuple[str, int]) -> None:
    given = Config.parse({"admin": {"endpoint": endpoint}})

    assert host_and_port(given.admin.endpoint) == parts


# Loading.


def test_a_file_is_loaded_and_named_in_problems(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_bytes(b"\xef\xbb\xbflog: {level: debug}\n")
    bad.write_text("log:\n  level: loud\n")

    assert config.load(good).log.level == "debug"
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(bad))}:2: log\.level: should be"):
        config.load(str(bad))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"log: {level: debug}")))

    assert config.load("-").log.level == "debug"


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match=r"missing\.yaml: No such file"):
        config.load(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="binary: not UTF-8 text"):
        config.load(binary)


# Problems.


def test_every_problem_of_a_file_is_told_at_once_in_the_order_of_the_text() -> None:
    text = """\
gruping: {}
grouping:
  setle: 5s
  idle: 5x
  max_age: true
admin: 5
emit:
  events: [log, trace]
  metrics: {labels: {agent: x, a-b: y, user: user.id}, max_agents: -1}
forward: {mode: thru}
log: {level: ${env:OTEL_EVAL_NOT_SET}}
rules:
  - name: a
    mach: {}
    match: {agnt: x, attributes: {a: [1]}}
    alert: {fore: 1m}
    per: month
    evaluators: [{type: tool-loop}]
  - name: a
    evaluators: []
  - 5
  - evaluators: [{type: tool-loop}]
  - {name: b, evaluators: [{type: trajectory-judge, expected_behavior: asks}]}
""".replace("${env:OTEL_EVAL_NOT_SET}", '"${env:OTEL_EVAL_NOT_SET}"')

    assert problems(text) == [
        "eval.yaml:1: gruping: unknown key (did you mean grouping?)",
        "eval.yaml:3: grouping.setle: unknown key (did you mean settle?)",
        "eval.yaml:4: grouping.idle: '5x' is no duration; write it like 500ms, 15m or 1h30m",
        "eval.yaml:5: grouping.max_age: a number is needed, not true or false",
        "eval.yaml:6: admin: should be a mapping, found 5",
        "eval.yaml:8: emit.events[1]: should be 'log' or 'span', found 'trace'",
        "eval.yaml:9: emit.metrics.labels.agent: "
        "otel_eval sets this label itself; choose another name",
        "eval.yaml:9: emit.metrics.labels.a-b: no label name; use letters, digits and _",
        "eval.yaml:9: emit.metrics.labels.user: "
        "user.id has a value of its own per session, trace or person",
        "eval.yaml:9: emit.metrics.max_agents: should be greater than or equal to 0, found -1",
        "eval.yaml:10: forward.endpoint: missing; it is required here",
        "eval.yaml:10: forward.mode: should be 'through' or 'attach', found 'thru'",
        "eval.yaml:11: log.level: the environment variable OTEL_EVAL_NOT_SET is not set; "
        "set it or write ${env:OTEL_EVAL_NOT_SET:-default}",
        "eval.yaml:14: rules[0].mach: unknown key (did you mean match?)",
        "eval.yaml:15: rules[0].match.agnt: unknown key (did you mean agent?)",
        "eval.yaml:15: rules[0].match.attributes.a: should be text; put it in quotes, found a list",
        "eval.yaml:16: rules[0].alert.fore: unknown key (did you mean for?)",
        "eval.yaml:17: rules[0].per: should be 'trace', 'run' or 'session', found 'month'",
        "eval.yaml:19: rules[1].name: rules[0] is called 'a' too; names must differ",
        "eval.yaml:20: rules[1].evaluators: is empty; give at least one",
        "eval.yaml:21: rules[2]: should be a mapping with name and evaluators, found 5",
        "eval.yaml:22: rules[3].name: missing; it is required here",
        "eval.yaml:23: rules[4].evaluators[0].model: "
        "missing; name a model here, or in judge.model for all",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[1]", "should be sections such as rules:, found a list", id="no mapping"),
        pytest.param("rules: 5", "rules: should be a list of rules, found 5", id="no list"),
        pytest.param(
            "rules: {a: 1}", "rules: should be a list of rules, found a mapping", id="map"
        ),
        pytest.param("log: {}\nlog: {}", "log: given twice, first in line 1; keep one", id="twice"),
        pytest.param(
            "admin: {endpoint: 9464}", "admin.endpoint: should be text; put it in quotes", id="text"
        ),
        pytest.param("admin: {endpoint: 'x:70000'}", "admin.endpoint: no address", id="port"),
        pytest.param(
            "forward: {endpoint: 'ftp://x'}", "forward.endpoint: no endpoint; write", id="scheme"
        ),
        pytest.param(
            "grouping: {max_buffer_mib: 5 apples}", "grouping.max_buffer_mib: no size", id="size"
        ),
        pytest.param(
            "grouping: {max_trace_mib: 1GiB}",
            "grouping.max_buffer_mib: must not be smaller",
            id="fits",
        ),
        pytest.param(
            "receivers: {otlp: {grpc: {tls: {cert_file: a}}}}",
            "receivers.otlp.grpc.tls: cert_file and key_file go together",
            id="half a certificate",
        ),
        pytest.param(
            "receivers: {otlp: {http: {tls: {client_ca_file: a}}}}",
            "receivers.otlp.http.tls: client_ca_file needs",
            id="mTLS without TLS",
        ),
        pytest.param(
            "receivers: {otlp: {auth: {bearer_tokens: ['']}}}",
            "receivers.otlp.auth.bearer_tokens: an empty token lets everyone in",
            id="empty token",
        ),
        pytest.param("judge: {model: gpt-5}", "judge.model: no provider; write", id="provider"),
        pytest.param("judge: {redact: ['(']}", "judge.redact[0]: not an RE2", id="redact"),
        pytest.param("journal: {sync: never}", "journal.path: missing", id="journal"),
        pytest.param(
            "emit: {metrics: {interval: 0}}",
            "emit.metrics.interval: should be greater than 0, found 0",
            id="no interval",
        ),
        pytest.param(
            "grouping: {idle: .inf}", "grouping.idle: should be a finite number", id="endless"
        ),
        pytest.param("zzz: 1", "zzz: unknown key (known here: admin, emit, extract", id="far off"),
    ],
)
def test_a_problem_says_what_was_found_and_what_would_be_right(text: str, problem: str) -> None:
    line = text.count("\n") + 1

    assert problems(text)[0].startswith(f"eval.yaml:{line}: {problem}")


def test_a_mapping_has_places_but_no_lines() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.parse({"rules": [{**RULE, "per": "day"}]})

    assert caught.value.problems[0].startswith("rules[0].per: should be")


def test_a_key_of_a_mapping_that_is_no_text_is_unknown() -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        Config.parse({5: {}})  # type: ignore[dict-item]  # what a careless caller may hand in


def test_secrets_are_not_repeated() -> None:
    text = (
        "receivers: {otlp: {auth: {bearer_tokens: [918273]}}}\n"
        "forward: {endpoint: 'http://x', headers: {authorization: 918273}}"
    )
    fine = Config.parse(text.replace("918273", "'918273'"))

    assert "918273" not in "\n".join(problems(text))
    assert "918273" not in repr(fine)


def test_unknown_keys_in_an_evaluator_get_a_hint_at_every_level() -> None:
    text = """\
rules:
  - name: a
    evaluators:
      - type: tool-loop
        max_repeat: 2
      - type: tool-call-args
        tool_calls:
          - name: search
            args: {}
            arg: {}
"""

    first, second = problems(text)

    assert first.startswith("eval.yaml:5: rules[0].evaluators[0].max_repeat: unknown ")
    assert "did you mean max_repeats?" in first
    assert second.startswith("eval.yaml:10: rules[0].evaluators[1].tool_calls[0].arg: unknown ")
    assert "did you mean args?" in second


# The hash.


def test_the_hash_changes_with_the_rules_and_with_nothing_else() -> None:
    base = Config.parse({"rules": [RULE]})
    same = Config.parse({"rules": [RULE], "log": {"level": "debug"}})
    others = [
        Config.parse({"rules": [{**RULE, **change}]})
        for change in (
            {"name": "b"},
            {"pass_at": 0.5},
            {"match": {"agent": "x"}},
            {"evaluators": [{"type": "tool-loop", "max_repeats": 2}]},
        )
    ]

    assert re.fullmatch("[0-9a-f]{12}", base.hash)
    assert same.hash == base.hash
    assert len({base.hash, Config().hash, *(other.hash for other in others)}) == 6


def test_the_hash_is_the_same_in_every_process() -> None:
    script = "from otel_eval.config import Config; print(Config().hash)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == Config().hash


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        yield path
        return
    for step in value if isinstance(value, dict) else range(len(value)):
        yield from leaves(value[step], (*path, step))


def changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case float():
            return value / 2
        case int():
            return value + 1
    return f"{value}x"


def test_the_hash_changes_with_every_value_in_the_examples_rules() -> None:
    rules = read(EXAMPLE.read_text()).data["rules"]
    hashes = {Config.parse({"rules": rules}).hash}
    tried = 0
    for *path, last in leaves(rules):
        copy = deepcopy(rules)
        target = reduce(getitem, path, copy)
        target[last] = changed(target[last])
        with suppress(ConfigError):
            hashes.add(Config.parse({"rules": copy}).hash)
            tried += 1

    assert tried > 40
    assert len(hashes) == tried + 1


def test_whatever_a_rule_expects_has_a_hash() -> None:
    odd = {"q": 10**30, "text": "\ud800", "deep": [{"x": None}]}
    call = {"type": "tool-call-args", "tool_calls": [{"name": "a", "args": odd}]}

    assert Config.parse({"rules": [{"name": "odd", "evaluators": [call]}]}).hash


class Peculiar(Evaluator):
    """A plug-in with fields that JSON does not know."""

    words: frozenset[str] = frozenset()
    judge: Callable[[], object] = object


def test_the_hash_does_not_depend_on_where_a_plugins_objects_lie() -> None:
    def hashed(**fields: Any) -> str:
        rule = Rule(name="a", evaluators=(Peculiar(type="peculiar", **fields),))
        return Config(rules=(rule,)).hash

    assert hashed(words={"a", "b"}, judge=len) == hashed(words={"b", "a"}, judge=len)
    assert len({hashed(words={"a"}), hashed(words={"b"}), hashed(judge=len)}) == 3
    assert hashed(judge=partial(len)) == hashed(judge=partial(len))


# The example and the schema.


def options(model: type[BaseModel], place: str = "") -> Iterator[str]:
    """Every option there is, by place; `rules[0]` stands for any rule."""
    for name, field in model.model_fields.items():
        where = join(place, field.alias or name)
        yield where
        for inner in models(field.annotation):
            yield from options(inner, f"{where}[0]" if inner is Rule else where)


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in getattr(annotation, "__args__", ()):
        yield from models(each)


def places(value: object, place: str = "") -> Iterator[str]:
    yield place
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from places(inner, join(place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from places(inner, join(place, at))


def switched_on(text: str) -> str:
    return re.sub(r"(?m)^( *)#(?=[a-z]|  )", r"\1", text)


def test_the_example_loads_as_it_is_and_with_everything_switched_on() -> None:
    text = EXAMPLE.read_text()

    assert Config.parse(text).forward is None
    assert Config.parse(switched_on(text)).forward is not None


def test_the_example_shows_every_option() -> None:
    shown = set(places(read(switched_on(EXAMPLE.read_text())).data))
    every = {each for each in options(Config) if ".evaluators." not in each}

    assert len(every) > 90
    assert every - shown == set()


def test_the_example_shows_every_evaluator_with_all_its_fields() -> None:
    rules = Config.parse(switched_on(EXAMPLE.read_text())).rules or ()
    shown = {each.type: each.model_fields_set for rule in rules for each in rule.evaluators}
    common = set(Evaluator.model_fields)
    every = {name: set(found.model_fields) for name in BUILT_IN if (found := find(name))}

    missing = {name: fields - shown.get(name, set()) - common for name, fields in every.items()}

    assert {name: fields for name, fields in missing.items() if fields} == {}
    assert shown.keys() >= every.keys()
    assert shown["tool-call-count"] >= common - {"type"}


def test_the_values_of_the_example_are_the_defaults() -> None:
    data = read(EXAMPLE.read_text()).data
    del data["rules"]

    assert Config.parse(data) == Config()


def test_the_schema_knows_every_option_and_fits_the_example() -> None:
    schema = json.loads(json.dumps(config.schema()))

    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    assert list(checker.iter_errors(read(EXAMPLE.read_text()).data)) == []
    assert list(checker.iter_errors(read(switched_on(EXAMPLE.read_text())).data)) == []
    assert not checker.is_valid({"gruping": {}})
    assert not checker.is_valid({"grouping": {"idle": "5x"}})
    wrong = {"type": "tool-loop", "max_repeat": 2}
    assert not checker.is_valid({"rules": [{"name": "a", "evaluators": [wrong]}]})


# What is built from it.


def test_in_process_sinks_use_the_providers_handed_in() -> None:
    reader, exporter = InMemoryMetricReader(), InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    given = Config.parse({"rules": [RULE]})

    sinks = config.in_process_sinks(
        given,
        meter_provider=MeterProvider([reader]),
        logger_provider=LoggerProvider(),
        tracer_provider=tracers,
        pipeline=lambda: {"otel_eval.spans.received": {(): 7}},
    )
    for sink in sinks:
        sink.emit([evaluation()])

    assert [type(sink) for sink in sinks] == [MetricsSink, LogEventSink, SpanEventSink]
    (span,) = exporter.get_finished_spans()
    assert span.events[0].attributes is not None
    assert span.events[0].attributes["otel_eval.config_hash"] == given.hash
    data = reader.get_metrics_data()
    assert data is not None
    names = {metric.name for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert {"otel_eval.score", "otel_eval.spans.received"} <= names


@pytest.mark.parametrize(
    ("events", "own_spans", "kinds"),
    [
        pytest.param(["log"], True, [MetricsSink, LogEventSink], id="log"),
        pytest.param(["span"], True, [MetricsSink, SpanEventSink], id="span"),
        pytest.param(["span"], False, [MetricsSink], id="events on copies"),
        pytest.param([], True, [MetricsSink], id="neither"),
    ],
)
def test_events_are_those_asked_for(events: list[str], own_spans: bool, kinds: list[type]) -> None:
    given = Config.parse({"emit": {"events": events}})

    sinks = config.in_process_sinks(given, evaluation_spans=own_spans)

    assert [type(sink) for sink in sinks] == kinds


def test_agents_named_in_rules_keep_their_names() -> None:
    rules = [{**RULE, "name": name, "match": {"agent": name}} for name in ("billing", "a-*", "/x/")]
    given = Config.parse({"rules": rules, "emit": {"metrics": {"max_agents": 0}}})

    labels = given.labels()

    assert [labels.agent(name) for name in ("billing", "a-1")] == ["billing", "__other__"]


def test_the_scrape_page_has_the_configured_labels() -> None:
    given = Config.parse("emit: {metrics: {labels: {service: service.name}}}")
    sink = config.prometheus_sink(given)

    sink.emit([evaluation()])

    assert b'service=""' in sink.page()[0]


def test_nothing_is_pushed_without_an_endpoint() -> None:
    assert config.pushed_metrics(Config()) is None


def test_a_missing_extra_is_named() -> None:
    told = pytest.raises(ConfigError, match=r"grpc is not installed.*'otel-eval\[sidecar\]'")

    with told, config.extra("sidecar"):
        raise ModuleNotFoundError("no", name="grpc")


def test_importing_the_configuration_needs_no_extra() -> None:
    script = (
        "import sys, otel_eval.config\n"
        "heavy = {'grpc', 'prometheus_client', 'starlette', 'uvicorn', 'pydantic_ai'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True)
