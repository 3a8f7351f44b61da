import pytest

from otel_eval.cli.wrapping import wrapped

LINE = "  ✗ flow / tool-call-order 0.50, passes at 1.00: search (position 1)"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (80, [LINE]),
        (
            40,
            [
                "  ✗ flow / tool-call-order 0.50, passes",
                "    at 1.00: search (position 1)",
            ],
        ),
        (12, ["  ✗ flow /", "    tool-call-order", "    0.50,", "    passes"]),
    ],
    ids=["it fits", "two lines", "a word longer than the line"],
)
def test_a_line_breaks_between_words_under_its_indent(columns: int, expected: list[str]) -> None:
    assert list(wrapped(LINE, columns))[:4] == expected


def test_colours_take_no_room() -> None:
    line = "  \x1b[31m✗\x1b[0m one two"

    assert list(wrapped(line, 11)) == [line]
    assert list(wrapped(line, 10)) == ["  \x1b[31m✗\x1b[0m one", "    two"]


def test_columns_stay_columns() -> None:
    assert list(wrapped("agent      1.00  1 without tool calls", 24)) == [
        "agent      1.00  1",
        "  without tool calls",
    ]
