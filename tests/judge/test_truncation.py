from hypothesis import given
from hypothesis import strategies as st

from otel_eval.judge.question import Section
from otel_eval.judge.truncation import clip, fitted


def section(*entries: str, title: str = "A:", share: float = 1.0) -> Section:
    return Section(title=title, entries=entries, share=share)


def test_what_fits_is_not_touched() -> None:
    sections = [section("a" * 400, share=0.5), section("b", title="B:", share=0.5)]

    assert fitted(sections, 1000) == sections


def test_a_long_text_keeps_both_ends_and_tells_what_is_missing() -> None:
    text = clip("start " + "x" * 1000 + " end", 200)

    assert text.startswith("start xx")
    assert text.endswith("xx end")
    assert "[… 850 characters left out …]" in text
    assert len(text) <= 200


def test_of_a_long_history_the_first_and_the_latest_entries_stay() -> None:
    (found,) = fitted([section(*(f"entry {at} {'x' * 90}" for at in range(100)))], 2000)

    assert found.entries[0].startswith("entry 0 ")
    assert found.entries[1] == f"[… {100 - len(found.entries) + 1} of 100 entries left out …]"
    assert found.entries[-1].startswith("entry 99 ")


def test_room_that_one_section_does_not_need_goes_to_another() -> None:
    long, short = section("x" * 900, share=0.5), section("y", title="B:", share=0.5)

    assert fitted([long, short], 1000) == [long, short]


texts = st.lists(st.integers(0, 3_000).map("x".__mul__), min_size=1, max_size=60)


@given(texts, texts, st.integers(2_000, 5_000))
def test_never_more_than_allowed_is_sent(one: list[str], two: list[str], room: int) -> None:
    sections = [section(*one, share=0.5), section(*two, title="B:", share=0.5)]

    found = fitted(sections, room)

    assert sum(len(entry) + 1 for each in found for entry in each.entries) <= room


@given(texts, st.integers(2_000, 5_000))
def test_whatever_is_missing_is_mentioned(entries: list[str], room: int) -> None:
    (found,) = fitted([section(*entries)], room)

    assert found.entries == tuple(entries) or "left out" in "".join(found.entries)
