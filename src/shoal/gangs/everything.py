"""All controllers of gangs in one manager, and the webhooks that check their kinds."""

from __future__ import annotations

from typing import Any

from shoal.api.grove import POD_CLIQUE_SETS
from shoal.gangs.admission import Lookups, gang_webhooks, webhook_configurations
from shoal.gangs.backends import Backends
from shoal.gangs.backends.controller import GOOD_NEWS, add_backends
from shoal.gangs.caches import Caches
from shoal.gangs.cliques import add_cliques
from shoal.gangs.groups import add_groups
from shoal.gangs.podgangs import add_podgangs
from shoal.gangs.sets import add_sets
from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies import add_topologies
from shoal.kube import Manager
from shoal.kube.admission import ServiceEndpoint, UrlEndpoint, Webhooks


def add_gangs(manager: Manager, settings: GangSettings, *, good_news: float = GOOD_NEWS) -> None:
    """Adds every controller; ``good_news`` is for how many seconds that a scheduler was told can stay untold."""
    caches = Caches(manager, pod_selector=settings.pod_selector)
    backends = Backends.load(manager, profiles=settings.profiles)
    add_sets(manager, caches, settings, backends)
    add_groups(manager, caches, settings)
    add_cliques(manager, caches, settings, backends)
    add_podgangs(manager, caches, settings, backends)
    add_topologies(manager, caches, settings)
    add_backends(manager, caches, backends, good_news=good_news)


def add_gang_webhooks(
    manager: Manager, settings: GangSettings, endpoint: ServiceEndpoint | UrlEndpoint
) -> tuple[Webhooks, list[dict[str, Any]]]:
    """The webhooks, and the objects by which the API server learns of them."""
    lookups = Lookups.live(manager.client, manager.cache.informer(POD_CLIQUE_SETS))
    webhooks = gang_webhooks(lookups, settings, Backends.load(profiles=settings.profiles))
    return webhooks, webhook_configurations(webhooks, endpoint)
