"""The command `fasim`: everything that turns into an exit code.

0 right; 1 wrong output or a finding; 2 usage; 3 not modelled; 4 missing GPU or tool; 5 does not compile; 70 a bug in fasim;
130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Sequence

STARTED = time.perf_counter()
#: what a shell reports for a program that SIGPIPE ended
EXIT_CLOSED_PIPE = 141
EXIT_INTERRUPTED = 130
#: sysexits.h: an internal software error
EXIT_BUG = 70


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (without the program's name), or this process's, which then ends.

    Returns: the exit code.
    """
    code = _run(list(sys.argv[1:] if argv is None else argv), STARTED if argv is None else time.perf_counter())
    if argv is None:
        # taking LLVM's modules apart, which an orderly end would do, lasts longer than most launches
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    return code


def _run(args: list[str], started: float) -> int:
    from fasim.cli.interrupt import prompt_interrupt

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with prompt_interrupt(EXIT_INTERRUPTED):
            code = _invoke(args, started)
            _tell_of_cache()
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        return _interrupted(json="--json" in args)
    except BrokenPipeError:
        # whoever reads our output has gone: nothing is left to say, not even when the interpreter flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CLOSED_PIPE


def _tell_of_cache() -> None:
    """One warning if nothing could be kept, so that every run compiles anew."""
    cache = sys.modules.get("fasim.toolchain.cache")
    if cache is not None and cache.write_failures:
        from fasim.cli.failures import warn

        reason = cache.write_failures[0].strerror
        warn(f"cannot write to the cache {cache.cache_dir()}: {reason}; set FASIM_CACHE_DIR to a directory of yours")
        cache.write_failures.clear()
        cache.write_failures.clear()


def _interrupted(*, json: bool) -> int:
    print("interrupted", file=sys.stderr)
    if json:
        import fasim
        from fasim.report.records import ErrorReport, to_json

        print(to_json(ErrorReport("KeyboardInterrupt", "interrupted", EXIT_INTERRUPTED, None, None, "", fasim.__version__)))
    return EXIT_INTERRUPTED


def _invoke(args: list[str], started: float) -> int:
    from fasim.cli.app import app
    from fasim.errors import FasimError, UsageError

    json = "--json" in args
    try:
        result = app(args=args, prog_name="fasim", standalone_mode=False, obj=started)
        if result == EXIT_INTERRUPTED:
            # some versions of typer turn the exception into its exit code
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except SystemExit as error:
        # typer's way to deal with a closed pipe
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    except FasimError as error:
        caught = error
    except Exception as error:
        # typer's own errors, which it takes from different places in different versions, can format themselves
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        if hasattr(error, "format_message"):
            if not error.format_message():
                # `fasim` alone: typer has printed the help
                return UsageError.exit_code
            context = getattr(error, "ctx", None)
            advice = f"\nTry: {context.command_path} --help" if context is not None else ""
            caught = UsageError(error.format_message() + advice)
        elif isinstance(error, BrokenPipeError):
            raise
        elif isinstance(error, OSError):
            caught = UsageError(f"{error.strerror}: {error.filename or 'output'}")
        elif isinstance(error, MemoryError):
            caught = UsageError(f"out of memory: {error}")
        else:
            traceback.print_exc()
            print("This is a bug in fasim. Please report it with the command line and the lines above.", file=sys.stderr)
            return EXIT_BUG
    from fasim.cli.failures import report_error

    return report_error(caught, json=json)


if __name__ == "__main__":
    sys.exit(main())
