"""Gives the judges of a rule file what they ask: models, through one client with shared limits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from otel_eval.document import Problem
from otel_eval.errors import ConfigError
from otel_eval.evaluators.base import Evaluator
from otel_eval.evaluators.judging import JudgeEvaluator
from otel_eval.judge.cache import Cache
from otel_eval.judge.client import JudgeClient, Limits, ModelJudge
from otel_eval.judge.redaction import Redactor
from otel_eval.quantities import to_bytes
from otel_eval.rules import Rule
from otel_eval.settings import Judge
from otel_eval.validation import join

Models: TypeAlias = Callable[[Sequence[str]], Mapping[str, ModelJudge]]
"""Makes models of their names; raises ConfigError for one that cannot be used."""


def problems(rules: Sequence[Rule | None], settings: Judge) -> Iterator[Problem]:
    """What can be said without a key and without the extra, as `otel-eval validate` must.

    None stands for a rule that could not be read.
    """
    if settings.base_url and settings.model and not settings.model.startswith("openai:"):
        yield Problem("judge.base_url", "goes with a model openai:…, whose API it must speak")
    for at, rule in enumerate(rules):
        if rule is not None:
            yield from _of_rule(rule, join("rules", at, "evaluators"), settings)


def _of_rule(rule: Rule, place: str, settings: Judge) -> Iterator[Problem]:
    for position, judge in enumerate(rule.evaluators):
        if isinstance(judge, JudgeEvaluator):
            yield from _of_judge(judge, rule, join(place, position), settings)


def _of_judge(judge: JudgeEvaluator, rule: Rule, place: str, settings: Judge) -> Iterator[Problem]:
    if judge.model is None and settings.model is None:
        yield Problem(join(place, "model"), "missing; name a model here, or in judge.model for all")
    if judge.only_if != "always" and all(each.needs_model for each in rule.evaluators):
        text = "needs an evaluator that asks no model in the same rule, to look at"
        yield Problem(join(place, "only_if"), text)


def bound(
    rules: Sequence[Rule], settings: Judge, make: Models, *, patient: bool = False
) -> tuple[Rule, ...]:
    """The rules with judges that can ask; raises ConfigError where one cannot.

    `patient`: wait for the budget instead of skipping.
    """
    if not any(isinstance(each, JudgeEvaluator) for rule in rules for each in rule.evaluators):
        return tuple(rules)
    found = list(problems(rules, settings))
    if found:
        raise ConfigError([f"{each.place}: {each.text}" for each in found])
    client = _client(_names(rules, settings), settings, make, patient)
    return tuple(_bound(rule, client, settings) for rule in rules)


def _bound(rule: Rule, client: JudgeClient, settings: Judge) -> Rule:
    def ready(each: Evaluator) -> Evaluator:
        if not isinstance(each, JudgeEvaluator):
            return each
        return each.bound(client, each.model or settings.model)

    return rule.model_copy(update={"evaluators": tuple(map(ready, rule.evaluators))})


def _names(rules: Sequence[Rule], settings: Judge) -> Sequence[str]:
    """The models to be made; callables that were handed in are ready."""
    asked = [
        each.model or settings.model
        for rule in rules
        for each in rule.evaluators
        if isinstance(each, JudgeEvaluator)
    ]
    return list(dict.fromkeys(each for each in asked if isinstance(each, str)))


def _client(names: Sequence[str], settings: Judge, make: Models, patient: bool) -> JudgeClient:
    path = settings.cache.path
    return JudgeClient(
        models=lambda: make(names) if names else {},
        limits=Limits(
            timeout=settings.timeout,
            max_concurrency=settings.max_concurrency,
            max_calls_per_minute=settings.max_calls_per_minute,
            max_input_chars=settings.max_input_chars,
        ),
        redactor=Redactor(settings.redact),
        cache=None if path is None else Cache(path, to_bytes(settings.cache.max_mib)),
        circumstances=f"{settings.base_url} {settings.temperature}",
        patient=patient,
    )
