"""The check list of the document that asked for scheduler backends, typed command for command.

Manifests and commands are the document's own; ``{uid}`` in a name stands there for what the cluster makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gangs.terminal import Terminal
from tests.gangs.manifests import TEST_DEFAULT, TEST_KAI
from tests.support.clusters.both_engines import ON_EMBEDDED_WITH_KUBECTL, ON_KUBE, engine_options
from tests.support.clusters.shoal_up import Shoal


@pytest.fixture(scope="module", params=[ON_EMBEDDED_WITH_KUBECTL, ON_KUBE])
def shoal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shoal]:
    options = engine_options(request.param, request)
    shoal = Shoal(tmp_path_factory.mktemp("requirement") / "data", "--sim=4x8:H100", *options)
    with shoal.foreground() as (_, line):
        assert line.startswith("Shoal is ready")
        yield shoal


@pytest.fixture
def terminal(shoal: Shoal) -> Terminal:
    """With both of the document's sets."""
    terminal = Terminal(shoal.kubeconfig, shoal.data_dir.with_name("kubectl"))
    terminal.type("kubectl apply -f -", stdin=f"{TEST_KAI}---\n{TEST_DEFAULT}")
    return terminal


def podgroup(shoal: Shoal) -> str:
    """How kubectl is asked for KAI's PodGroup by one word.

    Kubernetes 1.36 with its Workload API has a PodGroup of its own, and kubectl finds the groups of the server itself
    before those that were added to it.
    """
    return "podgroup" if "--engine=embedded" in shoal.options else "podgroup.v2alpha2.scheduling.run.ai"


def test_4_2_a_gang_for_kai(shoal: Shoal, terminal: Terminal) -> None:
    terminal.shows("kubectl get podgangs", r"(?m)^test-kai-0 ")

    command = 'kubectl get podgang test-kai-0 -o yaml | grep "grove.io/scheduler-backend"'
    assert terminal.type(command).strip() == "grove.io/scheduler-backend: kai"

    found = terminal.shows("kubectl get podgroups.scheduling.run.ai", r"(?m)^(pg-test-kai-0-(\S+)) ")
    name, uid = found[1], found[2]
    assert uid == terminal.type("kubectl get podgang test-kai-0 -o jsonpath='{.metadata.uid}'")

    owner = terminal.type(f"kubectl get {podgroup(shoal)} {name} -o yaml | grep -A5 ownerReferences")
    assert "kind: PodGang" in owner
    assert "name: test-kai-0" in owner


def test_4_4_a_gang_for_the_default_scheduler(terminal: Terminal) -> None:
    terminal.shows("kubectl get podgangs", r"(?m)^test-default-0 ")

    command = 'kubectl get podgang test-default-0 -o yaml | grep "grove.io/scheduler-backend"'
    assert terminal.type(command).strip() == "grove.io/scheduler-backend: default"

    terminal.shows("kubectl get workloads.scheduling.k8s.io", r"(?m)^test-default-0 ")


def test_every_object_is_owned_by_the_one_it_was_made_for(terminal: Terminal) -> None:
    name = terminal.shows("kubectl get podgroups.scheduling.run.ai", r"(?m)^(pg-test-kai-0-\S+) ")[1]
    terminal.shows("kubectl get workloads.scheduling.k8s.io", r"(?m)^test-default-0 ")

    def owner(what: str) -> tuple[str, str, str]:
        found = json.loads(terminal.type(f"kubectl get {what} -o json"))
        [reference] = found["metadata"]["ownerReferences"]
        return reference["kind"], reference["name"], reference["uid"]

    def uid(what: str) -> str:
        return terminal.type(f"kubectl get {what} -o jsonpath='{{.metadata.uid}}'")

    assert owner(f"podgroups.scheduling.run.ai {name}") == ("PodGang", "test-kai-0", uid("podgang test-kai-0"))
    assert owner("podgang test-kai-0") == ("PodCliqueSet", "test-kai", uid("podcliqueset test-kai"))
    assert owner("workloads.scheduling.k8s.io test-default-0") == (
        "PodGang", "test-default-0", uid("podgang test-default-0"),
    )  # fmt: skip
    assert owner("podgang test-default-0") == ("PodCliqueSet", "test-default", uid("podcliqueset test-default"))


def test_the_pods_run_in_their_gang(terminal: Terminal) -> None:
    for name in ("test-kai", "test-default"):
        terminal.type(f"kubectl wait --for=create pods -l grove.io/podgang={name}-0 --timeout=30s")
        terminal.type(f"kubectl wait --for=condition=Ready pods -l grove.io/podgang={name}-0 --timeout=30s")
        pods = terminal.type(f"kubectl get pods -l grove.io/podgang={name}-0 -o name").split()
        assert len(pods) == 2
        terminal.shows(f"kubectl get podgang {name}-0", "Running")
    marked = terminal.type(
        "kubectl get pods -l grove.io/podgang=test-kai-0 -o jsonpath='{.items[*].metadata.annotations.pod-group-name}'"
    )
    assert set(marked.split()) == {
        terminal.shows("kubectl get podgroups.scheduling.run.ai", r"(?m)^(pg-test-kai-0-\S+) ")[1]
    }


def test_the_log_tells_of_backends(shoal: Shoal, terminal: Terminal) -> None:
    terminal.shows("kubectl get podgroups.scheduling.run.ai", "pg-test-kai-0-")
    log = shoal.data_dir / "logs" / "controllers.log"
    told = [json.loads(line) for line in terminal.type(f"cat {log} | grep backend").splitlines()]

    def says(event: str, **fields: str) -> bool:
        return any(line["event"] == event and fields.items() <= line.items() for line in told)

    assert says("Setting up backend controllers")
    assert says("Registered backend controller", backend="kai")
    assert says("Registered backend controller", backend="default")
    assert says("Processing PodGang with backend", backend="kai", podgang="default/test-kai-0")
    assert terminal.type(f"cat {log} | grep 'Processing PodGang'")
    assert "Backend controllers registered successfully" in Path(log).read_text()


def test_what_to_look_at_when_something_is_missing(terminal: Terminal) -> None:
    terminal.shows(
        "kubectl get events --sort-by='.lastTimestamp' | grep PodGang", r"podcliqueset/test-kai .*test-kai-0"
    )
    label = r"kubectl get podgang test-kai-0 -o jsonpath='{.metadata.labels.grove\.io/scheduler-backend}'"
    assert terminal.type(label) == "kai"
    assert "kind: PodGang" in terminal.type("kubectl get podgang test-kai-0 -o yaml")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        pytest.param("test-kai", "podgroups.scheduling.run.ai", id="kai"),
        pytest.param("test-default", "workloads.scheduling.k8s.io", id="default"),
    ],
)
def test_deleting_a_set_deletes_its_gang_and_what_the_scheduler_was_told(
    terminal: Terminal, name: str, made: str
) -> None:
    of_set = f"-l app.kubernetes.io/part-of={name}"
    terminal.shows(f"kubectl get {made} {of_set} -o name", ".")
    terminal.shows(f"kubectl get pods {of_set} -o name", ".")

    terminal.type(f"kubectl delete podcliqueset {name}")

    for what in ("podgangs", made, "podcliques", "pods", "services", "serviceaccounts", "roles,rolebindings"):
        terminal.shows_nothing(f"kubectl get {what} {of_set} -o name")
    other = "test-default" if name == "test-kai" else "test-kai"
    assert terminal.type(f"kubectl get podgang {other}-0 -o name"), "the other set's is left alone"
