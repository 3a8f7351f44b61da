"""The compiled part of otel_eval, which need not be there.

An install without a C compiler goes without it, and without a difference but in speed: all that it
does is done in Python too. With `OTEL_EVAL_PURE=1` in the environment it is left alone.
"""

import os
from typing import Any, Final

VERSION: Final = 1
"""Of what `_otel_eval_native` does. One that an earlier install left behind is not used."""


def _native() -> Any:
    if os.environ.get("OTEL_EVAL_PURE", "") not in ("", "0"):
        return None
    try:
        import _otel_eval_native as found
    except ImportError:
        return None
    return found if found.VERSION == VERSION else None


NATIVE: Final = _native()
"""The module, or None."""
