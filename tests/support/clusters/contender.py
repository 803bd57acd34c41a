"""A process that stands for election and, while it leads, signs a ledger as fast as it may.

    python -m tests.support.clusters.contender KUBECONFIG NAMESPACE IDENTITY

Exits with 0 when told to stop, with 9 when it lost its lease. SIGUSR1 freezes it between two steps of its event loop:
frozen in the middle of sending a request it would send the rest when it wakes, which no client can prevent.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import signal
import sys
from pathlib import Path

from shoal.api.core import CONFIG_MAPS
from shoal.kube import (
    ApiError,
    ConnectionFault,
    Election,
    HttpTransport,
    Manager,
    NotLeading,
    configure_logs,
    load_connection,
    run_until_signalled,
)

DURATION = 6.0
LOST = 9
SIGNERS = 8


async def main(kubeconfig: str, namespace: str, identity: str) -> int:
    transport = HttpTransport(load_connection(Path(kubeconfig)))
    election = Election(
        name="ledger", namespace=namespace, identity=identity, duration=DURATION, renew_within=4.0, retry_every=0.3
    )
    manager = Manager(transport, name="contender", election=election)

    async def sign() -> None:
        for number in itertools.count():
            patch = {"metadata": {"annotations": {"number": str(number)}}, "data": {"by": identity}}
            with contextlib.suppress(ApiError, ConnectionFault, NotLeading):
                await manager.client.merge_patch(CONFIG_MAPS, "ledger", patch, namespace)
            await asyncio.sleep(0.001)

    # Many hands: whenever the process is frozen, some of them are just about to write.
    for _ in range(SIGNERS):
        manager.add_leader_task(sign)
    freeze = functools.partial(os.kill, os.getpid(), signal.SIGSTOP)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, freeze)
    try:
        await run_until_signalled(manager)
    except NotLeading:
        return LOST
    finally:
        await transport.close()
    return 0


if __name__ == "__main__":
    configure_logs(as_json=True)
    sys.exit(asyncio.run(main(*sys.argv[1:])))
