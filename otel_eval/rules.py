"""Which evaluators run for whom."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from otel_eval.errors import ConfigError
from otel_eval.extract import Extraction, join
from otel_eval.job import Job
from otel_eval.match import Match, is_literal
from otel_eval.model import ClosedBy, Evaluation, Trajectory
from otel_eval.rule import Alert, Rule, Seconds

__all__ = [
    "Alert",
    "Job",
    "Match",
    "Rule",
    "RuleSet",
    "Seconds",
    "View",
    "default_rules",
    "run",
    "session_jobs",
    "trace_jobs",
]

View: TypeAlias = tuple[Rule, Trajectory]
"""A trajectory and the rule that asked for it."""
Asked: TypeAlias = tuple[Rule, Sequence[str | None]]
"""A rule, and the agents of a trace that it is about."""

MOST_PLANS: Final = 1024
"""For how many sets of agents it is remembered which rules are about them."""


class RuleSet:
    """All rules, indexed: those for one literal session or agent cost a look-up, not a scan."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: Final = tuple(rules)
        self._by_session: dict[str, list[int]] = {}
        self._by_agent: dict[str, list[int]] = {}
        self._rest: list[int] = []
        self.reads_conversation: Final = any(
            evaluator.reads_conversation for rule in self.rules for evaluator in rule.evaluators
        )
        self._plans: dict[tuple[str, ...], Sequence[Asked]] = {}
        self._reaches_plain_traces = any(rule.match.names_origin for rule in self.rules)
        names: set[str] = set()
        for position, rule in enumerate(self.rules):
            if rule.name in names:
                raise ConfigError(f"rules[{position}].name: another rule is called {rule.name!r}")
            names.add(rule.name)
            self._index(position, rule.match)

    @property
    def judges(self) -> set[tuple[str, str]]:
        """The evaluators that ask a model, by the names of their rule and of their own."""
        return {(rule.name, each.name) for rule in self.rules for each in rule.judges}

    def _index(self, position: int, match: Match) -> None:
        if match.session is not None and is_literal(match.session):
            self._by_session.setdefault(match.session, []).append(position)
        elif match.literal_agent is not None:
            self._by_agent.setdefault(match.literal_agent, []).append(position)
        else:
            self._rest.append(position)

    def views(self, extraction: Extraction) -> list[View]:
        """Every rule that matches, with each trajectory that it scores, in the rules' order."""
        is_agent_trace = extraction.is_agent_trace
        if not is_agent_trace and not self._reaches_plain_traces:
            return []
        reader = _Reader(extraction)
        return [
            (rule, trajectory)
            for rule, agents in self._asked(reader)
            if is_agent_trace or rule.match.names_origin
            for agent in agents
            for trajectory in reader.trajectories(agent, rule)
            if rule.match.fits(trajectory)
        ]

    def _asked(self, reader: "_Reader") -> Sequence[Asked]:
        """In the rules' order, each once: it is indexed in one place only.

        Where no rule is for one session, the agents decide, and there are few of them.
        """
        if self._by_session:
            return self._plan(reader.agents, reader.sessions())
        known = self._plans.get(reader.agents)
        if known is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[reader.agents] = known = self._plan(reader.agents, ())
        return known

    def _plan(self, agents: tuple[str, ...], sessions: Iterable[str]) -> Sequence[Asked]:
        positions = self._rest.copy()
        for agent in agents:
            positions += self._by_agent.get(agent, ())
        for session in sessions:
            positions += self._by_session.get(session, ())
        rules = [self.rules[position] for position in sorted(positions)]
        return [(rule, _agents_of(rule.match, agents)) for rule in rules]


class _Reader:
    """An extraction whose trajectories are built once, however many rules ask for them."""

    def __init__(self, extraction: Extraction) -> None:
        self._extraction = extraction
        self._built: dict[tuple[str | None, bool, bool], Sequence[Trajectory]] = {}
        self.agents = tuple(extraction.agents)

    def trajectories(self, agent: str | None, rule: Rule) -> Sequence[Trajectory]:
        """Those that the rule's `per` asks for; without an agent, the whole trace's."""
        return self._build(agent, nested=rule.nested, runs=rule.per == "run")

    def sessions(self) -> set[str]:
        """A trace may hold runs of several sessions, of which the whole names one or none."""
        built = [self._build(agent, nested=True, runs=False) for agent in (None, *self.agents)]
        built.append(self._build(None, nested=True, runs=True))
        return {each.session for some in built for each in some if each.session is not None}

    def _build(self, agent: str | None, *, nested: bool, runs: bool) -> Sequence[Trajectory]:
        key = (agent, nested, runs)
        if key not in self._built:
            self._built[key] = self._read(agent, nested=nested, runs=runs)
        return self._built[key]

    def _read(self, agent: str | None, *, nested: bool, runs: bool) -> Sequence[Trajectory]:
        if runs:
            return self._extraction.runs(agent, nested=nested)
        if agent is None:
            return [self._extraction.trace]
        return [self._extraction.by_agent(agent, nested=nested)]


def _agents_of(match: Match, agents: Sequence[str]) -> Sequence[str | None]:
    """The agents of a trace that a rule is about; None for the trace as a whole."""
    if match.literal_agent is not None:
        return [match.literal_agent] if match.literal_agent in agents else []
    if match.agent is None or (match.agent == "*" and not agents):
        return [None]
    return [agent for agent in agents if match.fits_agent(agent)]


def default_rules() -> RuleSet:
    """What runs without any configuration: useful for every agent, wrong for none."""
    evaluators = [{"type": "tool-error-rate"}, {"type": "tool-loop"}]
    rule = {"name": "default", "match": {"agent": "*"}, "evaluators": evaluators}
    return RuleSet([Rule.parse(rule)])


def trace_jobs(views: Iterable[View]) -> list[Job]:
    """What can be scored when the trace closes."""
    return [
        Job(rule=rule, trajectory=trajectory) for rule, trajectory in views if rule.per != "session"
    ]


def session_jobs(views: Iterable[View], *, part: int, closed_by: ClosedBy) -> list[Job]:
    """The session's traces, joined for each rule, and for each agent where a rule names agents."""
    shared: dict[tuple[str, str | None], list[View]] = {}
    for rule, trajectory in views:
        agent = None if rule.match.agent is None else trajectory.agent
        shared.setdefault((rule.name, agent), []).append((rule, trajectory))
    return [_session_job(group, part, closed_by) for group in shared.values()]


def _session_job(views: Sequence[View], part: int, closed_by: ClosedBy) -> Job:
    """By the latest rule of that name: the rules may have been reloaded meanwhile."""
    parts = [trajectory for _, trajectory in views]
    return Job(
        rule=views[-1][0],
        trajectory=join(parts, part=part, closed_by=closed_by),
        traces={
            call.span_id: trajectory.trace_id
            for trajectory in parts
            for call in trajectory.tool_calls
            if call.span_id is not None
        },
    )


def run(rules: RuleSet, extraction: Extraction) -> list[Evaluation]:
    """Every evaluation of one trace, but for rules about sessions."""
    return [
        evaluation
        for job in trace_jobs(rules.views(extraction))
        for evaluator in job.rule.evaluators
        for evaluation in job.evaluate(evaluator)
    ]
