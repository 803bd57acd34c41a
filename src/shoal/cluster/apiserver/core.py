"""The server without its sockets: state, rules and upkeep behind one Service. Tests use it as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from shoal.api.meta import format_time, now
from shoal.cluster.apiserver.access.authentication import Authenticator
from shoal.cluster.apiserver.access.authorization import KINDS as ACCESS_KINDS
from shoal.cluster.apiserver.access.authorization import Authorizer
from shoal.cluster.apiserver.access.credentials import Credentials
from shoal.cluster.apiserver.access.user import User
from shoal.cluster.apiserver.admission import Chain
from shoal.cluster.apiserver.admission.pod_security import PodSecurityMetrics
from shoal.cluster.apiserver.admission.webhooks.matching import Condition
from shoal.cluster.apiserver.builtin import RULES
from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.cel import compile_expression
from shoal.cluster.apiserver.cel.types import DYN
from shoal.cluster.apiserver.custom import DEFINITION_RULES
from shoal.cluster.apiserver.discovery import Discovery, OpenApi
from shoal.cluster.apiserver.front.paths import MINOR, Paths
from shoal.cluster.apiserver.front.resources import Resources, Special
from shoal.cluster.apiserver.kinds.registry import Registry
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from shoal.cluster.apiserver.metrics import Metrics
from shoal.cluster.apiserver.nodes import Agents, NodeSpecials, PodDialer, ServiceBackends
from shoal.cluster.apiserver.offload import Offload
from shoal.cluster.apiserver.service import Service
from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import Store
from shoal.cluster.apiserver.subresources.pods import PodSubresources
from shoal.cluster.apiserver.subresources.questions import Questions
from shoal.cluster.apiserver.subresources.scale import ScaleSubresource
from shoal.cluster.apiserver.upkeep.aggregation import keep_aggregated
from shoal.cluster.apiserver.upkeep.bootstrap import make_first_objects
from shoal.cluster.apiserver.upkeep.definitions import Definitions
from shoal.cluster.apiserver.upkeep.expiry import EventExpiry
from shoal.cluster.apiserver.upkeep.lasting import lasting
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.apiserver.verbs.bodies import completed
from shoal.cluster.apiserver.verbs.deleting import DeleteOptions, delete
from shoal.cluster.apiserver.verbs.service_addresses import ServiceAddresses
from shoal.cluster.apiserver.verbs.writing import Workshop

_ITSELF = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_REVIEWS = {
    "tokenreviews.authentication.k8s.io": "token_review",
    "selfsubjectreviews.authentication.k8s.io": "self_subject_review",
    "subjectaccessreviews.authorization.k8s.io": "subject_access_review",
    "localsubjectaccessreviews.authorization.k8s.io": "local_subject_access_review",
    "selfsubjectaccessreviews.authorization.k8s.io": "self_subject_access_review",
    "selfsubjectrulesreviews.authorization.k8s.io": "self_subject_rules_review",
}


@dataclass(frozen=True, kw_only=True)
class Core:
    """A running server, whatever connects to it."""

    state: State
    service: Service
    credentials: Credentials


@asynccontextmanager
async def running(
    store: Store, credentials: Credentials, *, address: str = "", agent_sockets: Path | None = None
) -> AsyncIterator[Core]:
    """Runs a server on an open store; ``address`` is where its tokens say that it can be found.

    ``agent_sockets`` is the folder in which Nodes may say that their agents listen.
    """
    state = State(store, Registry(builtin_kinds({**RULES, _DEFINITION: DEFINITION_RULES})))
    await make_first_objects(state, now=seconds_now)
    metrics = Metrics(state.store, state.registry)
    agents = Agents(state, credentials, sockets=agent_sockets, now=now())
    dialer = PodDialer(state, agents)
    backends = ServiceBackends(state, dialer)
    admission = Chain(
        state,
        backends=backends,
        compile_condition=_condition,
        equivalents=lambda kind: [one for one in state.registry if one.storage == kind.storage and one is not kind],
        decode=lambda kind, value: completed(kind, value, []),
        now=now,
        pod_security_metrics=PodSecurityMetrics(metrics.registry, minor=int(MINOR)),
    )
    offload = Offload()
    authorizer = Authorizer(state, lambda: max(map(store.changed, ACCESS_KINDS)))
    workshop = Workshop(
        state=state,
        admission=admission,
        addresses=ServiceAddresses(state),
        authorizer=authorizer,
        offload=offload,
        now=seconds_now,
    )

    async def delete_one(storage: str, namespace: str, name: str) -> None:
        kind = state.registry.stored(storage)
        if kind is not None:
            call = Call(method="DELETE", path="")
            asked = Asked(kind=kind, namespace=namespace, name=name, user=_ITSELF, call=call)
            await delete(workshop, asked, DeleteOptions(propagation="Background"))

    definitions = Definitions(state, delete_one, seconds_now)
    definitions.load()
    node_specials = NodeSpecials(state, authorizer, agents, dialer, backends)
    service = _service(state, workshop, credentials, address, node_specials.table(), metrics)
    try:
        async with asyncio.TaskGroup() as tasks:
            upkeep = [
                tasks.create_task(lasting("definitions", lambda: definitions.run(tasks))),
                tasks.create_task(lasting("aggregated roles", lambda: keep_aggregated(state))),
                tasks.create_task(lasting("expiry of events", EventExpiry(state).run)),
            ]
            try:
                yield Core(state=state, service=service, credentials=credentials)
            finally:
                definitions.stop()
                for task in upkeep:
                    task.cancel()
    finally:
        await node_specials.close()
        await admission.close()
        await agents.close()
        offload.close()


def seconds_now() -> str:
    """The time as objects carry it."""
    return format_time(now())


def _condition(expression: str) -> Condition:
    """A webhook's condition on the request."""
    return compile_expression(expression, dict.fromkeys(("object", "oldObject", "request"), DYN)).evaluate


def _service(
    state: State,
    workshop: Workshop,
    credentials: Credentials,
    address: str,
    further: dict[tuple[str, str, str], Special],
    metrics: Metrics,
) -> Service:
    authenticator = Authenticator(credentials, state, clock=now)
    authorizer = workshop.authorizer
    questions = Questions(
        authenticator=authenticator, authorizer=authorizer, signer=credentials.signer, state=state, clock=now
    )
    return Service(
        authenticator=authenticator,
        authorizer=authorizer,
        resources=Resources(workshop, _specials(workshop, questions) | further),
        paths=Paths(
            discovery=Discovery(state.registry),
            openapi=OpenApi(state.registry),
            signer=credentials.signer,
            address=address,
            metrics=metrics.text,
            checks={"ping": lambda: "", "storage": state.store.problem},
        ),
        told=metrics.request,
    )


def _specials(workshop: Workshop, questions: Questions) -> dict[tuple[str, str, str], Special]:
    scale, pods = ScaleSubresource(workshop), PodSubresources(workshop)
    specials: dict[tuple[str, str, str], Special] = {
        ("*", "scale", "get"): scale.get,
        ("*", "scale", "update"): scale.update,
        ("*", "scale", "patch"): scale.patch,
        ("pods", "binding", "create"): pods.bind,
        ("bindings", "", "create"): pods.bind,
        ("pods", "eviction", "create"): pods.evict,
        ("serviceaccounts", "token", "create"): questions.token,
    }
    return specials | {(storage, "", "create"): getattr(questions, name) for storage, name in _REVIEWS.items()}
