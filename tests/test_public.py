"""The names that users import."""

import subprocess
import sys

import pytest

import otel_eval


def test_every_name_is_there_and_all_of_them_are_listed() -> None:
    assert sorted(otel_eval.__all__) == sorted(set(otel_eval.__all__))
    assert set(otel_eval.__all__) <= set(dir(otel_eval))
    for name in otel_eval.__all__:
        assert getattr(otel_eval, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(otel_eval, "Nothing")  # noqa: B009  # type checkers know that it is not there


def test_functions_are_not_hidden_by_modules_of_their_name() -> None:
    script = (
        "import otel_eval.offline, otel_eval.cli.trajectories\n"
        "from otel_eval import evaluate, trajectories\n"
        "assert callable(evaluate) and callable(trajectories)"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_import_is_light() -> None:
    script = (
        "import sys, otel_eval\n"
        "heavy = {'opentelemetry', 'pydantic', 'yaml', 'google', 'jsonschema', 'click', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
