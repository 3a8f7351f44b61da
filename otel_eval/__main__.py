"""`python -m otel_eval` is the command line."""

from otel_eval.cli import main

main()
