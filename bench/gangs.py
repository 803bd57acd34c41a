"""Gangs: one PodCliqueSet of 500 replicas with two pods each, as ``shoal up`` runs it: ``python bench/gangs.py``.

The set is made, becomes twice as large, half as large again, and is deleted, on simulated nodes; a client outside notes
when its watch shows the last pod created, ready or gone. Once on the embedded server, once on a real kube-apiserver
with etcd and kube-controller-manager, and once more, its beginning alone, for kai-scheduler. Grove's own figures for a
set of this size are those that it has published: they were not measured here.

Exits 1 where a budget is missed. Without the real binaries it measures the embedded server alone and says so.
"""

import argparse
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.sets import results
from bench.sets.results import PARTS, Plan
from bench.starting.clusters import Ended, StartFailed
from bench.starting.observer import Stalled

PACKAGES = ("shoal", "aiohttp", "msgspec", "uvloop")


def main() -> int:
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an error would end it, so that no cluster is left behind
    try:
        return measure(parse(), told)
    except (StartFailed, Ended, Stalled) as error:
        told.print(f"bench: {error}", markup=False)
        return 1


def measure(arguments: argparse.Namespace, told: Console) -> int:
    measured_on = facts(PACKAGES)
    runs, not_run = results.measure(plan_of(arguments), told.print)
    sections = results.comparisons(runs, not_run)
    as_json = arguments.output == "json"
    show(sections, [*results.processes(runs), *measured_on], Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, **results.raw(runs)}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def plan_of(arguments: argparse.Namespace) -> Plan:
    plan = Plan(parts=frozenset(arguments.only or PARTS), profiles=arguments.profile)
    if arguments.quick:
        plan = replace(plan, replicas=50, rounds=1)
    return replace(plan, replicas=arguments.replicas or plan.replicas, rounds=arguments.rounds or plan.rounds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures PodCliqueSets on `shoal up`, embedded and on kube-apiserver."
    )
    parser.add_argument("--quick", action="store_true", help="50 replicas, once: shows that it works, proves nothing")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be repeated")
    parser.add_argument("--replicas", type=int, help="of the set, each with two pods (default: 500, quick 50)")
    parser.add_argument("--rounds", type=int, help="of each part, in turns (default: 3, quick 1)")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="put profiles of our processes there: slows them")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
