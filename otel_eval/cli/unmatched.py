"""Why a rule did not match a trace."""

from collections.abc import Iterator

from otel_eval.evaluators.base import listed
from otel_eval.match import Match
from otel_eval.model import Trajectory
from otel_eval.recorded import RecordedTrace
from otel_eval.rules import Rule, RuleSet


def why_not(rules: RuleSet, trace: RecordedTrace) -> Iterator[tuple[str, str]]:
    """Each rule that says nothing about the trace, with the reason."""
    matched = {rule.name: trajectory for rule, trajectory in trace.views}
    for rule in rules.rules:
        if rule.name not in matched:
            yield rule.name, _reason(rule, trace)
        elif rule.per == "session" and matched[rule.name].session is None:
            yield rule.name, "scores sessions, and the trace names none"


def _reason(rule: Rule, trace: RecordedTrace) -> str:
    extraction = trace.extraction
    if not extraction.is_agent_trace and not rule.match.names_origin:
        return "no agent is at work in the trace, and only service or attributes match such"
    agents = extraction.agents
    if rule.match.agent is not None and not any(map(rule.match.fits_agent, agents)):
        found = f"the agent is {listed(agents)}" if agents else "the trace names no agent"
        return f"{found}, wanted {rule.match.agent}"
    return next(_misfits(rule.match, extraction.trace), "no trajectory of it fits")


def _misfits(match: Match, trajectory: Trajectory) -> Iterator[str]:
    for noun, wanted, found in (
        ("session", match.session, trajectory.session),
        ("service", match.service, trajectory.service),
    ):
        if wanted is not None and not Match.model_validate({noun: wanted}).fits(trajectory):
            said = f"the {noun} is {found}" if found else f"the trace names no {noun}"
            yield f"{said}, wanted {wanted}"
    for name, value in match.attributes.items():
        if not Match(attributes={name: value}).fits(trajectory):
            yield f"{_attribute(trajectory, name)}, wanted {value}"


def _attribute(trajectory: Trajectory, name: str) -> str:
    anchor = trajectory.anchor
    found = anchor and anchor.attributes.get(name, anchor.resource.get(name))
    return f"there is no attribute {name}" if found is None else f"{name} is {found}"
