import pytest

from otel_eval.document import Document, read
from otel_eval.errors import ConfigError

ENVIRONMENT = {"TOKEN": "007", "PORT": "4317", "EMPTY": "", "LIST": "[a, b]", "ODD": "{ no: $yaml"}


def data(text: str) -> object:
    document = read(text, "rules.yaml", ENVIRONMENT)
    assert document.problems == []
    return document.data


def told(text: str) -> list[str]:
    document = read(text, "rules.yaml", ENVIRONMENT)
    return document.told(document.problems)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("5", 5, id="int"),
        pytest.param("0x1F", 31, id="hex"),
        pytest.param("010", 10, id="no octal"),
        pytest.param("1.5", 1.5, id="float"),
        pytest.param("1e3", 1000.0, id="exponent"),
        pytest.param("-.inf", float("-inf"), id="infinity"),
        pytest.param("true", True, id="bool"),
        pytest.param("~", None, id="null"),
        pytest.param("no", "no", id="Norway"),
        pytest.param("on", "on", id="on"),
        pytest.param("12:30", "12:30", id="time of day"),
        pytest.param("2024-05-01", "2024-05-01", id="date"),
        pytest.param("'5'", "5", id="quoted"),
        pytest.param("1_000", "1_000", id="underscore"),
        pytest.param("!!str 5", "5", id="tag"),
    ],
)
def test_values_are_read_as_json_has_them(text: str, value: object) -> None:
    assert data(f"key: {text}") == {"key": value}


def test_keys_are_always_text() -> None:
    assert data("{1: a, true: b, on: c}") == {"1": "a", "true": "b", "on": "c"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("${env:PORT}", 4317, id="alone and plain: read as YAML"),
        pytest.param("${PORT}", 4317, id="without the scheme, as in the Collector"),
        pytest.param("${env:LIST}", ["a", "b"], id="a list"),
        pytest.param("${env:EMPTY}", None, id="empty"),
        pytest.param("${env:EMPTY:-default}", None, id="empty is set: no default"),
        pytest.param("${env:ODD}", "{ no: $yaml", id="no YAML: text"),
        pytest.param('"${env:TOKEN}"', "007", id="quoted: text"),
        pytest.param("host:${env:PORT}", "host:4317", id="in the middle of text"),
        pytest.param("${env:UNSET:-a b}", "a b", id="default"),
        pytest.param("${env:UNSET:-}", None, id="empty default"),
        pytest.param('"${env:UNSET:-${env:TOKEN}}"', "007", id="a variable as default"),
        pytest.param("$$5 and $${env:PORT}", "$5 and ${env:PORT}", id="escaped"),
        pytest.param("$5 $PORT", "$5 $PORT", id="no braces: no variable"),
    ],
)
def test_variables_are_filled_in(text: str, value: object) -> None:
    assert data(f"key: {text}") == {"key": value}


def test_keys_are_not_filled_in() -> None:
    assert data("args: {$any: true, '${env:PORT}': 1}") == {
        "args": {"$any": True, "${env:PORT}": 1}
    }


def test_anchors_and_merge_keys_work_and_own_keys_win() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 5, z: 6}\nc: {<<: [*a, *b], x: 3}"

    assert data(text) == {
        "a": {"x": 1, "y": 2},
        "b": {"y": 5, "z": 6},
        "c": {"x": 3, "y": 2, "z": 6},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "a:\n  b: ${env:UNSET}",
            "rules.yaml:2: a.b: the environment variable UNSET is not set; "
            "set it or write ${env:UNSET:-default}",
            id="missing variable",
        ),
        pytest.param(
            "a: '${file:x}'",
            "rules.yaml:1: a: ${file:x} is no variable; write ${env:NAME}, or $$ for a plain $",
            id="another scheme",
        ),
        pytest.param(
            "a:\n  - b: 1\n    c: 2\n    b: 3",
            "rules.yaml:4: a[0].b: given twice, first in line 2; keep one",
            id="duplicate key",
        ),
        pytest.param(
            "a: &a [*a]",
            "rules.yaml:1: a[0]: an alias of something that it is part of",
            id="endless alias",
        ),
        pytest.param(
            "a: !!int x",
            "rules.yaml:1: a: the tag !!int cannot be read here; leave it out",
            id="wrong tag",
        ),
        pytest.param(
            "a: !python/name:os.system x",
            "rules.yaml:1: a: the tag !python/name:os.system cannot be read here; leave it out",
            id="foreign tag",
        ),
        pytest.param(
            "a: {[1]: 2}", "rules.yaml:1: a: a key must be text, not a list or a mapping", id="key"
        ),
        pytest.param(
            "a: {<<: 5}", "rules.yaml:1: a: << takes a mapping or a list of mappings", id="merge"
        ),
    ],
)
def test_a_problem_says_where_it_is(text: str, problem: str) -> None:
    assert told(text) == [problem]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        pytest.param("a: 1\nb: [", "rules.yaml:", id="open list"),
        pytest.param("a: 1\n---\nb: 2", "rules.yaml:2: not YAML", id="two documents"),
        pytest.param("a: \x00", "rules.yaml: not YAML", id="control character"),
    ],
)
def test_what_is_no_yaml_is_one_problem(text: str, start: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, "rules.yaml")

    (problem,) = caught.value.problems
    assert problem.startswith(start)
    assert "not YAML" in problem


@pytest.mark.parametrize("text", ["rules:\n\t- name: x", "rules:\n  - name: x\n \tper: run"])
def test_a_tab_in_the_indentation_gets_a_hint(text: str) -> None:
    with pytest.raises(ConfigError, match="indent with spaces, not with tabs"):
        read(text, "rules.yaml")


def test_a_variable_in_braces_without_quotes_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match="put the text with the variable in quotes"):
        read("a: {b: ${env:TOKEN}}")


def test_the_line_of_what_is_missing_is_that_of_what_is_around_it() -> None:
    document = read("rules:\n  - name: a\n    match: {agent: x}\n")

    assert document.line("rules[0].match.session") == 3
    assert document.line("rules[0].evaluators") == 2
    assert Document("").line("rules[0]") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x: " + 100_000 * "[", "x.yaml:1: not YAML: nested more than 100 levels deep"),
        (
            "a: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 120)),
            "x.yaml:1: not YAML: nested more than 100 levels deep",
        ),
        (
            "a: &a0 [1, 1]\n"
            + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
            "not YAML: more than 200000 values, counting what aliases repeat",
        ),
    ],
    ids=["nested", "nested by aliases", "aliases of aliases"],
)
def test_a_text_that_stands_for_too_much_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(text, "x.yaml")

    assert problem in str(refused.value)
