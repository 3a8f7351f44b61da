import logging
from pathlib import Path

import pytest

from otel_eval.errors import ConfigError
from otel_eval.judge.cache import Cache


def test_what_was_put_in_is_found_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "judgements.sqlite"
    Cache(path, 1 << 20).put("key", "answer")

    again = Cache(path, 1 << 20)

    assert (again.get("key"), again.get("other")) == ("answer", None)


def test_it_stays_within_its_size_and_drops_the_oldest_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "judgements.sqlite", 200_000)

    for number in range(300):
        cache.put(f"key{number}", "x" * 2_000)

    assert cache.get("key0") is None
    assert cache.get("key299") is not None
    assert (tmp_path / "judgements.sqlite").stat().st_size < 300_000


def test_a_path_that_cannot_be_used_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge\.cache\.path: .*cannot be used"):
        Cache(tmp_path / "missing" / "judgements.sqlite", 1 << 20)


def test_a_cache_that_breaks_later_is_no_cache(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "judgements.sqlite"
    cache = Cache(path, 1 << 20)
    for each in tmp_path.iterdir():
        each.write_bytes(b"no database at all" * 100)

    with caplog.at_level(logging.WARNING):
        cache.put("key", "answer")
        assert cache.get("key") is None

    assert len(caplog.records) == 2
