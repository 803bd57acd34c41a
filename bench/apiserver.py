"""The embedded API server against a real kube-apiserver and etcd: ``python bench/apiserver.py``.

The same client, 32 connections, TLS; each server on one core of its own with all its processes, durable, RBAC and
admission on, asked by a ServiceAccount that may do no more than what is measured.

Exits 1 where a budget is missed. Without the real binaries it measures ours alone and says that the peer was not run.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.serving import results
from bench.serving.contestants import StartFailed
from bench.serving.load import WrongAnswer
from bench.serving.turns import QUICK, Sizes
from shoal.cluster.kubernetes import StartFailed as RealStartFailed

PACKAGES = ("shoal", "aiohttp", "msgspec", "uvloop")


def main() -> int:
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an error would end it, so that no server is left behind
    try:
        return measure(parse(), told)
    except (StartFailed, RealStartFailed, WrongAnswer) as error:
        told.print(f"bench: {error}", markup=False)
        return 1


def measure(arguments: argparse.Namespace, told: Console) -> int:
    measured_on = facts(PACKAGES)
    sizes = QUICK if arguments.quick else Sizes()
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    turns, not_run = results.measure(sizes, rounds=rounds, say=told.print)
    sections = results.comparisons(turns, not_run)
    as_json = arguments.output == "json"
    show(sections, measured_on, Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, "rounds": rounds, **results.raw(turns)}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the embedded API server against a real kube-apiserver.")
    parser.add_argument("--quick", action="store_true", help="small numbers: shows that it works, proves nothing")
    parser.add_argument("--rounds", type=int, help="how often everything is measured (default: 3, quick 1)")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
