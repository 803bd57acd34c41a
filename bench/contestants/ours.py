"""The operator on ``shoal.kube``: examples/greeter.py as it stands, on uvloop."""

import sys
from pathlib import Path

import uvloop

from bench.contestants.starting import WORKERS, ready
from examples.greeter import greeter
from shoal.kube import HttpTransport, Manager, Settings, configure_logs, load_connection, run_until_signalled


async def operate(kubeconfig: Path, namespace: str) -> None:
    manager = Manager(
        HttpTransport(load_connection(kubeconfig)), name="greeter", settings=Settings(namespace=namespace)
    )
    manager.add(greeter(manager, workers=WORKERS))
    await run_until_signalled(manager)


if __name__ == "__main__":
    configure_logs()
    uvloop.run(operate(*ready(sys.argv[1:])))
