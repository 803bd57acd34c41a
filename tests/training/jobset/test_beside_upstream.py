"""The same stories on a real cluster, once with upstream's own controller and once with ours: the same outcome.

Compared are JobSets as their webhooks fill them in, their status and events, and the Jobs, services and claims that are
made for them, field by field. Upstream's program is built for the bench of training and found in its cache; where it is
not there these tests do not run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shoal.api import jobset
from shoal.api.core import EVENTS, PERSISTENT_VOLUME_CLAIMS, SERVICES
from shoal.cluster.kubernetes import AdminApi, Binaries, RealKubernetes, Refused
from shoal.kube import ApiError, Client, Invalid, Manager, running
from shoal.kube.admission import AdmissionServer, MemoryStore, Policy, SelfMade, UrlEndpoint
from shoal.kube.admission.configuration import MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS, encoded_bundle
from shoal.kube.certificates import make_authority, make_serving
from shoal.training.jobset import JobSetSettings, add_everything
from shoal.training.jobset.admission import Lookups, job_set_webhooks, webhook_configurations
from tests.support.clusters.client import client_to, transport_to, until
from tests.support.programs.kube_binaries import cache_root
from tests.training.jobset.admission.test_validation import REFUSED
from tests.training.jobset.builders import a_job_set
from tests.training.jobset.conftest import JobSetWorld
from tests.training.jobset.stories import STORIES
from tests.training.jobset.test_on_engines import Reached

pytestmark = [pytest.mark.kube, pytest.mark.slow]

HERE = "127.0.0.1"
CALM = 25
"""Looks, of some milliseconds each, that are to show the same."""
Pictures = dict[str, dict[str, Any]]
"""What is told of a story: what there was at each stop, and the events at its end."""
VERDICTS: dict[str, dict[str, Any]] = {
    "a sound one": a_job_set(),
    **{str(case.id): case.values[0] for case in REFUSED if "not enabled" not in str(case.values[2])},
}
STRICTER = {"nor on itself": "upstream lets a replicated job wait for itself, which is for ever"}
"""What we refuse and upstream does not, and why."""


@dataclass(frozen=True)
class Outcome:
    """What a controller and its webhooks made of everything."""

    stories: dict[str, Pictures]
    is_accepted: dict[str, bool]


RESOURCES = {resource.kind: resource for resource in (MUTATING_CONFIGURATIONS, VALIDATING_CONFIGURATIONS)}


@pytest.fixture(scope="module")
def outcomes(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Outcome, Outcome]]:
    """What came of each story, upstream's first."""
    found = sorted((cache_root() / "kube").glob("training-*/jobset-controller-manager"))
    if not found:
        pytest.skip("upstream's JobSet controller is not built: run the bench of training once")
    folder = tmp_path_factory.mktemp("jobset")
    definitions = [definition.manifest() for definition in jobset.DEFINITIONS]
    cluster = RealKubernetes(binaries, folder / "kube", controller_manager=True, durable=False, definitions=definitions)
    cluster.start()
    try:
        yield asyncio.run(_played(cluster, found[-1], folder))
    finally:
        cluster.stop(grace=0)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_comes_out_as_with_upstreams_controller(outcomes: tuple[Outcome, Outcome], story: str) -> None:
    theirs, ours = (outcome.stories[story] for outcome in outcomes)
    assert ours == theirs


@pytest.mark.parametrize("case", VERDICTS)
def test_what_one_refuses_the_other_does_not_accept(outcomes: tuple[Outcome, Outcome], case: str) -> None:
    theirs, ours = (outcome.is_accepted[case] for outcome in outcomes)
    assert (theirs, ours) == ((True, False) if case in STRICTER else (theirs, theirs))


async def _played(cluster: RealKubernetes, program: Path, folder: Path) -> tuple[Outcome, Outcome]:
    async with client_to(cluster.kubeconfig) as client:
        async with _upstream(client, cluster.kubeconfig, program, folder):
            theirs = Outcome(await _all_stories(client, cluster.admin, "theirs"), await _verdicts(client))
        async with _ours(client, cluster.kubeconfig):
            ours = Outcome(await _all_stories(client, cluster.admin, "ours"), await _verdicts(client))
    return theirs, ours


async def _verdicts(client: Client) -> dict[str, bool]:
    async def is_accepted(body: dict[str, Any]) -> bool:
        try:
            await client.create(jobset.JOB_SETS.documents(), body, "default", dry_run=True)
        except Invalid:
            return False
        return True

    return {case: await is_accepted(body) for case, body in VERDICTS.items()}


async def _all_stories(client: Client, admin: AdminApi, who: str) -> dict[str, Pictures]:
    async def play(name: str) -> Pictures:
        world = JobSetWorld(Reached(client), f"{who}-{name.replace('_', '-')}")
        _make_namespace(admin, world.namespace)
        pictures = {stop: await _picture(world) async for stop in STORIES[name](world)}
        return {**pictures, "at the end": {"events": await _events(world)}}

    return dict(zip(STORIES, await asyncio.gather(*map(play, STORIES)), strict=True))


# Pictures


async def _picture(world: JobSetWorld) -> dict[str, Any]:
    """All there is of a JobSet once it rests, less what differs from one cluster or moment to another."""

    async def seen() -> dict[str, Any]:
        job_set = await world.job_set()
        jobs = {name: {**job, "status": None} for name, job in (await world.jobs()).items()}
        children = [await world.cluster.all(kind, world.namespace) for kind in (SERVICES, PERSISTENT_VOLUME_CLAIMS)]
        whole = {"spec": job_set["spec"], "status": job_set["status"], "jobs": jobs, "children": children}
        plain: dict[str, Any] = _plain(json.loads(_anonymous(json.dumps(whole), world.namespace)))
        conditions = plain["status"].get("conditions", ())
        plain["status"]["conditions"] = sorted(conditions, key=lambda each: str(each["type"]))
        return plain

    return dict(await _once_calm(seen))


async def _events(world: JobSetWorld) -> list[tuple[str, ...]]:
    """What was told of the JobSet, once nothing more is."""

    async def told() -> list[tuple[str, ...]]:
        found = await world.cluster.all(EVENTS, world.namespace)
        of_set = [each for each in found if each["involvedObject"]["kind"] == "JobSet"]
        told = {(each["type"], each["reason"], each["message"]) for each in of_set}
        # Upstream does not wait until it sees what it made, and now and then makes a Job twice.
        return sorted(each for each in told if not (each[1] == "JobCreationFailed" and "already exists" in each[2]))

    return list(await _once_calm(told))


async def _once_calm(look: Callable[[], Awaitable[Any]]) -> Any:
    """What is seen once it has been the same for a while."""
    last: list[Any] = []

    async def is_calm() -> bool:
        last.append(await look())
        return len(last) > CALM and all(each == last[-1] for each in last[-CALM:])

    await until(is_calm, within=30)
    return last[-1]


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_KEY = re.compile(r'("jobset.sigs.k8s.io/job-key": )"[0-9a-f]{40}"')
_BOOKKEEPING = frozenset({"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"})


def _anonymous(text: str, namespace: str) -> str:
    return _KEY.sub(r'\1"key"', _TIME.sub("time", _UID.sub("uid", text.replace(namespace, "here"))))


def _plain(value: Any) -> Any:
    """A value without bookkeeping, and without the empty objects that Go's encoding leaves behind."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _plain(each) for key, each in value.items() if key not in _BOOKKEEPING}
    return {key: each for key, each in inner.items() if each not in ({}, None)}


def _make_namespace(admin: AdminApi, name: str) -> None:
    admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        admin.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    except Refused as error:
        if error.status != 409:
            raise


# The two controllers


@asynccontextmanager
async def _upstream(client: Client, kubeconfig: Path, program: Path, folder: Path) -> AsyncIterator[None]:
    """Upstream's program with its webhooks."""
    port, moment, day = _free_port(), datetime.now(UTC), timedelta(days=1)
    authority = make_authority("test", now=moment, lifetime=day)
    pair = make_serving(authority, [HERE], now=moment, lifetime=day)
    certificates = folder / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    (certificates / "tls.crt").write_bytes(pair.certificate)
    (certificates / "tls.key").write_bytes(pair.key)
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "webhook": {"port": port, "host": HERE},
        "internalCertManagement": {"enable": False},
    }
    (folder / "config.yaml").write_text(json.dumps(configuration))
    with (folder / "upstream.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "--config", folder / "config.yaml", "--kubeconfig", kubeconfig],
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=log,
            stderr=log,
        )
        try:
            bodies = _upstream_webhooks(f"https://{HERE}:{port}", encoded_bundle(authority.certificate))
            async with _registered(client, bodies):
                yield
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.create_server((HERE, 0)) as listening:
        return int(listening.getsockname()[1])


def _upstream_webhooks(url: str, bundle: str) -> list[dict[str, Any]]:
    def body(kind: str, verb: str, operations: list[str]) -> dict[str, Any]:
        rule = {"apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["v1alpha2"], "resources": ["jobsets"]}
        webhook = {
            "name": f"{verb}.kb.io",
            "clientConfig": {"url": f"{url}/{verb}-jobset-x-k8s-io-v1alpha2-jobset", "caBundle": bundle},
            "rules": [{**rule, "operations": operations}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        name = f"jobset-{kind.lower()}-webhook-configuration"
        return {"kind": f"{kind}WebhookConfiguration", "metadata": {"name": name}, "webhooks": [webhook]}

    return [body("Mutating", "mutate", ["CREATE"]), body("Validating", "validate", ["CREATE", "UPDATE"])]


@asynccontextmanager
async def _ours(client: Client, kubeconfig: Path) -> AsyncIterator[None]:
    """Our controllers with their webhooks, but for those of pods: upstream's are not registered either."""
    webhooks = job_set_webhooks(Lookups.live(client), JobSetSettings())
    server = AdmissionServer(webhooks, host=HERE, port=0)
    serving = await SelfMade(MemoryStore(), Policy(names=(HERE,))).current()
    server.use(serving.pair)
    await server.start()
    of_job_sets = [each for each in webhooks if each.rules[0].resource == "jobsets"]
    endpoint = UrlEndpoint(f"https://{HERE}:{server.port}")
    bodies = webhook_configurations(of_job_sets, endpoint, authorities=serving.authorities)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.stop)
        await stack.enter_async_context(_registered(client, bodies))
        manager = Manager(await stack.enter_async_context(transport_to(kubeconfig)), name="jobsets")
        add_everything(manager, JobSetSettings())
        await stack.enter_async_context(running(manager))
        yield


@asynccontextmanager
async def _registered(client: Client, bodies: list[dict[str, Any]]) -> AsyncIterator[None]:
    """The API server calls these webhooks, and has begun to."""
    for body in bodies:
        await client.create(RESOURCES[body["kind"]], body)
    try:
        await until(lambda: _is_filled_in(client), within=60)
        yield
    finally:
        for body in bodies:
            await client.delete(RESOURCES[body["kind"]], body["metadata"]["name"])


async def _is_filled_in(client: Client) -> bool:
    body = {"metadata": {"name": "probe"}, "spec": {"replicatedJobs": []}}
    try:
        made = await client.create(jobset.JOB_SETS.documents(), body, "default", dry_run=True)
    except ApiError:
        return False
    return "successPolicy" in made.content["spec"]
