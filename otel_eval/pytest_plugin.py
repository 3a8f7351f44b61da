"""The pytest plugin: `trajectory` holds what the code under test emitted, as caplog holds its logs.

Every pytest run of everyone who installed otel_eval imports this module, so it imports nothing but
pytest; the work is done in `captured`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from otel_eval.captured import Captured

MARKER = "otel_eval"
CAPTURE = "_otel_eval_captured"
HELP = (
    "otel_eval(rules=None, pass_at=None): when the test is done, score the tool calls that it "
    "emitted; rules is a file, a list of rules, or left out for the default rules"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", HELP)


@pytest.fixture(name=CAPTURE)
def _captured(request: pytest.FixtureRequest) -> Iterator[Captured]:
    from otel_eval.captured import capturing

    with capturing([request.path.parent, request.config.rootpath]) as captured:
        yield captured


@pytest.fixture
def trajectory(_otel_eval_captured: Captured) -> Captured:
    """The tool calls that the code under test made, as far as it emitted spans."""
    return _otel_eval_captured


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test captures from its first fixture on, whether or not it asks for `trajectory`."""
    names = getattr(item, "fixturenames", None)
    if item.get_closest_marker(MARKER) is not None and names is not None and CAPTURE not in names:
        names.insert(0, CAPTURE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    marker = item.get_closest_marker(MARKER)
    if marker is not None and isinstance(item, pytest.Function):
        _score(item.funcargs[CAPTURE], marker)
    return result


def _score(captured: Any, marker: pytest.Mark) -> None:
    """There is no line of the test to point at: what failed is all there is to show."""
    from otel_eval.errors import ConfigError

    try:
        captured.score(*marker.args, **marker.kwargs)
    except (AssertionError, ConfigError, TypeError, ValueError) as error:
        raise pytest.fail.Exception(f"@pytest.mark.{MARKER}: {error}", pytrace=False) from None


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """`assert trajectory.score(...) > 0.9` shows which steps cost what."""
    captured = sys.modules.get("otel_eval.captured")
    for side in (left, right):
        if captured is not None and isinstance(side, captured.Scored):
            return [f"{left!r} {op} {right!r}", *side.explanation()]
    return None
