"""Patterns over names: globs, and regular expressions between slashes."""

import fnmatch
import re
from collections.abc import Callable, Iterable

from otel_eval.evaluators.matchers import compile_regex


def compile_name(pattern: str) -> Callable[[str], bool]:
    """Case-sensitive and over the whole name; `/…/` searches the name with RE2."""
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/"):
        search = compile_regex(pattern[1:-1]).search
        return lambda name: search(name) is not None
    if not any(sign in pattern for sign in "*?["):
        return lambda name: name == pattern
    match = re.compile(fnmatch.translate(pattern)).match
    return lambda name: match(name) is not None


def compile_names(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether any of the patterns fits."""
    tests = [compile_name(pattern) for pattern in patterns]
    return lambda name: any(test(name) for test in tests)
