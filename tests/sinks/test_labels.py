import pytest

from otel_eval.sinks.labels import MAX_SETS, OTHER, Labels, LabelSet, Series, text
from tests.sinks.builders import anchor, evaluation


def test_a_configured_label_is_the_anchors_attribute_then_its_resources() -> None:
    labels = Labels(extra={"environment": "env", "service": "service.name", "region": "region"})
    where = anchor(attributes={"env": "prod"}, resource={"env": "base", "service.name": "shop"})

    found = labels.values(labels.subject(evaluation(anchor=where)), "pass")

    assert found == ("agent", "flow", "order", "pass", "prod", "shop", "")


def test_agents_beyond_the_bound_become_other() -> None:
    labels = Labels(max_agents=2)

    agents = [labels.agent(name) for name in ("a", "b", "c", "a", "d")]

    assert agents == ["a", "b", OTHER, "a", OTHER]


def test_an_agent_that_a_rule_names_never_becomes_other() -> None:
    labels = Labels(max_agents=1, literal_agents=["billing"])

    agents = [labels.agent(name) for name in ("a", "b", "billing")]

    assert agents == ["a", OTHER, "billing"]


def test_an_agent_without_a_name_is_unknown() -> None:
    assert Labels().agent(None) == "unknown"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        pytest.param(None, "", id="missing"),
        pytest.param(True, "true", id="bool"),
        pytest.param(3, "3", id="int"),
        pytest.param("x" * 500, "x" * 128, id="long"),
        pytest.param("a\ud800", "a?", id="half a surrogate pair"),
    ],
)
def test_a_label_value_is_short_text_that_can_be_encoded(value: object, label: str) -> None:
    assert text(value) == label


def series(*, literal: list[str] | None = None, own: int = 0) -> Series[LabelSet]:
    return Series(lambda values: values, Labels(literal_agents=literal or []), own=own)


def test_a_label_set_is_made_once() -> None:
    made: list[LabelSet] = []
    kept = Series(lambda values: made.append(values) or values, Labels())

    kept.at(("a", "r", "e"))
    kept.at(("a", "r", "e"))

    assert made == [("a", "r", "e")]


def test_configured_labels_are_given_up_first() -> None:
    kept = series()

    found = {kept.at(("a", "r", "e", str(each))) for each in range(3 * MAX_SETS)}

    assert len(found) <= MAX_SETS
    assert kept.at(("a", "r", "e", "new")) == ("a", "r", "e", OTHER)


def test_then_the_agent_is_given_up() -> None:
    kept = series()
    for each in range(3 * MAX_SETS):
        kept.at((f"a{each}", "r", "e"))

    assert kept.at(("new", "r", "e")) == (OTHER, "r", "e")


def test_however_many_sets_come_at_most_2000_are_kept_and_none_is_lost() -> None:
    kept = series(own=1)

    found = [
        kept.at((f"a{each}", f"r{each}", "e", verdict))
        for each in range(3 * MAX_SETS)
        for verdict in ("pass", "fail")
    ]

    assert len(set(found)) <= MAX_SETS
    assert found[-1] == (OTHER, OTHER, OTHER, "fail")


def test_names_nobody_wrote_leave_room_for_those_in_rules() -> None:
    kept = series(literal=["billing"])
    for each in range(3 * MAX_SETS):
        kept.at((f"a{each}", "r", "e"))

    assert kept.at(("billing", "r", "e")) == ("billing", "r", "e")


def test_an_agent_that_a_new_rule_names_gets_its_name_back() -> None:
    labels = Labels(max_agents=0)
    kept: Series[LabelSet] = Series(lambda values: values, labels)
    subject = labels.subject(evaluation())

    before = kept.of(subject)
    labels.literal_agents = frozenset({"agent"})

    assert before == (OTHER, "flow", "order")
    assert kept.of(subject) == ("agent", "flow", "order")


def test_what_is_known_does_not_grow_without_end() -> None:
    labels = Labels(extra={"id": "id"}, max_agents=2)
    kept: Series[LabelSet] = Series(lambda values: values, labels)

    found = {kept.of((f"a{at % 5}", "r", "e", str(at))) for at in range(5 * MAX_SETS)}

    assert len(found) <= MAX_SETS
    assert len(kept._known) <= 4 * MAX_SETS


def test_a_metric_without_configured_labels_leaves_them_out() -> None:
    labels = Labels(extra={"id": "id"})
    kept: Series[LabelSet] = Series(lambda values: values, labels, own=1, configured=False)

    assert kept.of(("a", "r", "e", "1"), "budget") == ("a", "r", "e", "budget")
