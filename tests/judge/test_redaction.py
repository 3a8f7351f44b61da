from otel_eval.judge.redaction import Redactor


def test_what_matches_is_replaced_and_nothing_else() -> None:
    redactor = Redactor([r"\d{4}-\d{4}", "(?i)secret"])

    assert redactor.text("card 1234-5678, SECRET, 12") == "card [redacted], [redacted], 12"


def test_texts_are_searched_before_json_escapes_them() -> None:
    redactor = Redactor([r'a"b', "x\ny"])

    assert redactor.value({"k": ['a"b', "x\ny"]}) == '{"k": ["[redacted]", "[redacted]"]}'


def test_numbers_and_what_spans_several_values_are_found_too() -> None:
    assert Redactor([r'"pin": \d+']).value({"pin": 1234}) == "{[redacted]}"


def test_what_no_request_could_carry_is_replaced() -> None:
    assert Redactor().value({"k": "\ud800"}) == '{"k": "?"}'
