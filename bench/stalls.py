"""How long others wait while one client sends what takes the API server long: ``python bench/stalls.py``.

One client reads a namespace again and again; another sends one heavy request after the other. Each row is the longest
that a read took meanwhile, beside the heavy request's own time. Exits 1 where a budget is missed.
"""

import argparse
import asyncio
import ssl
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, it finds `bench`

from rich.console import Console
from rich.table import Table

from bench.figures.machine import facts
from bench.stalling.attacks import Attack, attacks
from bench.stalling.waits import Suffered, WrongAnswer, connected
from tests.support.clusters.embedded import running_embedded

BUDGET = 0.1
"""Seconds that one client may keep another waiting, on a machine that has nothing else to do."""


def main() -> int:
    arguments = parse()
    chosen = [each for each in attacks() if arguments.only in each.name]
    told = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        rows = asyncio.run(measure(chosen, arguments.rounds))
    except WrongAnswer as error:
        told.print(f"bench: {error}", markup=False)
        return 1
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("while another client sends", width=42)
    for column in ("it takes", "worst wait", "budget", ""):
        table.add_column(column, justify="right")
    missed = []
    for attack, took, worst in rows:
        verdict = "ok" if worst <= BUDGET else "MISSED"
        missed += [attack.name] if verdict == "MISSED" else []
        table.add_row(attack.name, f"{took:.2f} s", f"{worst * 1000:.0f} ms", f"{BUDGET * 1000:.0f} ms", verdict)
    Console(width=100).print(table)
    for fact in facts(("shoal", "aiohttp", "msgspec", "uvloop")):
        told.print(fact)
    if missed:
        told.print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


async def measure(chosen: list[Attack], rounds: int) -> list[tuple[Attack, float, float]]:
    """The time of each attack and the longest wait meanwhile, of the best round: other load only adds to both."""
    with tempfile.TemporaryDirectory() as folder, running_embedded(Path(folder) / "data") as server:
        tls = ssl.create_default_context(cafile=str(server.ca_file))
        async with connected(server.server, server.admin_token, tls) as clients:
            rows = []
            for attack in chosen:
                suffered: list[Suffered] = [await clients.suffer(attack) for _ in range(rounds)]
                best = min(suffered, key=lambda each: each.worst)
                rows.append((attack, best.took, best.worst))
            return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures how long others wait during one client's heavy requests.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is sent (default: 3)")
    parser.add_argument("--only", default="", help="those whose name contains this text")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
