"""All of it together, as the server's dispatch takes it."""

from __future__ import annotations

from shoal.cluster.apiserver.access.authorization import Authorizer
from shoal.cluster.apiserver.front.resources import Special
from shoal.cluster.apiserver.nodes.agents import Agents
from shoal.cluster.apiserver.nodes.logs import Logs
from shoal.cluster.apiserver.nodes.metrics import UsageMetrics
from shoal.cluster.apiserver.nodes.pod_connections import PodDialer
from shoal.cluster.apiserver.nodes.proxies import Proxies
from shoal.cluster.apiserver.nodes.relays import Relays
from shoal.cluster.apiserver.nodes.scraping import Scraper
from shoal.cluster.apiserver.nodes.service_backends import ServiceBackends
from shoal.cluster.apiserver.state import State

_CONNECTING = ("get", "create")
_PROXIED = ("get", "create", "update", "patch", "delete")


class NodeSpecials:
    """Answers what only agents can."""

    def __init__(
        self, state: State, authorizer: Authorizer, agents: Agents, dialer: PodDialer, backends: ServiceBackends
    ) -> None:
        self._logs = Logs(state, agents)
        self._relays = Relays(state, agents, authorizer)
        self._proxies = Proxies(state, agents, dialer, backends)
        self._scraper = Scraper(state, agents)
        self._usage = UsageMetrics(state, self._scraper)

    def table(self) -> dict[tuple[str, str, str], Special]:
        """What answers what, by storage, subresource and verb."""
        relays, proxies, usage = self._relays, self._proxies, self._usage
        specials: dict[tuple[str, str, str], Special] = {
            ("pods", "log", "get"): self._logs.get,
            ("nodes.metrics.k8s.io", "", "get"): usage.get_node,
            ("nodes.metrics.k8s.io", "", "list"): usage.list_nodes,
            ("pods.metrics.k8s.io", "", "get"): usage.get_pod,
            ("pods.metrics.k8s.io", "", "list"): usage.list_pods,
        }
        connecting: dict[str, Special] = {
            "exec": relays.exec,
            "attach": relays.attach,
            "portforward": relays.forward,
        }
        proxied: dict[str, Special] = {"nodes": proxies.node, "pods": proxies.pod, "services": proxies.service}
        specials |= {("pods", name, verb): special for name, special in connecting.items() for verb in _CONNECTING}
        return specials | {(kind, "proxy", verb): special for kind, special in proxied.items() for verb in _PROXIED}

    async def close(self) -> None:
        """Ends what goes on; the agents are closed by whoever made them."""
        await self._scraper.close()
        await self._relays.close()
        await self._proxies.close()
