"""The benchmarks still run. What they measure is not asserted: machines differ."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import SECTIONS, main
from tests.benchmarks.rows import Row, table
from tests.outside import programs

OUTSIDE = {"instructions", "sidecar"}
"""They need valgrind and a Collector, and a minute."""
CHOSEN = [
    pytest.param(section, marks=pytest.mark.outside if section in OUTSIDE else ())
    for section in SECTIONS
]


@pytest.mark.parametrize("section", CHOSEN)
def test_a_section_gives_rows(
    section: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if section in OUTSIDE:
        programs.valgrind()
        programs.collector()
    file = tmp_path / "result.json"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--json", str(file), section])

    assert main() == 0

    rows = json.loads(file.read_text())["rows"]
    shown = capsys.readouterr().out
    assert rows
    assert all(row["what"] in shown for row in rows)
    assert all(row["value"] is not None or row["note"] for row in rows)


@pytest.mark.parametrize(
    ("row", "judgement"),
    [
        (Row(what="cost", value=1.9, goal=2.0), "met"),
        (Row(what="cost", value=2.1, goal=2.0), "missed"),
        (Row(what="speed", value=9.0, goal=8.0, at_least=True), "met"),
        (Row(what="speed", value=7.0, goal=8.0, at_least=True), "missed"),
        (Row(what="memory", value=70.0), ""),
        (Row(what="speed", goal=8.0, note="no peer here"), ""),
    ],
)
def test_a_row_is_judged_by_its_goal(row: Row, judgement: str) -> None:
    assert row.judgement == judgement
    assert row.what in table([row])
