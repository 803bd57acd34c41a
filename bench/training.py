"""Training: 1,000 TrainJobs of two nodes, from their request to their end: ``python bench/training.py``.

TrainJobs are posted at once, on a cluster of simulated nodes where each pod runs for a second; a client outside notes
when its watches show the last pod, and the last TrainJob as Complete. Once on ``shoal up`` as it stands; then on a real
kube-apiserver with etcd and kube-controller-manager, once looked after by ``shoal operator`` and ``shoal webhooks``,
and once by upstream's own controllers, Kubeflow Trainer and JobSet, with their client's limits lifted and as shipped.

Exits 1 where a budget is missed. What cannot be run (no real binaries, no Go) is printed as not run.
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
from bench.starting.clusters import Ended, StartFailed
from bench.starting.observer import Stalled
from bench.trainjobs import results
from bench.trainjobs.results import PARTS, PEERS, Plan

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
    plan = plan_of(arguments)
    runs, not_run = results.measure(plan, told.print)
    sections = results.comparisons(runs, not_run, plan)
    as_json = arguments.output == "json"
    show(sections, [*results.notes(runs), *measured_on], Console(stderr=as_json, width=WIDTH))
    if as_json:
        print(json.dumps({"measured on": measured_on, "not run": not_run, **results.raw(runs)}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def plan_of(arguments: argparse.Namespace) -> Plan:
    parts = frozenset(arguments.only or PARTS)
    if not arguments.peers:
        parts -= set(PEERS)
    plan = Plan(parts=parts, profiles=arguments.profile, quick=arguments.quick)
    if arguments.quick:
        plan = replace(plan, train_jobs=50, rounds=1)
    return replace(plan, train_jobs=arguments.train_jobs or plan.train_jobs, rounds=arguments.rounds or plan.rounds)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Measures TrainJobs: embedded, on kube-apiserver, and by upstream's Trainer and JobSet on the same."
    )
    parser.add_argument("--quick", action="store_true", help="50 TrainJobs, once: shows that it works, proves nothing")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be repeated")
    parser.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="upstream's controllers, built from their Go modules once (minutes) and kept in the cache",
    )
    parser.add_argument("--train-jobs", type=int, metavar="N", help="how many, of two nodes each (default: 1000)")
    parser.add_argument("--rounds", type=int, help="of each part, in turns (default: 3, quick 1)")
    parser.add_argument("--profile", type=Path, metavar="DIR", help="put profiles of our processes there: slows them")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    arguments = parser.parse_args()
    if not arguments.peers and arguments.only and not set(arguments.only) - set(PEERS):
        parser.error("--no-peers leaves nothing of --only: leave one of them out")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
