"""``shoal operator`` and ``shoal webhooks`` as commands: what they refuse, and what they make of a configuration."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.api.definitions import ALL
from shoal.api.resource_nvidia_com import DEFINITIONS as COMPUTE_DOMAINS
from shoal.cluster.kubernetes import Refused
from tests.support.clusters.embedded import Embedded, running_embedded
from tests.support.network.tls import Authority
from tests.support.programs.command import SHOAL, environment, shoal
from tests.support.schemas.corpus import CORPUS, needs_corpus
from tests.support.waiting import wait_until

HEAD = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
NO_PORTS = ("--metrics-bind-address=0", "--health-probe-bind-address=0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """With our kinds, and no others'."""
    with running_embedded(tmp_path_factory.mktemp("operator")) as server:
        server.admin.define(definition.manifest() for definition in ALL)
        yield server


@contextmanager
def started(*arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen([*SHOAL, *arguments], stdout=output, stderr=output, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", ["operator", "webhooks"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            HEAD + "server: {webhooks: {prot: 1}}", "server.webhooks: Object contains unknown field", id="field"
        ),
        pytest.param(HEAD + "logLevel: loud", "logLevel: Invalid enum value 'loud'", id="value"),
        pytest.param(
            HEAD + "leaderElection: {leaseDuration: 1s}",
            "leaderElection.leaseDuration (1s) must be longer than renewDeadline (10s)",
            id="rule",
        ),
        pytest.param("kind: Pod\napiVersion: v1", "it is v1 Pod: write operator.config.grove.io/v1alpha1", id="kind"),
        pytest.param("{", "", id="no YAML"),
        pytest.param(None, "no such file or directory: name a file that can be read", id="no file"),
    ],
)
def test_a_bad_configuration_is_told_by_its_file_and_field(
    command: str, text: str | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "grove.yaml"
    if text is not None:
        file.write_text(text)
    refused = shoal(command, f"--config={file}", "--kubeconfig=/nowhere")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"shoal: --config {file}: {said}")
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["operator", "--log-level=loud"], "--log-level"),
        (["operator", "--enable=everything"], "--enable"),
        (["operator", "--metrics-bind-address=here"], "here is no address, try :8080, 127.0.0.1:8080, or 0 for none"),
        (["operator", "--health-probe-bind-address=:"], ": is no address, try :8080, 127.0.0.1:8080, or 0 for none"),
        (["webhooks", "--url=http://10.0.0.7"], "http://10.0.0.7 is no HTTPS address, try https://10.0.0.7:9443"),
        (["webhooks", "--url=https://:9443"], "https://:9443 is no HTTPS address, try https://10.0.0.7:9443"),
        (["webhooks", "--port=70000"], "--port"),
        (["webhooks", "--only=queues"], "there are no webhooks of queues: there are gangs, training, scheduler"),
        (["webhooks", "--only=,"], "it names nothing: there are gangs, training, scheduler"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)  # fmt: skip
def test_a_flag_that_means_nothing_is_a_mistake_of_usage(arguments: list[str], said: str) -> None:
    refused = shoal(*arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["operator", "webhooks"])
def test_a_cluster_that_is_not_there_is_told(command: str) -> None:
    refused = shoal(command, "--kubeconfig=/nowhere/config")
    assert refused.returncode == 1
    assert refused.stderr == (
        "shoal: found no cluster (/nowhere/config does not exist): name a kubeconfig that has one\n"
    )


def test_an_address_in_use_is_told(server: Embedded) -> None:
    taken = server.server.removeprefix("https://")
    refused = shoal(
        "operator", f"--kubeconfig={server.kubeconfig}", f"--health-probe-bind-address={taken}", NO_PORTS[0]
    )
    assert refused.returncode == 5
    last = refused.stderr.splitlines()[-1]
    assert last == f"shoal: cannot listen on {taken}: Address already in use: choose another address"


@needs_corpus
def test_a_configuration_of_upstream_is_taken_over_once_the_cluster_has_what_it_asks_for(
    server: Embedded, tmp_path: Path
) -> None:
    file = CORPUS / "grove" / "samples" / "operatorconfig__valid-config-mnnvl-enabled.yaml"
    arguments = ("operator", f"--config={file}", f"--kubeconfig={server.kubeconfig}", *NO_PORTS)

    refused = shoal(*arguments)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "shoal: network.autoMNNVLEnabled is on, but the cluster does not serve computedomains.resource.nvidia.com "
        "v1beta1: install NVIDIA's DRA driver, or switch it off"
    )

    server.admin.define(definition.manifest() for definition in COMPUTE_DOMAINS)
    log = tmp_path / "operator.log"
    lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/grove-operator-leader-election"
    with started(*arguments, log=log) as process:
        wait_until(lambda: server.admin.exists(lease) or process.poll() is not None, "the operator to lead")
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, log.read_text()
    assert '"Backend controllers registered successfully"' in log.read_text()


def test_webhooks_serve_certificates_of_others_from_the_folder_that_a_configuration_names(
    server: Embedded, tmp_path: Path, unused_tcp_port: int
) -> None:
    authority = Authority("somebody else's")
    issued = authority.issue("webhooks", hosts=("127.0.0.1",))
    for name, content in (("tls.crt", issued.chain), ("tls.key", issued.key), ("ca.crt", authority.pem)):
        (tmp_path / name).write_bytes(content)
    config = tmp_path / "grove.yaml"
    config.write_text(f"{HEAD}server: {{webhooks: {{certProvisionMode: manual, serverCertDir: {tmp_path}}}}}\n")
    log = tmp_path / "webhooks.log"
    where = (f"--url=https://127.0.0.1:{unused_tcp_port}", f"--port={unused_tcp_port}", NO_PORTS[1])
    arguments = ("webhooks", "--only=gangs", f"--config={config}", f"--kubeconfig={server.kubeconfig}", *where)
    path = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"
    kind = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet"}
    clique = {"name": "a", "spec": {"replicas": 1, "podSpec": {"containers": [{"name": "c", "image": "busybox"}]}}}
    body = {**kind, "metadata": {"name": "checked"}, "spec": {"replicas": 1, "template": {"cliques": [clique]}}}
    with started(*arguments, log=log) as process:
        wait_until(lambda: "all webhooks are registered" in log.read_text() or process.poll() is not None, "webhooks")
        made = server.admin.request("POST", path, body)
        assert made["spec"]["template"]["terminationDelay"] == "4h"
        with pytest.raises(Refused, match=r"spec\.template\.cliques"):
            server.admin.request("POST", path, {**body, "spec": {"template": {"cliques": []}}})
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, log.read_text()
