"""The controller runtime against its peers, in one run on one machine: ``make bench``, or ``python bench/runtime.py``.

Two parts. The race: the same operator (one child and one status for each object) on a real API server, written on
``shoal.kube``, with kopf, and as bare requests. The pods: what it costs to read and hold them, and to follow their
changes, here and with the official client and lightkube.

Exits 1 where a budget is missed. Peers that are not installed are named as not run.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench` and `examples`

import uvloop
from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.holding import results as pods
from bench.race import results as operators
from bench.race.heats import Fallen
from bench.race.track import WrongResult
from shoal.cluster.kubernetes import MissingBinaries, StartFailed

PACKAGES = ("shoal", "aiohttp", "msgspec", "uvloop", "kopf", "kubernetes", "lightkube")


def main() -> int:
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        return measure(parse(), told)
    except (MissingBinaries, StartFailed, Fallen, WrongResult) as error:
        told.print(f"bench: {error}", markup=False)
        return 1


def measure(arguments: argparse.Namespace, told: Console) -> int:
    measured_on = facts(PACKAGES)
    sections = {}
    raw = {}
    if arguments.only in (None, "race"):
        objects = 200 if arguments.quick else 1000
        heats, absent = uvloop.run(operators.race(objects=objects, rounds=arguments.rounds, say=told.print))
        title = f"{objects:,} objects, one child and one status each, on a real kube-apiserver"
        sections[title] = operators.comparisons(heats, absent)
        raw["race"] = operators.raw(heats)
    if arguments.only in (None, "pods"):
        sizes = pods.QUICK if arguments.quick else pods.Sizes()
        found = pods.measure(sizes, rounds=arguments.rounds, say=told.print)
        title = f"{sizes.pods:,} pods of {pods.pod_size() / 1000:.1f} KB, against the official client and lightkube"
        sections[title] = pods.comparisons(found, sizes)
        raw["pods"] = pods.raw(found)
    as_json = arguments.output == "json"
    show(sections, measured_on, Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, "rounds": arguments.rounds, **raw}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures the controller runtime against its peers.")
    parser.add_argument("--quick", action="store_true", help="small numbers: shows that it works, proves nothing")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default: %(default)s)")
    parser.add_argument("--only", choices=("race", "pods"), help="one part alone")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
