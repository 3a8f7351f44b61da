"""The parts of otel_eval that are written in C, which need not be there.

An install without a C compiler goes without them, and without a difference but in speed: all that
they do is done in Python too. With `OTEL_EVAL_PURE=1` in the environment they are left alone.
"""

import os
from importlib import import_module
from typing import Any, Final

VERSION: Final = 1
"""Of what they do. One that an earlier install left behind is not used."""


def _native(name: str) -> Any:
    if os.environ.get("OTEL_EVAL_PURE", "") not in ("", "0"):
        return None
    try:
        found = import_module(name)
    except ImportError:
        return None
    return found if found.VERSION == VERSION else None


NATIVE: Final = _native("_otel_eval_native")
"""The decoder and what goes with it, or None."""
RECORDS: Final = _native("_otel_eval_records")
"""What makes records, or None."""
