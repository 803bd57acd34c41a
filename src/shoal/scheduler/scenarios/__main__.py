"""``python -m shoal.scheduler.scenarios FILE…``: a line per case, and the sum of them last."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from shoal.scheduler.scenarios.cases import Scenario
from shoal.scheduler.scenarios.engine import Engine, run
from shoal.scheduler.scenarios.reading import CaseFile, UnreadableCaseError, UnreadableFileError, read
from shoal.scheduler.scenarios.runner import Verdict, verdict_of_division, verdict_of_scenario

FAILED: Final = 1
USAGE: Final = 2


def main(arguments: Sequence[str] | None = None, engine: Engine = run) -> int:
    """Runs files of cases; 0 if all passed, 1 if one failed, 2 if a file could not be read."""
    parser = argparse.ArgumentParser(prog="python -m shoal.scheduler.scenarios", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenarios, or cases of fair shares")
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="run this case alone; may be repeated"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="every difference, on a line of its own")
    options = parser.parse_args(arguments)
    try:
        files = [read(path) for path in options.files]
    except UnreadableFileError as error:
        _warn(str(error))
        return USAGE
    passed = failed = 0
    for verdict in _verdicts(files, frozenset(options.only), engine):
        passed, failed = (passed + 1, failed) if verdict.is_passed else (passed, failed + 1)
        _print(verdict, is_verbose=options.verbose)
    if options.only and not passed + failed:
        _warn(f"no case {', '.join(options.only)} in {', '.join(options.files)}")
        return USAGE
    _say(f"{passed} passed, {failed} failed")
    return FAILED if failed else 0


def _verdicts(files: Sequence[CaseFile], only: frozenset[str], engine: Engine) -> Iterator[Verdict]:
    for file in files:
        for case in file.cases:
            name = case.case if isinstance(case, UnreadableCaseError) else case.id
            if only and name not in only:
                continue
            if isinstance(case, UnreadableCaseError):
                yield Verdict(name, (str(case),))
            elif isinstance(case, Scenario):
                yield verdict_of_scenario(case, engine)
            else:
                yield verdict_of_division(case)


def _print(verdict: Verdict, *, is_verbose: bool) -> None:
    for note in verdict.notes:
        _warn(f"{verdict.id}: {note}")
    if verdict.is_passed:
        _say(f"ok   {verdict.id}")
    elif is_verbose:
        trace = verdict.trace.splitlines()
        _say("\n       ".join([f"FAIL {verdict.id}:", *verdict.differences, *trace]))
    else:
        first, *others = verdict.differences
        _say(f"FAIL {verdict.id}: {first}{f' (and {len(others)} more)' if others else ''}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
