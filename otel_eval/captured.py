"""What the code under test emits through the SDK, for the pytest plugin."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from otel_eval.cli.explanation import Explained, Explanation, explain
from otel_eval.cli.steps import plural
from otel_eval.cli.tally import told
from otel_eval.config import Config, load
from otel_eval.decode import decode_sdk
from otel_eval.errors import ConfigError
from otel_eval.extract import join
from otel_eval.job import Job
from otel_eval.model import Evaluation, Json, Score, ToolCall, Trajectory
from otel_eval.recorded import Reader, RecordedTrace
from otel_eval.rules import Rule, default_rules

Rules: TypeAlias = (
    str | Path | Config | Rule | Mapping[str, Json] | Sequence[Rule | Mapping[str, Json]] | None
)
"""A file, a configuration, rules, or nothing for the default rules."""

NO_SPANS: Final = (
    "no spans were captured: is the code under test instrumented, and does it use the global "
    "TracerProvider? One of its own is captured with trajectory.watch(provider)"
)


Acts: TypeAlias = Sequence[tuple[Trajectory, Sequence[Explained]]]
"""What was done, trace by trace, with what each step cost."""


class Scored(float):
    """The mean of all scores; `evaluations` has each of them."""

    _acts: Acts

    def __new__(cls, acts: Acts) -> "Scored":
        evaluations = _evaluations(acts)
        values = [each.outcome.value for each in evaluations if isinstance(each.outcome, Score)]
        made = super().__new__(cls, sum(values) / len(values))
        made._acts = acts
        return made

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        return _evaluations(self._acts)

    def explanation(self) -> list[str]:
        """What the score lacks to 1, and which steps cost it: first what pytest does not cut."""
        return _lines(self._acts, lambda evaluation: _value(evaluation) < 1, steps_first=False)


class Captured:
    """The tool calls of the code under test, read anew each time from what it has emitted."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.spans: list[ReadableSpan] = []
        self._folders = folders

    def __repr__(self) -> str:
        return f"<trajectory of {plural(len(self.spans), 'span')}: {', '.join(self.tools)}>"

    @property
    def trajectories(self) -> list[Trajectory]:
        """One for each trace in which an agent was at work, in the order of time."""
        traces = _traces(self.spans, Reader(default_rules(), all_seen=True))
        found = [each.extraction.trace for each in traces if each.extraction.is_agent_trace]
        return sorted(found, key=lambda each: each.start_ns)

    @property
    def calls(self) -> Sequence[ToolCall]:
        found = self.trajectories
        return join(found, closed_by="root").tool_calls if found else ()

    @property
    def tools(self) -> list[str]:
        """The names of the tools, as often as they were called."""
        return [call.name for call in self.calls]

    def clear(self) -> None:
        """Forget what was captured, for a test of several acts."""
        self.spans.clear()

    def watch(self, provider: Any) -> None:
        """Capture the spans of one more TracerProvider too."""
        tap_of(provider).captured = self

    def score(self, rules: Rules = None, pass_at: float | None = None) -> Scored:
        """The mean score. Raises AssertionError, with what each step cost, where a rule fails.

        `pass_at` takes the place of what the rules say.
        """
        __tracebackhide__ = True
        if pass_at is not None and not 0 <= pass_at <= 1:
            raise ValueError(f"pass_at is {pass_at}; expected a number from 0 to 1")
        try:
            config = _config(rules, self._folders)
            reader = Reader(config.rule_set(), config.keys(), all_seen=True)
        except ConfigError as error:
            # Where in the file is told; where in the code that reads it helps nobody.
            raise error.with_traceback(None) from None
        traces = list(_traces(self.spans, reader))
        acts = [(each.extraction.trace, _explain(each.jobs, pass_at)) for each in traces] + [
            (each.jobs[0].trajectory, _explain(each.jobs, pass_at)) for each in reader.sessions()
        ]
        if problem := _problem(traces, _evaluations(acts)) or _failures(acts):
            raise AssertionError(problem)
        return Scored(acts)


def _traces(spans: Sequence[ReadableSpan], reader: Reader) -> Iterator[RecordedTrace]:
    grouped: dict[str, list[Any]] = {}
    for span in decode_sdk(list(spans)):
        grouped.setdefault(span.trace_id, []).append(span)
    yield from filter(None, map(reader.trace, grouped.values()))


def _config(given: Rules, folders: Iterable[Path]) -> Config:
    match given:
        case None:
            return Config()
        case Config():
            return given
        case Rule():
            return Config(rules=(given,))
        case str() | Path():
            return load(_found(Path(given), folders))
        case Mapping():
            return Config.parse(dict(given) if "rules" in given else {"rules": [dict(given)]})
    if not isinstance(given, Iterable):
        raise TypeError(f"rules is {given!r}; expected a file, a list of rules, or nothing")
    parsed = [each if isinstance(each, Rule) else Rule.parse(each) for each in given]
    return Config(rules=tuple(parsed))


def _found(path: Path, folders: Iterable[Path]) -> Path:
    """Relative to where pytest runs, else to the test's file, else to the root of the project."""
    candidates = [path, *(folder / path for folder in folders)]
    return next((each for each in candidates if each.exists()), path)


def _explain(jobs: Iterable[Job], pass_at: float | None) -> list[Explained]:
    found = explain(jobs)
    if pass_at is None:
        return found
    return [replace(each, evaluation=replace(each.evaluation, pass_at=pass_at)) for each in found]


def _problem(traces: Sequence[RecordedTrace], evaluations: Sequence[Evaluation]) -> str | None:
    """Why there is no score, and so nothing that could have passed."""
    if any(isinstance(each.outcome, Score) for each in evaluations):
        return None
    if not traces:
        off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        return "no spans were captured: OTEL_SDK_DISABLED is true" if off else NO_SPANS
    if not evaluations:
        return f"nothing was scored: no rule matches {plural(len(traces), 'captured trace')}"
    return "\n".join(["nothing was scored:", *(told(each) for each in evaluations)])


def _failures(acts: Acts) -> str | None:
    evaluations = _evaluations(acts)
    failed = sum(map(_is_failed, evaluations))
    if not failed:
        return None
    head = f"{failed} of {plural(len(evaluations), 'evaluation')} failed"
    return "\n".join([head, *_lines(acts, _is_failed)])


def _evaluations(acts: Acts) -> list[Evaluation]:
    return [each.evaluation for _, explained in acts for each in explained]


def _is_failed(evaluation: Evaluation) -> bool:
    return evaluation.verdict in ("fail", "error")


def _value(evaluation: Evaluation) -> float:
    """Of what has no score, nothing is lacking."""
    return evaluation.outcome.value if isinstance(evaluation.outcome, Score) else 1.0


def _lines(
    acts: Acts, is_told: Callable[[Evaluation], bool], *, steps_first: bool = True
) -> list[str]:
    """The steps of each trace that has something to be told, and that."""
    lines: list[str] = []
    for trajectory, explained in acts:
        told = [each for each in explained if is_told(each.evaluation)]
        if told:
            lines += map(click.unstyle, Explanation(trajectory, told).lines(steps_first))
    return lines


class Tap(SpanProcessor):
    """Sits in a provider for good, because the SDK takes none out; hands on while a test runs."""

    def __init__(self) -> None:
        self.captured: Captured | None = None

    def on_end(self, span: ReadableSpan) -> None:
        if self.captured is not None:
            self.captured.spans.append(span)


_TAPS: Final[dict[int, tuple[Any, Tap]]] = {}
"""By the provider's identity, with the provider kept alive so that no identity is used again."""
_OWN: Final[list[TracerProvider]] = []


def tap_of(provider: Any) -> Tap:
    if id(provider) not in _TAPS:
        if not hasattr(provider, "add_span_processor"):
            raise TypeError(
                f"the spans of a {type(provider).__name__} cannot be captured: it has no "
                "add_span_processor; use the TracerProvider of opentelemetry.sdk"
            )
        tap = Tap()
        provider.add_span_processor(tap)
        _TAPS[id(provider)] = provider, tap
    return _TAPS[id(provider)][1]


@contextmanager
def capturing(folders: Sequence[Path] = ()) -> Iterator[Captured]:
    """Capture from the global provider; where there is none, there is one until the end."""
    captured = Captured(folders)
    is_ours = isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    if is_ours:
        trace.set_tracer_provider(_own_provider())
    try:
        captured.watch(trace.get_tracer_provider())
        yield captured
    finally:
        for _, tap in _TAPS.values():
            tap.captured = None
        if is_ours:
            _forget_provider()


def _own_provider() -> TracerProvider:
    """Always the same: tracers that a module made when it was imported stay with their first."""
    if not _OWN:
        _OWN.append(TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False))
    return _OWN[0]


def _forget_provider() -> None:
    """The API has no way back, and other tests may want to set a provider of their own."""
    trace._TRACER_PROVIDER = None
    trace._TRACER_PROVIDER_SET_ONCE = type(trace._TRACER_PROVIDER_SET_ONCE)()
