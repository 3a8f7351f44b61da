"""The benchmarks still run. What they measure is not asserted: machines differ."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import SECTIONS, main
from tests.benchmarks.instructions import compared
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
        (Row(what="cost", value=1.9, goal=2.0), "≤ 2 ×, met"),
        (Row(what="cost", value=2.1, goal=2.0), "≤ 2 ×, missed"),
        (Row(what="speed", value=9.0, goal=8.0, at_least=True), "≥ 8 ×, met"),
        (Row(what="speed", value=7.0, goal=8.0, at_least=True), "≥ 8 ×, missed"),
        (Row(what="memory", value=70.0, unit="MiB"), "reported"),
        (Row(what="speed", goal=8.0, at_least=True, note="no peer here"), "≥ 8 ×"),
        (Row(what="sidecar", note="no Collector"), ""),
    ],
)
def test_a_row_is_judged_by_its_goal(row: Row, judgement: str) -> None:
    assert row.wanted == judgement


def test_the_table_is_markdown_of_four_columns() -> None:
    rows = [
        Row(what="on_end", against="theirs", value=0.4, goal=0.5, note="254 ns, 644"),
        Row(what="idle", value=70.0, unit="MiB"),
    ]

    assert table(rows).splitlines() == [
        "| what   | against | measured             | goal         |",
        "| ------ | ------- | -------------------- | ------------ |",
        "| on_end | theirs  | 0.40 × (254 ns, 644) | ≤ 0.5 ×, met |",
        "| idle   | –       | 70.0 MiB             | reported     |",
    ]


def test_instructions_are_compared_as_multiples_of_the_floor() -> None:
    stored = {"pipeline": 400, "floor": 100, "with": {"python": "3.11.7"}}
    found = {"pipeline": 660, "floor": 150, "with": {"python": "3.12.1"}}

    row = compared(found, stored)

    assert row.value == pytest.approx(1.1)
    assert row.note == "400, floor 100, with python 3.11.7"
