"""A process that stands for election and, while it leads, signs a ledger as fast as it may.

    python -m tests.support.contender KUBECONFIG NAMESPACE IDENTITY

Exits with 0 when told to stop, with 9 when it lost its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
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

DURATION = 3.0
LOST = 9


async def main(kubeconfig: str, namespace: str, identity: str) -> int:
    transport = HttpTransport(load_connection(Path(kubeconfig)))
    election = Election(
        name="ledger", namespace=namespace, identity=identity, duration=DURATION, renew_within=2.0, retry_every=0.3
    )
    manager = Manager(transport, name="contender", election=election)

    async def sign() -> None:
        while True:
            with contextlib.suppress(ApiError, ConnectionFault, NotLeading):
                await manager.client.merge_patch(CONFIG_MAPS, "ledger", {"data": {"by": identity}}, namespace)
                patch = {"metadata": {"annotations": {"n": str(asyncio.get_running_loop().time())}}}
                await manager.client.merge_patch(CONFIG_MAPS, "ledger", patch, namespace)
            await asyncio.sleep(0.01)

    manager.add_leader_task(sign)
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
