"""Where evaluations go: one module per destination, each with `emit(evaluations)` and `close()`."""
