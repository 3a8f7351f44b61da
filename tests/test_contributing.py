"""The worked example of CONTRIBUTING is code that works."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from otel_eval.extract import dialects, trajectories
from otel_eval.model import Span

TEXT = (Path(__file__).parent.parent / ".github" / "CONTRIBUTING.md").read_text()


def example() -> Any:
    source = next(
        block for block in re.findall(r"```python\n(.*?)```", TEXT, re.S) if "Acme" in block
    )
    module = ModuleType("acme")
    exec(source, module.__dict__)
    return module.Acme()


def test_the_example_dialect_reads_its_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "DIALECTS", (example(), *dialects.DIALECTS))
    monkeypatch.setattr(dialects, "_KNOWN", {})
    run = {"acme.step": "run", "acme.agent": "travel", "acme.thread": "thread-7"}
    tool = {"acme.step": "tool", "acme.tool": "geocode", "acme.arguments": '{"place": "São Paulo"}'}
    spans = [
        Span(trace_id="a" * 32, span_id="1", attributes=run),
        Span(trace_id="a" * 32, span_id="2", parent_id="1", attributes=tool),
    ]

    (found,) = trajectories(spans)

    assert (found.agent, found.session, found.dialect) == ("travel", "thread-7", "acme")
    assert [call.arguments for call in found.tool_calls] == [{"place": "São Paulo"}]
