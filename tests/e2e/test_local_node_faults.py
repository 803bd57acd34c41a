"""Whatever is killed around the pods of this machine, and whenever: they run on or are run again, and nothing is left.

The parts are those of a real ``shoal up``, and they are ended by force. A part that is to be *away* for as long as a
test wants is stopped first, and killed after that.
"""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.local_node.conftest import a_local_node
from tests.e2e.local_pods import CLAIMS, PODS, WITHIN, Follower, LocalPods, Object, is_ready, status_of
from tests.support.clusters.shoal_up import Shoal
from tests.support.programs.ordinary_user import is_root
from tests.support.waiting import is_alive, wait_until

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(300)]

SEED = 20260803
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SERVICES = "/api/v1/namespaces/default/services"
TICKS = "n=0; while true; do n=$((n+1)); echo tick $n; sleep 0.2; done"
KEPT = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]}
WAITS = "while ! test -e /v/end; do sleep 0.1; done; exit 7"
VOLUME = {"volumes": [{"name": "v", "emptyDir": {}}]}
IN_V = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}


@pytest.fixture(scope="module", params=["root", "user"])
def shared(request: pytest.FixtureRequest) -> Iterator[LocalPods]:
    """One Shoal for all tests that kill parts of it; each leaves no pod."""
    with a_local_node(request.param) as node:
        pods = LocalPods(node.shoal)
        yield pods
    assert pods.processes() == []


@pytest.fixture
def pods(shared: LocalPods) -> Iterator[LocalPods]:
    yield shared
    for one in shared.shoal.objects(PODS):
        shared.shoal.admin.request("DELETE", f"{PODS}/{one['metadata']['name']}?gracePeriodSeconds=0")
    shared.until_only([])


@pytest.fixture(scope="module")
def capable() -> None:
    """Skips where this machine does not let pods be what they are elsewhere."""
    with a_local_node("root" if is_root() else "user"):
        return


@pytest.fixture
def own(capable: None, tmp_path: Path) -> Iterator[LocalPods]:
    """A Shoal of the test's own, started as often as it wants."""
    # A port that stays: what pods are told of the API server shall not change over a restart.
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    pods = LocalPods(Shoal(tmp_path / "data", f"--api-port={port}", has_local_node=True))
    yield pods
    pods.shoal("down")
    assert pods.processes() == []


# The agent


def test_a_killed_agent_is_missed_by_nobody(pods: LocalPods) -> None:
    probe = {"exec": {"command": ["sh", "-c", "date >> /v/probes"]}, "periodSeconds": 1}
    pods.add("steady", TICKS, container={**IN_V, "readinessProbe": probe}, **VOLUME)
    pods.add("ending", WAITS, container=IN_V, restartPolicy="Never", **VOLUME)
    pods.add("restarting", f"test -e /v/end && sleep 1000; {WAITS}", container=IN_V, **VOLUME)
    pods.add("leaving")
    pods.add("forced")
    before = {name: pods.running(name) for name in ("steady", "ending", "restarting", "leaving", "forced")}
    running = pods.containers()
    token = token_of(pods, "steady")
    with pods.away("node"):
        for name in ("ending", "restarting"):
            (pods.volume(name, "v") / "end").touch()
            until_ended(running[name].pid)
        pods.delete("leaving")
        pods.shoal.admin.request("DELETE", f"{PODS}/forced?gracePeriodSeconds=0")
        pods.add("coming", "echo here; sleep 1000")
        assert pods.containers()["steady"] == running["steady"]

    assert pods.ended("ending", "Failed")["exitCode"] == 7
    restarted = pods.running("restarting", restarts=1)
    assert status_of(restarted)["lastState"]["terminated"]["exitCode"] == 7
    pods.gone("leaving")
    pods.running("coming")
    assert pods.containers()["steady"] == running["steady"]
    assert status_of(pods.running("steady")) == status_of(before["steady"])
    assert not any(is_alive(running[name].pid) for name in ("leaving", "forced"))
    pods.until_only(["coming", "ending", "restarting", "steady"])

    # Everything goes on: probes, tokens, logs, commands.
    probes = pods.volume("steady", "v") / "probes"
    asked = probes.read_text()
    wait_until(lambda: probes.read_text() != asked, "another probe", within=WITHIN)
    wait_until(lambda: token_of(pods, "steady")["exp"] > token["exp"], "a token that is newer", within=WITHIN)
    assert pods.kubectl("exec", "steady", "--", "echo", "hello") == "hello\n"
    follower = Follower(pods, "logs", "-f", "steady", "--tail=1")
    try:
        wait_until(lambda: follower.printed.count("tick") > 2, "what is logged", within=WITHIN)
    finally:
        follower.close()


def until_ended(pid: int) -> None:
    wait_until(lambda: not is_alive(pid), f"process {pid} to end", within=WITHIN)


def token_of(pods: LocalPods, name: str) -> Object:
    """What the token says that a pod finds."""
    text = pods.kubectl("exec", name, "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
    payload = text.split(".")[1]
    found: Object = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


# The runtime


def test_with_the_runtime_all_containers_end_and_pods_are_run_again_where_they_may(pods: LocalPods) -> None:
    served(pods)
    pods.add("once", restartPolicy="Never")
    pods.add("failing", restartPolicy="OnFailure")
    pods.add("stubborn", "trap '' TERM INT HUP; (trap '' TERM; sleep 1000) & while true; do sleep 1; done")
    for name in ("web", "client", "once", "failing", "stubborn"):
        pods.running(name)
    assert fetched(pods)
    running, processes = pods.containers(), pods.processes_of_pods()
    followers = [Follower(pods, *arguments) for arguments in (("logs", "-f", "web"), ("attach", "stubborn"))]
    followers.append(Follower(pods, "exec", "client", "--", "sleep", "1000"))
    try:
        wait_until(lambda: len(pods.processes_of_pods()) > len(processes), "the command to run", within=WITHIN)
        killed = pods.kill("containers")
        assert not any(is_alive(pid) for pid in {*processes, *(one.pid for one in running.values())})
        assert not pods.has_cgroups_of(killed)
        for follower in followers:
            follower.process.wait(WITHIN)
    finally:
        for follower in followers:
            follower.close()
    for name in ("web", "client", "failing", "stubborn"):
        last = status_of(pods.running(name, restarts=1))["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (137, "ContainerStatusUnknown")
    ended = pods.ended("once", "Failed")
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    wait_until(lambda: fetched(pods), "names and services to work again", within=WITHIN)
    assert node_events(pods)[-2:] == ["NodeNotReady", "NodeReady"]
    pods.until_only(["client", "failing", "once", "stubborn", "web"])


def test_a_pod_that_ends_well_because_the_runtime_is_stopped_has_not_succeeded(pods: LocalPods) -> None:
    polite = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('up', flush=True)"
    command = ["python3", "-c", f"{polite}; signal.pause()"]
    pods.add("once", container={"command": command}, restartPolicy="Never")
    pods.add("always", container={"command": command})
    for name in ("once", "always"):
        pods.running(name)
        pods.until_logged(name, "up")
    runtime = pods.shoal.part("containers")
    os.kill(runtime["pid"], signal.SIGTERM)
    pods.until_back("containers", runtime["restarts"] + 1)
    assert pods.ended("once", "Failed")["reason"] == "ContainerStatusUnknown"
    pods.running("always", restarts=1)


def served(pods: LocalPods) -> None:
    """A server, a service in front of it, and a client that stays."""
    # Whoever listens may do so at once after somebody else did.
    pods.add(
        "web",
        "exec python3 -m http.server 8080",
        container={"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}},
    )
    pods.add("client")
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    if "web" not in [one["metadata"]["name"] for one in pods.shoal.objects(SERVICES)]:
        pods.post(SERVICES, service)


def fetched(pods: LocalPods) -> bool:
    """Whether the client gets an answer by the name of the service."""
    ask = "import urllib.request; print(urllib.request.urlopen('http://web.default.svc', timeout=5).status)"
    return pods.kubectl.run("exec", "client", "--", "python3", "-c", ask).stdout == "200\n"


def node_events(pods: LocalPods) -> list[str]:
    """What was told of the node's readiness, in its order."""
    events = pods.shoal.objects("/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Node")
    events = [one for one in events if one["source"]["component"] == "kubelet"]
    return [one["reason"] for one in sorted(events, key=lambda one: int(one["metadata"]["resourceVersion"]))]


# Both, while pods come and go


def test_killed_at_any_moment_of_a_burst_no_pod_is_lost_doubled_or_stuck(own: LocalPods) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    # Whoever finds another run of the same pod writes that down.
    alone = "exec 9>/v/lock; flock -n 9 || touch /v/doubled; "
    with own.shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        kept: dict[str, str] = {}
        for number, part in enumerate(["node", "containers"] * 3):
            for count in range(6):
                name, policy = f"pod-{number}-{count}", ("Always", "Never")[count % 2]
                script = alone + ("sleep 1000" if policy == "Always" else f"sleep {chance.uniform(0, 1):.2f}")
                own.add(name, script, container=IN_V, restartPolicy=policy, terminationGracePeriodSeconds=1, **VOLUME)
                kept[name] = policy
            for name in chance.sample(sorted(kept), 2):
                own.delete(name)
                del kept[name]
            time.sleep(chance.uniform(0, 0.8))
            own.strike(part)
        for name, policy in kept.items():
            own.pod(name, is_ready if policy == "Always" else is_done)
        own.until_only(sorted(kept))
        assert {name for name, policy in kept.items() if policy == "Always"} == own.containers().keys()
        assert list(own.layout.pods.rglob("doubled")) == []
        for name in kept:
            own.delete(name)
        own.until_only([])


def is_done(pod: Object) -> bool:
    """Whether a pod ended, by itself or with the runtime."""
    ended = status_of(pod)["state"].get("terminated", {})
    outcome = (pod["status"]["phase"], ended.get("exitCode"), ended.get("reason"))
    return outcome in [("Succeeded", 0, "Completed"), ("Failed", 137, "ContainerStatusUnknown")]


# The network


def test_a_killed_network_is_made_again_and_connections_work(pods: LocalPods) -> None:
    served(pods)
    pods.running("web")
    pods.running("client")
    wait_until(lambda: fetched(pods), "the service to answer", within=WITHIN)
    running = pods.containers()
    for _ in range(2):
        pods.kill("network")
        wait_until(lambda: fetched(pods), "names and services to work again", within=WITHIN)
    assert pods.containers() == running


# The API server


@pytest.mark.parametrize("how", ["killed", "paused"])
def test_while_the_api_server_is_away_containers_run_on_and_statuses_catch_up(pods: LocalPods, how: str) -> None:
    pods.add("steady", TICKS)
    pods.add("ending", WAITS, container=IN_V, restartPolicy="Never", **VOLUME)
    pods.add("restarting", f"test -e /v/end && sleep 1000; {WAITS}", container=IN_V, **VOLUME)
    for name in ("steady", "ending", "restarting"):
        pods.running(name)
    running = pods.containers()
    ends = [pods.volume(name, "v") / "end" for name in ("ending", "restarting")]
    api = pods.shoal.part("api")
    os.kill(api["pid"], signal.SIGSTOP)
    for end in ends:
        end.touch()
    until_ended(running["ending"].pid)
    wait_until(lambda: pods.attempt("restarting") == 1, "a container to be started again", within=WITHIN)
    if how == "killed":
        os.kill(api["pid"], signal.SIGKILL)
        pods.until_back("api", api["restarts"] + 1)
    else:
        os.kill(api["pid"], signal.SIGCONT)
    assert pods.ended("ending", "Failed")["exitCode"] == 7
    pods.running("restarting", restarts=1)
    assert pods.containers()["steady"] == running["steady"]
    assert status_of(pods.running("steady"))["restartCount"] == 0
    pods.until_only(["ending", "restarting", "steady"])


# All of it


def test_killed_as_a_whole_it_leaves_nothing_and_goes_on_where_it_was(own: LocalPods) -> None:
    with own.shoal.foreground() as (process, line):
        assert line.startswith("Shoal is ready")
        replicas = workloads(own)
        runtime, processes = own.pid("containers"), own.processes()
        assert len(processes) > len(own.containers()) + len(own.shoal.pids())
        # As where the machine loses its power: nobody has the time to do anything.
        for pid in [process.pid, *own.shoal.pids()]:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not any(map(is_alive, processes)), "all processes to end", within=WITHIN)
        assert (own.processes(), own.mounts()) == ([], [])
    with own.shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        assert_goes_on(own, replicas)
        assert not own.has_cgroups_of(runtime)


def test_when_only_the_supervisor_is_killed_no_process_of_a_pod_lives_on(own: LocalPods) -> None:
    chance = random.Random(SEED)
    for _ in range(3):
        with own.shoal.foreground() as (process, line):
            assert line.startswith("Shoal is ready")
            for number in range(8):
                own.add(f"pod-{time.monotonic_ns()}-{number}", "(trap '' TERM HUP; setsid sleep 1000) & sleep 1000")
            time.sleep(chance.uniform(0, 1))  # some run, some are being started
            process.kill()
            process.wait()
            wait_until(lambda: not own.processes(), f"all processes to end (seed {SEED})", within=WITHIN)
    with own.shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        names = [one["metadata"]["name"] for one in own.shoal.objects(PODS)]
        assert len(names) == 3 * 8
        for name in names:
            own.pod(name, is_ready)
        own.until_only(names)


def test_down_ends_all_pods_in_time_and_up_goes_on_with_them(own: LocalPods) -> None:
    assert own.shoal.starting("--detach").returncode == 0
    replicas = workloads(own)
    polite = "trap 'echo asked to end >> /v/notes; exit 0' TERM; echo began >> /v/notes; while true; do sleep 0.1; done"
    own.add("polite", polite, container=IN_V, **KEPT)
    own.add("stubborn", "trap '' TERM; while true; do sleep 1; done")
    own.running("polite")
    own.running("stubborn")
    runtime, notes = own.pid("containers"), own.claimed("kept") / "notes"
    asked = time.monotonic()
    assert own.shoal("down").stdout == "Shoal is stopped\n"
    assert time.monotonic() - asked < 10
    assert (own.processes(), own.mounts()) == ([], [])
    assert not own.has_cgroups_of(runtime)
    assert notes.read_text().splitlines() == ["began", "asked to end"]
    assert own.shoal.starting("--detach").returncode == 0
    assert_goes_on(own, replicas, "polite", "stubborn")
    assert notes.read_text().splitlines() == ["began", "asked to end", "began"]


def workloads(pods: LocalPods) -> list[str]:
    """A Deployment, a Job of each policy whose first run does not end, and a pod that writes to a claim of its own."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    pods.post(CLAIMS, {"metadata": {"name": "kept"}, "spec": claim})
    labels = {"app": "replica"}
    template = {"metadata": {"labels": labels}, "spec": pods.spec("sleep 1000")}
    body = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    pods.post(DEPLOYMENTS, {"metadata": {"name": "replica"}, "spec": body})
    pods.add("writer", "echo run >> /v/runs; sleep 1000", container=IN_V, **KEPT)
    for policy in ("Never", "OnFailure"):
        first = f"test -e /v/{policy} && exit 0; touch /v/{policy}; sleep 1000"
        spec = {"template": {"spec": pods.spec(first, IN_V, restartPolicy=policy, **KEPT)}}
        pods.post(JOBS, {"metadata": {"name": f"job-{policy.lower()}"}, "spec": spec})
    wait_until(lambda: len(ready(pods)) == 5, "all pods to be ready", within=WITHIN)
    return [name for name in ready(pods) if name.startswith("replica")]


def ready(pods: LocalPods) -> list[str]:
    return [one["metadata"]["name"] for one in pods.shoal.objects(PODS) if is_ready(one)]


def assert_goes_on(pods: LocalPods, replicas: list[str], *others: str) -> None:
    for name in (*replicas, *others, "writer"):
        pods.running(name, restarts=1)
    for job in ("job-never", "job-onfailure"):
        pods.kubectl("wait", "--for=condition=Complete", f"job/{job}", f"--timeout={WITHIN:.0f}s")
    jobs = {one["metadata"]["name"]: one["status"].get("failed", 0) for one in pods.shoal.objects(JOBS)}
    assert jobs == {"job-never": 1, "job-onfailure": 0}
    assert (pods.claimed("kept") / "runs").read_text().splitlines() == ["run", "run"]
    pods.until_only([one["metadata"]["name"] for one in pods.shoal.objects(PODS)])
