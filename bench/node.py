"""Pods on this machine, as ``shoal up`` runs them: ``python bench/node.py``.

How long pods take to start and to go, one after the other and many at once; what they cost at rest; what the way
through a Service, and the log, cost a program. All of it is seen from outside, over TLS, or by programs in pods. The
bounds are what the same machine does with nothing around it: ``unshare``, the way without a Service, a plain file.

Exits 1 where a budget is missed. What cannot be measured here is said to be not run.
"""

import argparse
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console

from bench.figures.machine import facts
from bench.figures.table import WIDTH, show
from bench.pods import results
from bench.pods.results import PARTS, Plan
from bench.pods.talking import TalkPlan
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
    plan = plan_of(arguments)
    who = "root" if os.getuid() == 0 and not plan.as_user else "an ordinary user"
    measured_on = [f"as {who}; {(lines := facts(PACKAGES))[0]}", *lines[1:]]
    runs = results.measure(plan, told.print)
    sections = results.comparisons(runs)
    as_json = arguments.output == "json"
    console = Console(stderr=as_json, width=WIDTH)
    show(sections, [*results.facts(runs), *measured_on], console)
    if as_json:
        print(json.dumps({"measured on": measured_on, **results.raw(runs)}, indent=2))
    missed = [str(line) for lines in sections.values() for line in lines if line.verdict == "MISSED"]
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


def plan_of(arguments: argparse.Namespace) -> Plan:
    plan = Plan(
        parts=frozenset(arguments.only or PARTS),
        as_user=arguments.user,
        has_stages=arguments.stages,
    )
    if arguments.quick:
        talk = TalkPlan(rounds=1, seconds=0.5, megabytes=50, logged_megabytes=10)
        plan = replace(plan, starts=10, bursts=(20,), resting=10, rest_seconds=5.0, talk=talk)
    return replace(plan, starts=arguments.starts or plan.starts, bursts=tuple(arguments.burst or plan.bursts))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures pods on this machine, as `shoal up` runs them.")
    parser.add_argument("--quick", action="store_true", help="few pods: shows that it works, proves nothing")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this alone; may be repeated")
    parser.add_argument("--user", action="store_true", help="run Shoal as an ordinary user where this is root")
    parser.add_argument("--starts", type=int, help="pods that are started one by one (default: 100, quick 10)")
    parser.add_argument("--burst", type=int, action="append", help="pods at once; may be repeated (default: 100, 250)")
    parser.add_argument("--stages", action="store_true", help="say where the time of a start goes: slows it a little")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json: the raw figures, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
