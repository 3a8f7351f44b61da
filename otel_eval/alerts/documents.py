"""Rule groups as the files that Prometheus, promtool and Kubernetes read."""

from collections.abc import Iterable
from typing import Final

import yaml

from otel_eval.alerts.rules import Group
from otel_eval.model import Json

NAME: Final = "otel-eval"
API_VERSION: Final = "monitoring.coreos.com/v1"
HEADER: Final = "# Written by `otel-eval alerts`: change its configuration instead of this file."


class _Dumper(yaml.SafeDumper):
    """Expressions of several lines stay as they were written."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _text)


def rule_file(groups: Iterable[Group]) -> str:
    return dump({"groups": [group.document() for group in groups]})


def prometheus_rule(groups: Iterable[Group]) -> str:
    """The custom resource of the Prometheus operator."""
    return dump(
        {
            "apiVersion": API_VERSION,
            "kind": "PrometheusRule",
            "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": NAME}},
            "spec": {"groups": [group.document() for group in groups]},
        }
    )


def dump(document: Json) -> str:
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return f"{HEADER}\n{text}"
