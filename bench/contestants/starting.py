"""How a contestant waits for its start: what it costs to import and configure is no part of the race."""

import sys
from pathlib import Path

WORKERS = 32
"""How many objects are worked on at once, by whoever limits that."""


def ready(arguments: list[str]) -> tuple[Path, str]:
    """Says that this process could begin, waits until it may, and gives the kubeconfig and the namespace to work in."""
    kubeconfig, namespace = arguments
    print("ready", flush=True)
    if not sys.stdin.readline():
        sys.exit("the race was called off")
    return Path(kubeconfig), namespace
