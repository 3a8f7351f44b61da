"""compile.py FOLDER [MODULE...]: compiles modules of the current directory into FOLDER.

Without modules it compiles what is written in C.
"""

import os
import sys
from pathlib import Path

from setuptools import Distribution, Extension

MYPY = ["--config-file", str(Path(__file__).with_name("mypy.ini")), "--cache-dir", os.devnull]


def main(folder: str, *modules: str) -> None:
    command = Distribution(
        {"ext_modules": compiled(folder, modules) if modules else native()}
    ).get_command_obj("build_ext")
    command.build_lib, command.build_temp = folder, f"{folder}.o"
    command.ensure_finalized()
    command.run()


def native() -> list[Extension]:
    """At the top level, so that a checkout finds them too, which has none of its own."""
    sources = {
        "_otel_eval_native": "otel_eval/decode/native.c",
        "_otel_eval_records": "otel_eval/records.c",
    }
    options = {"extra_compile_args": ["-O3", "-g0"]}
    return [Extension(name, [source], **options) for name, source in sources.items()]


def compiled(folder: str, modules: tuple[str, ...]) -> list[Extension]:
    from mypyc.build import mypycify

    # With more optimization they are no faster, and take half as long again to build.
    found = mypycify(
        [*MYPY, *modules],
        opt_level="1",
        debug_level="0",
        target_dir=f"{folder}.c",
        group_name="otel_eval",
    )
    for each in found:
        each.extra_compile_args.append("-Wno-error")  # a newer compiler may warn of more
    return found


main(*sys.argv[1:])
