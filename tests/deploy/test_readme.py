"""deploy/README.md tells about everything that is there."""

from otel_eval.alerts import groups
from otel_eval.alerts.rules import RUNBOOK, AlertRule
from otel_eval.config import Config
from tests.deploy.files import DEPLOY

README = (DEPLOY / "README.md").read_text(encoding="utf-8")
ALERTS = {
    rule.alert: rule
    for group in groups(Config())
    for rule in group.rules
    if isinstance(rule, AlertRule)
}


def test_every_alert_has_a_runbook_section_where_its_link_leads() -> None:
    headings = [line[4:] for line in README.splitlines() if line.startswith("### OtelEval")]
    links = {f"{RUNBOOK}#{heading.lower()}" for heading in headings}

    assert sorted(headings) == sorted(ALERTS)
    assert links == {rule.annotations()["runbook_url"] for rule in ALERTS.values()}


def test_every_file_is_introduced() -> None:
    table = README.split("## Which of these")[0]
    names = [
        path.name + "/" * path.is_dir() for path in DEPLOY.iterdir() if path.name != "README.md"
    ]
    nested = [f"{each.parent.name}/{each.name}" for each in DEPLOY.glob("kubernetes/*.yaml")]

    missing = [name for name in (*names, *nested) if f"`{name}" not in table]

    assert missing == []
