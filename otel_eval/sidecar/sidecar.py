"""Everything wired together: doors → pipeline → engine and outbound."""

import asyncio
import logging
import time
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from otel_eval.config import Config, pushed_metrics
from otel_eval.engine import AnySpan, ClosedSession, ClosedTrace, Engine, Grouping
from otel_eval.errors import ConfigError
from otel_eval.quantities import host_and_port, to_bytes
from otel_eval.settings import Auth
from otel_eval.sidecar.admin import admin_app
from otel_eval.sidecar.contents import WAITS_SECONDS
from otel_eval.sidecar.custody import Custody
from otel_eval.sidecar.doors import Doors, unguarded
from otel_eval.sidecar.handover import Handover
from otel_eval.sidecar.journal import Journal
from otel_eval.sidecar.ledger import session_key
from otel_eval.sidecar.listeners import is_loopback_host
from otel_eval.sidecar.meters import Meters
from otel_eval.sidecar.outbound import Outbound
from otel_eval.sidecar.pipeline import Pipeline
from otel_eval.sidecar.ports import Ports
from otel_eval.sidecar.recovery import Recovery
from otel_eval.sidecar.tokens import Tokens
from otel_eval.sinks.prometheus import PrometheusSink

log = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 15.0
TICK_SECONDS: Final = 0.5
WRITE_SECONDS: Final = 1.0

Reload: TypeAlias = Callable[[], Config]
"""Reads the configuration again; raises ConfigError."""


class Sidecar:
    """Made, used and drained inside one event loop."""

    def __init__(self, config: Config) -> None:
        _refuse_circle(config)
        self._config = config
        self._handover = Handover(asyncio.get_running_loop())
        self._form = config.result_event()
        self._labels = config.labels()
        grouping = config.grouping_limits()
        self._custody = _custody(config, grouping)
        self._outbound = Outbound(config, self._form, lambda: self._engine.rules, self._custody)
        self._engine = self._make_engine(config, grouping)
        self._pipeline = Pipeline(
            self._engine,
            self._outbound.forwarder,
            self._outbound.holder,
            self._custody,
            max_buffer=grouping.max_buffer_bytes,
        )
        self._scrape = PrometheusSink(labels=self._labels, pipeline=self._pipeline.snapshot)
        self._recovery = self._make_recovery()
        self._meters = Meters(
            self._pipeline.contents, self._outbound.forwarders, self._custody, self._recovery
        )
        self._scrape.registry.register(self._meters)
        self._tokens = Tokens(*_auth(config))
        self._ready = False
        self._doors = self._make_doors()

    @property
    def ports(self) -> Ports:
        return self._doors.ports

    async def start(self) -> None:
        self._add_sinks()
        if self._recovery is not None:
            await self._recovery.remember()
        self._engine.start()
        self._outbound.start()
        if self._recovery is not None:
            await self._recovery.replay()
        await self._doors.open()
        self._ticking = asyncio.create_task(self._tick())
        self._ready = True
        self._warn_if_open(self._config.receivers.otlp.auth)

    def reload(self, read: Reload) -> None:
        """Rules and tokens; where the new ones are no good, the old ones stay."""
        try:
            config = read()
            rules = config.rule_set()
            self._tokens.replace(*_auth(config))
        except ConfigError as error:
            self._meters.reloads["failure"] += 1
            log.error("the configuration stays as it was: %s", error)
            return
        self._engine.rules = rules
        self._form.config_hash = config.hash
        self._labels.literal_agents = config.labels().literal_agents
        self._meters.reloads["success"] += 1
        log.info("reloaded: %d rules, configuration %s", len(rules.rules), config.hash)
        self._warn_if_open(config.receivers.otlp.auth)
        if changed := _restart_needed(self._config, config):
            log.warning("changes of %s need a restart", ", ".join(changed))

    async def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Refuse what comes, score what is open, send what waits, close. False if time ran out."""
        ends = time.monotonic() + seconds
        self._ready = False
        self._pipeline.draining = True
        await self._written()
        scored = await asyncio.to_thread(self._engine.close, 0.5 * seconds)
        # What the engine's threads have handed over is in the queue a turn of the loop later.
        await asyncio.sleep(0)
        if self._outbound.closings is not None:
            scored &= await asyncio.to_thread(self._outbound.closings.finish, 0.1 * seconds)
        await self._written()
        sent = await self._outbound.drain(max(0.0, ends - time.monotonic() - 0.2 * seconds))
        self._ticking.cancel()
        await self._doors.close()
        if self._custody is not None:
            await asyncio.to_thread(self._custody.journal.close)
        return scored and sent

    def _warn_if_open(self, auth: Auth) -> None:
        for endpoint in unguarded(self._config.receivers.otlp, auth):
            log.warning("%s is open to more than this machine, and needs no token", endpoint)

    async def _written(self) -> None:
        """What is on its way into the journal is in it; a disk that is full is not waited for."""
        if self._custody is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._custody.journal.settled()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._outbound.tick()
            if self._custody is not None:
                self._custody.expire(time.monotonic())

    def _make_engine(self, config: Config, grouping: Grouping) -> Engine:
        """Its notices of what closed are made only where somebody waits for them: where nothing is
        forwarded and nothing is kept, they are an eighth of all that serving costs."""
        waits = self._outbound.forwarder is not None
        keeps = self._custody is not None
        return Engine(
            config.rule_set(),
            grouping=grouping,
            keys=config.keys(),
            slow_threads=config.judge.max_concurrency,
            on_closed=self._closed if waits or keeps else None,
            on_session=self._session_closed if keeps else None,
            on_grouped=self._grouped if keeps else None,
        )

    def _make_doors(self) -> Doors:
        pages = admin_app(page=self._scrape.page, ready=lambda: self._ready)
        otlp, admin = self._config.receivers.otlp, self._config.admin
        return Doors(
            otlp,
            admin,
            intake=self._pipeline,
            tokens=self._tokens,
            pages=pages,
            refused=self._meters.refused,
            budget=_budget(self._config),
        )

    def _make_recovery(self) -> Recovery | None:
        if self._custody is None:
            return None
        return Recovery(self._custody, self._pipeline, self._engine, self._outbound.by_target)

    def _add_sinks(self) -> None:
        self._engine.add_sink(self._scrape)
        if pushed := pushed_metrics(self._config, self._pipeline.snapshot):
            self._engine.add_sink(pushed)
        for sink in self._outbound.sinks():
            self._engine.add_sink(sink)

    def _closed(self, trace: ClosedTrace) -> None:
        """Called by the engine's thread."""
        if self._custody is not None and self._outbound.closings is not None:
            self._custody.closing(trace.trace_id, trace.sessions)
            self._outbound.closings.make_room()
        self._handover.put(lambda: self._settle(trace))

    def _session_closed(self, session: ClosedSession) -> None:
        if self._custody is not None:
            self._custody.closing(session_key(session.session))
            self._handover.put(lambda: self._outbound.session_closed(session))

    def _grouped(self, spans: Sequence[AnySpan], open_traces: Container[str]) -> None:
        if self._custody is not None:
            self._custody.grouped(spans, open_traces)

    def _settle(self, trace: ClosedTrace) -> None:
        self._pipeline.contents.left(trace.trace_id, trace.span_ids)
        self._outbound.closed(trace)


def _custody(config: Config, grouping: Grouping) -> Custody | None:
    """Log records are kept for as long as the trace that they tell about may be open."""
    if config.journal is None:
        return None
    return Custody(Journal(config.journal), patience=grouping.max_age + WAITS_SECONDS)


def _budget(config: Config) -> int:
    queue = 0 if config.forward is None else config.forward.queue_mib
    return to_bytes(config.grouping.max_buffer_mib + queue)


def _auth(config: Config) -> tuple[Sequence[str], Path | None]:
    auth = config.receivers.otlp.auth
    return auth.bearer_tokens, auth.token_file


def _restart_needed(old: Config, new: Config) -> list[str]:
    """The sections that a reload leaves alone."""
    applied = {"rules", "receivers"}
    found = [name for name in Config.model_fields if getattr(old, name) != getattr(new, name)]
    otlp, new_otlp = old.receivers.otlp, new.receivers.otlp
    receivers = (otlp.grpc, otlp.http) != (new_otlp.grpc, new_otlp.http)
    return [name for name in found if name not in applied] + ["receivers"] * receivers


def _refuse_circle(config: Config) -> None:
    """What is forwarded to ourselves would come back for ever."""
    if config.forward is None:
        return
    host, _, port = config.forward.endpoint.rpartition("://")[2].partition("/")[0].rpartition(":")
    otlp = config.receivers.otlp
    ours = (host_and_port(each.endpoint)[1] for each in (otlp.grpc, otlp.http))
    if is_loopback_host(host) and port in map(str, ours):
        raise ConfigError(f"forward.endpoint: {config.forward.endpoint} is this sidecar itself")
