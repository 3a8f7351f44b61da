"""Numbers that a flag takes, and what is said of those that it does not take."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import click

N = TypeVar("N", int, float)
Callback: TypeAlias = Callable[[click.Context, click.Parameter, Any], N | None]


def in_range(read: Callable[[Any], N], low: N, high: N) -> Callback[N]:
    """A callback for an option; `nan` is from nowhere to nowhere, and so refused."""
    wanted = f"a {'whole ' if read is int else ''}number from {low} to {high}"

    def checked(_context: click.Context, _option: click.Parameter, given: Any) -> N | None:
        if given is None:
            return None
        try:
            found = read(given)
        except ValueError as error:
            raise click.BadParameter(f"{given} is not {wanted}") from error
        if not low <= found <= high:
            raise click.BadParameter(f"{given} is not {wanted}")
        return found

    return checked
