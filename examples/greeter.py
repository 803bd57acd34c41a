"""A whole controller: every Greeting gets a ConfigMap with its words, and a status that says where they are.

Run it against the cluster of your kubeconfig:

    python examples/greeter.py --crd | kubectl apply -f -
    python examples/greeter.py
"""

import asyncio
import json
import sys
from typing import Any

from shoal.api.core import CONFIG_MAPS
from shoal.api.crd import CustomResource, Version
from shoal.api.meta import Object, Resource, Wire, owner_reference
from shoal.kube import Controller, HttpTransport, Key, Manager, configure_logs, load_connection, run_until_signalled


class GreetingSpec(Wire, frozen=True, kw_only=True):
    """Whom to greet."""

    name: str


class GreetingStatus(Wire, frozen=True, kw_only=True):
    """Where the words are."""

    config_map: str = ""


class Greeting(Object, frozen=True, kw_only=True):
    """Says hello to someone."""

    spec: GreetingSpec
    status: GreetingStatus = GreetingStatus()


GREETINGS = Resource(type=Greeting, group="example.shoal.dev", version="v1", kind="Greeting", plural="greetings")
DEFINITION = CustomResource(versions=(Version(resource=GREETINGS, status=True),))


def wanted_config_map(greeting: Greeting) -> dict[str, Any]:
    """The child that a Greeting should have: a pure function, tested without a server."""
    identity = {"name": f"{greeting.metadata.name}-words", "namespace": greeting.metadata.namespace}
    return {"metadata": identity, "data": {"words": f"Hello, {greeting.spec.name}!"}}


class Greeter:
    """Keeps each Greeting's ConfigMap and status as they should be."""

    def __init__(self, manager: Manager) -> None:
        self.greetings = manager.cache.informer(GREETINGS)
        self.config_maps = manager.cache.informer(CONFIG_MAPS.documents())
        self.writer = manager.writer("greeter")

    async def reconcile(self, key: Key) -> None:
        """Makes it so; what is so already is not written again."""
        greeting = self.greetings.store.get(key)
        if greeting is None or greeting.metadata.is_deleting:
            return
        owner = owner_reference(greeting, GREETINGS)
        child = await self.writer.apply(self.config_maps, wanted_config_map(greeting), owner=owner)
        status = GreetingStatus(config_map=child.metadata.name)
        await self.writer.patch_status(GREETINGS, greeting, before=greeting.status, after=status)


def greeter(manager: Manager, *, workers: int = 10) -> Controller:
    """Declares what the controller watches: Greetings, and the ConfigMaps that they own."""
    reconcile = Greeter(manager).reconcile
    return Controller("greeter", GREETINGS, reconcile, owns=[CONFIG_MAPS.documents()], workers=workers)


async def main() -> None:
    """Runs until Ctrl-C."""
    manager = Manager(HttpTransport(load_connection()), name="greeter")
    manager.add(greeter(manager))
    await run_until_signalled(manager)


if __name__ == "__main__":
    if "--crd" in sys.argv:
        print(json.dumps(DEFINITION.manifest()))
    else:
        configure_logs()
        asyncio.run(main())
