"""The whole demo: sidecar, agents, live view, and what to try next."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias

import click
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import SpanExporter

from otel_eval.config import Config
from otel_eval.demo import files
from otel_eval.demo.agents import SAMPLES, Agent, Sample
from otel_eval.demo.board import Board
from otel_eval.demo.environment import plain_environment
from otel_eval.demo.hosting import hosted, is_free
from otel_eval.demo.recorder import FileExporter, TraceFile
from otel_eval.demo.scores import History, scrape
from otel_eval.demo.words import next_lines, where_lines
from otel_eval.quantities import host_and_port
from otel_eval.settings import Admin, GroupingSettings, Grpc, Http, Otlp, Receivers
from otel_eval.sidecar.ports import Ports

LOOK_SECONDS: Final = 2
SETTLE_SECONDS: Final = 0.4
"""A root is the last span of its trace to be sent: nothing comes after it."""
EXPORT_TIMEOUT: Final = 2
ANY_PORT: Final = "127.0.0.1:0"

Act: TypeAlias = Callable[[float], None]
"""Something to do at a moment: it is told which."""


class Demo:
    """Runs once; its files are there from the start."""

    def __init__(self, *, seconds: int, folder: Path, program: str = "otel-eval") -> None:
        """`program` is how its reader calls this program."""
        self._seconds = seconds
        self._program = program
        self._kept_rules = not files.leave_rules(folder)
        self._file = TraceFile(folder / files.TRACES)
        self._board = Board()
        self._history = History()
        self._agents: list[Agent] = []

    def run(self) -> None:
        """Raises OSError where the sidecar cannot listen. Ctrl-C ends it early, in good order."""
        try:
            with plain_environment(), closing(self._file):
                self._play()
        except KeyboardInterrupt:
            self._board.say("\nstopped")
        self._say_what_next()

    def _play(self) -> None:
        config, taken = _config()
        with hosted(config) as ports:
            self._say_where(ports, taken)
            with self._working(ports):
                self._watch(ports.admin)

    @contextmanager
    def _working(self, ports: Ports) -> Iterator[None]:
        try:
            for sample in SAMPLES:
                exporters = (_exporter(sample, ports), FileExporter(self._file))
                self._agents.append(Agent(sample, exporters))
                self._agents[-1].start()
            yield
        finally:
            for agent in self._agents:
                agent.stop()
            for agent in self._agents:
                agent.close()

    def _watch(self, port: int) -> None:
        start = time.monotonic()
        for at, act in self._schedule(port):
            time.sleep(max(0.0, start + at - time.monotonic()))
            act(at)

    def _schedule(self, port: int) -> list[tuple[float, Act]]:
        """What happens when, in seconds from the start."""
        looks = [*range(LOOK_SECONDS, self._seconds, LOOK_SECONDS), self._seconds]
        acts: list[tuple[float, Act]] = [(at, partial(self._look, port)) for at in looks]
        return sorted([*acts, (self._seconds / 2, self._turn)], key=itemgetter(0))

    def _look(self, port: int, at: float) -> None:
        self._history.add(scrape(port), at)
        standings = [self._history.standing(sample.name) for sample in SAMPLES]
        self._board.draw(standings, at)

    def _turn(self, at: float) -> None:
        for agent in self._agents:
            if agent.sample.bad_runs:
                agent.go_bad()
                text = f"{at:4.0f} s  {agent.sample.name} goes bad: {agent.sample.trouble}"
                self._board.say("\n" + click.style(text, fg="yellow", bold=True) + "\n")

    def _say_where(self, ports: Ports, taken: Sequence[int]) -> None:
        for line in where_lines(ports, seconds=self._seconds, taken=taken):
            self._board.say(line)

    def _say_what_next(self) -> None:
        found = [agent.bad_trace_id for agent in self._agents]
        found += [agent.trace_id for agent in self._agents]
        trace_id = next(filter(None, found), None)
        for line in next_lines(trace_id, program=self._program, kept_rules=self._kept_rules):
            self._board.say(line)


def _config() -> tuple[Config, list[int]]:
    """The demo's rules on the usual ports, and which of these are not free."""
    config = Config.parse(files.rules_text(), files.RULES)
    otlp = config.receivers.otlp
    usual = (otlp.grpc.endpoint, otlp.http.endpoint, config.admin.endpoint)
    grpc, http, admin = (each if is_free(each) else ANY_PORT for each in usual)
    sections = {
        "receivers": Receivers(otlp=Otlp(grpc=Grpc(endpoint=grpc), http=Http(endpoint=http))),
        "admin": Admin(endpoint=admin),
        "grouping": GroupingSettings(settle=SETTLE_SECONDS, local_settle=SETTLE_SECONDS),
    }
    taken = [host_and_port(each)[1] for each in usual if each not in (grpc, http, admin)]
    return config.model_copy(update=sections), taken


def _exporter(sample: Sample, ports: Ports) -> SpanExporter:
    if sample.protocol == "grpc":
        endpoint = f"http://127.0.0.1:{ports.grpc}"
        return GrpcExporter(endpoint=endpoint, insecure=True, timeout=EXPORT_TIMEOUT)
    endpoint = f"http://127.0.0.1:{ports.http}/v1/traces"
    return HttpExporter(endpoint=endpoint, timeout=EXPORT_TIMEOUT)
