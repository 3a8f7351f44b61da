from otel_eval.lazy import lazy


class Reader:
    def __init__(self) -> None:
        self.read = 0

    @lazy
    def found(self) -> int:
        """How often it was read."""
        self.read += 1
        return self.read


def test_it_is_worked_out_once_for_each_object() -> None:
    one, other = Reader(), Reader()

    assert [one.read, one.found, one.found, other.found] == [0, 1, 1, 1]


def test_the_class_shows_what_it_is() -> None:
    assert Reader.found.__doc__ == "How often it was read."
