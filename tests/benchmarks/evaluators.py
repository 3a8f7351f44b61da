"""The speed of the evaluators, in one run against UiPath's on the same calls.

Needs the extra `bench`. Only scoring is timed: on both sides the tool calls are extracted before.
By itself, at the top of the repository, `python -m tests.benchmarks.evaluators` also shows how
every evaluator grows and what hard cases take, and ends with status 1 if a goal is missed.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any, Final

from otel_eval.evaluators import parse
from otel_eval.model import ToolCall, Trajectory
from tests.benchmarks.rows import Row

try:
    from uipath.eval._helpers import evaluators_helpers as peer
    from uipath.eval.models.models import ToolCall as PeerCall
    from uipath.eval.models.models import ToolOutput as PeerOutput
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}: pip install 'otel-eval[bench]'") from None

SIZES: Final = (10, 100, 1000)
GOALS: Final[Mapping[str, tuple[int, ...]]] = {
    "tool-call-order": (8, 100, 1000),
    "tool-call-args": (5, 20, 100),
    "tool-call-args, some of the keys": (5, 20, 100),
    "tool-call-args, one in ten changed": (5, 20, 100),
    "tool-call-count": (0, 0, 0),
    "tool-call-output": (0, 0, 0),
}
LINEAR: Final = ("tool-call-count", "tool-call-output", "tool-call-accuracy")
MOST_GROWTH: Final = 20  # from 100 to 1000 calls; 10 is exactly linear
MOST_MS_EQUAL: Final = 5
MOST_MS_ADVERSARIAL: Final = 100
TOOLS: Final = 10
Run = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measurement and whether it is good enough."""

    what: str
    figures: str
    good: bool = True

    def __str__(self) -> str:
        return f"{self.what:<52} {self.figures:<56} {'' if self.good else 'MISSED'}".rstrip()


def seconds(run: Run) -> float:
    """The best of some rounds, in time of this thread: what else the machine does is left out."""
    times = max(1, round(0.002 / _once(run, 1)))
    rounds = [_once(run, times)]
    while sum(rounds) * times < 0.3:
        rounds.append(_once(run, times))
    return min(rounds)


def _once(run: Run, times: int) -> float:
    began = thread_time()
    for _ in range(times):
        run()
    return (thread_time() - began) / times


def arguments(i: int) -> dict[str, Any]:
    return {"query": f"about {i}", "limit": i % 7}


def made(size: int) -> Trajectory:
    calls = [
        ToolCall(
            name=f"tool_{i % TOOLS}",
            arguments=arguments(i),
            output=f"result {i}",
        )
        for i in range(size)
    ]
    return Trajectory(trace_id="0" * 32, tool_calls=calls)


def expectations(size: int) -> dict[str, dict[str, Any]]:
    """The calls made; every ninth is left out of the order, every tenth has another output."""
    calls = made(size).tool_calls
    args = [{**arguments(i), "limit": -1} if i % 10 == 9 else arguments(i) for i in range(size)]
    named = list(zip([call.name for call in calls], args, strict=True))
    outputs = ["changed" if i % 10 == 9 else call.output for i, call in enumerate(calls)]
    return {
        "tool-call-count": {
            "tool_calls_count": {f"tool_{i}": ("=", size // TOOLS) for i in range(TOOLS)}
        },
        "tool-call-order": {
            "tool_calls_order": [name for i, (name, _) in enumerate(named) if i % 9]
        },
        "tool-call-args": {
            "tool_calls": [{"name": call.name, "args": call.arguments} for call in calls],
            "subset": True,
        },
        "tool-call-args, some of the keys": {
            "tool_calls": [
                {"name": call.name, "args": {"query": call.arguments["query"]}} for call in calls
            ],
            "subset": True,
        },
        "tool-call-args, one in ten changed": {
            "tool_calls": [{"name": name, "args": each} for name, each in named],
            "subset": True,
        },
        "tool-call-output": {
            "tool_outputs": [
                {"name": call.name, "output": each}
                for call, each in zip(calls, outputs, strict=True)
            ]
        },
        "tool-call-accuracy": {"expected": [{"tool": name, "args": each} for name, each in named]},
    }


def type_of(case: str) -> str:
    return case.partition(",")[0]


def own_run(case: str, size: int) -> Run:
    evaluator = parse({"type": type_of(case), **expectations(size)[case]})
    trajectory = made(size)
    return lambda: evaluator.evaluate(trajectory)


def peer_run(case: str, size: int) -> Run:
    expected, calls = expectations(size)[case], made(size).tool_calls
    actual = [PeerCall(name=call.name, args=call.arguments) for call in calls]
    match type_of(case):
        case "tool-call-order":
            order = expected["tool_calls_order"]
            return lambda: peer.tool_calls_order_score_with_ids(actual, order)
        case "tool-call-args":
            wanted = [PeerCall(**each) for each in expected["tool_calls"]]
            return lambda: peer.tool_calls_args_score(actual, wanted, subset=True)
        case "tool-call-output":
            outputs = [PeerOutput(name=call.name, output=call.output) for call in calls]
            asked = [PeerOutput(**each) for each in expected["tool_outputs"]]
            return lambda: peer.tool_calls_output_score(outputs, asked)
    counts = expected["tool_calls_count"]
    return lambda: peer.tool_calls_count_score(peer.count_tool_calls_by_name_and_id(actual), counts)


def rows(quick: bool) -> Iterator[Row]:
    """How many times as fast as the peer."""
    for case, goals in GOALS.items():
        for size, goal in zip(SIZES[: 1 if quick else None], goals, strict=False):
            own, other = seconds(own_run(case, size)), seconds(peer_run(case, size))
            yield Row(
                what=f"{case}, {size} calls, times as fast",
                against="uipath",
                value=other / own,
                goal=goal or None,
                at_least=True,
                note=f"{own * 1e6:,.1f} µs, uipath {other * 1e6:,.1f}",
            )


def against_the_peer() -> Iterator[Line]:
    for row in rows(quick=False):
        figures = f"{row.note}, {row.figure} {row.wanted}"
        yield Line(what=row.what, figures=figures, good=row.is_met is not False)


def growth() -> Iterator[Line]:
    for type_id in LINEAR:
        small, large = (seconds(own_run(type_id, size)) for size in SIZES[1:])
        yield Line(
            what=f"{type_id}, from 100 to 1000 calls",
            figures=f"{large / small:10.1f} times",
            good=large / small <= MOST_GROWTH,
        )


def equal_calls() -> dict[str, dict[str, Any]]:
    """A thousand expectations, each with one call of equal arguments."""
    calls = made(1000).tool_calls
    named = [{"name": call.name, "args": call.arguments} for call in calls]
    shuffled = random.Random(7).sample(named, len(named))
    match = {"type": "trajectory-match", "expected": named}
    loose = {**match, "expected": shuffled}
    return {
        **{case: {"type": type_of(case), **each} for case, each in expectations(1000).items()},
        "tool-call-args, shuffled": {"type": "tool-call-args", "tool_calls": shuffled},
        **{f"trajectory-match, {mode}": {**match, "mode": mode} for mode in ("exact", "in_order")},
        **{
            f"trajectory-match, {mode}, shuffled": {**loose, "mode": mode}
            for mode in ("any_order", "unordered", "subset")
        },
        "tool-allowlist": {"type": "tool-allowlist", "allowed": "tool_[0-8]", "required": "end"},
        "tool-error-rate": {"type": "tool-error-rate"},
        "tool-loop": {"type": "tool-loop"},
        "tool-budget": {"type": "tool-budget", "max_calls": 10, "max_duration": "1m"},
    }


def one_tool() -> Trajectory:
    """A thousand calls of one tool with many arguments in common."""
    pick = random.Random(11)
    calls = [
        ToolCall(
            name="tool",
            arguments={
                "a": pick.randrange(30),
                "b": pick.randrange(30),
                "c": pick.randrange(3),
                "text": f"about {pick.randrange(200)}",
            },
            output=pick.randrange(5),
        )
        for _ in range(1000)
    ]
    return Trajectory(trace_id="0" * 32, tool_calls=calls)


def wanted_of_one_tool() -> list[dict[str, Any]]:
    """Expectations that overlap in every way, so that hardly one has a single call to take."""
    pick = random.Random(13)
    return [
        {"name": "tool", "args": {name: pick.randrange(30) for name in names}}
        for names in (pick.choice(["a", "b", "c", "ab", "bc", "ac"]) for _ in range(1000))
    ]


def ladder() -> list[dict[str, Any]]:
    """Ever wider ranges: what one expectation takes, all the later ones want as well."""
    return [{"name": "tool", "args": {"a": {"$range": [0, i / 33]}}} for i in range(1000)]


def matchers() -> list[dict[str, Any]]:
    """Matchers of every width that overlap."""
    kinds: list[Callable[[int], Any]] = [
        lambda i: {"a": {"$any": True}, "b": i % 30},
        lambda i: {"a": {"$in": [i % 30, i % 7, {"$type": "string"}]}},
        lambda i: {"text": {"$regex": f"^about .*{i % 50}$"}},
        lambda i: {"text": {"$regex": "about"}, "c": i % 3},
    ]
    return [{"name": "tool", "args": kinds[i % len(kinds)](i)} for i in range(1000)]


def adversarial() -> dict[str, dict[str, Any]]:
    wanted, outputs = wanted_of_one_tool(), [{"name": "tool", "output": 1}] * 1000
    accuracy = [{"tool": each["name"], "args": each["args"]} for each in wanted]
    others = {"a": 1, "b": 1, "c": 1, "text": {"$any": True}}
    full = [{**each, "args": {**others, **each["args"]}} for each in wanted]
    match = {"type": "trajectory-match", "partial": True}
    modes = ("exact", "in_order", "any_order", "unordered", "subset")
    return {
        "tool-call-args": {"type": "tool-call-args", "tool_calls": wanted},
        "tool-call-args, ranges": {"type": "tool-call-args", "tool_calls": ladder()},
        "tool-call-args, matchers": {"type": "tool-call-args", "tool_calls": matchers()},
        "tool-call-output": {"type": "tool-call-output", "tool_outputs": outputs},
        "tool-call-accuracy": {"type": "tool-call-accuracy", "expected": accuracy},
        "tool-call-order": {"type": "tool-call-order", "tool_calls_order": [["tool"] * 10] * 100},
        **{
            f"trajectory-match, {mode}, superset": {
                **match,
                "mode": mode,
                "expected": wanted,
                "args": "superset",
            }
            for mode in modes
        },
        **{
            f"trajectory-match, {mode}, subset": {
                **match,
                "mode": mode,
                "expected": full,
                "args": "subset",
            }
            for mode in modes
        },
        "trajectory-match, unordered, ranges": {
            **match,
            "mode": "unordered",
            "expected": ladder(),
            "args": "superset",
        },
        **{
            f"trajectory-match, {mode}, matchers": {
                **match,
                "mode": mode,
                "expected": matchers(),
                "args": "superset",
            }
            for mode in modes
        },
        "tool-loop": {"type": "tool-loop"},
    }


def within(
    limit_ms: float, title: str, trajectory: Trajectory, cases: Mapping[str, Mapping[str, Any]]
) -> Iterator[Line]:
    for name, fields in cases.items():
        evaluator = parse(fields)
        took_ms = seconds(partial(evaluator.evaluate, trajectory)) * 1000
        yield Line(
            what=f"{title}: {name}",
            figures=f"{took_ms:10.2f} ms (goal {limit_ms:g})",
            good=took_ms <= limit_ms,
        )


def lines() -> Iterator[Line]:
    yield from against_the_peer()
    yield from growth()
    yield from within(MOST_MS_EQUAL, "equal", made(1000), equal_calls())
    yield from within(MOST_MS_ADVERSARIAL, "one tool", one_tool(), adversarial())


def main() -> int:
    missed = 0
    for line in lines():
        print(line, flush=True)
        missed += not line.good
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
