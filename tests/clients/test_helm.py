"""helm installs, upgrades, rolls back and uninstalls a chart on the embedded server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.kubernetes import Binaries
from tests.support.clusters.embedded import Embedded
from tests.support.clusters.real import kubectl_for
from tests.support.programs import kube_binaries
from tests.support.programs.kubectl import Kubectl

NAMESPACE = "helm"
CHART = {
    "Chart.yaml": """
apiVersion: v2
name: small
version: 0.1.0
""",
    "values.yaml": """
replicas: 1
colour: red
withExtra: false
""",
    "crds/things.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.helm.example.com}
spec:
  group: helm.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
    "templates/objects.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data: {colour: {{ .Values.colour }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: "nginx:{{ .Values.colour }}"}]}
---
apiVersion: helm.example.com/v1
kind: Thing
metadata: {name: {{ .Release.Name }}}
spec: {colour: {{ .Values.colour }}}
{{- if .Values.withExtra }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-extra}
{{- end }}
""",
    "templates/hook.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
""",
}


class Helm:
    """The helm command, signed in to the server, with a chart of its own."""

    def __init__(self, binary: Path, server: Embedded, folder: Path) -> None:
        self._command = [str(binary), f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}"]
        self.chart = folder / "chart"
        self._environment = {
            **os.environ,
            "HELM_CACHE_HOME": str(folder),
            "HELM_CONFIG_HOME": str(folder),
            "HELM_DATA_HOME": str(folder),
        }
        for name, content in CHART.items():
            path = self.chart / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.lstrip())

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self._environment,
        )

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def helm(binaries: Binaries, embedded: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    binary = kube_binaries.binary("helm")
    if binary is None and os.environ.get("SHOAL_REQUIRE_KUBE", "") in ("", "0"):
        pytest.skip("helm is not built: run make kube-binaries")
    assert binary is not None
    return Helm(binary, embedded, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def kubectl(embedded: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    kubectl = kubectl_for(embedded.kubeconfig, tmp_path_factory.mktemp("kubectl"))
    yield kubectl
    kubectl("delete", "crd", "things.helm.example.com", "--ignore-not-found")


def test_a_release_lives_through_all_its_revisions(helm: Helm, kubectl: Kubectl) -> None:
    def colours() -> list[str]:
        return [
            kubectl("get", what, "-o", f"jsonpath={path}", namespace=NAMESPACE)
            for what, path in (
                ("configmap/site-settings", "{.data.colour}"),
                ("deployment/site", "{.spec.template.spec.containers[0].image}"),
                ("thing/site", "{.spec.colour}"),
                ("configmap/site-hook", "{.data.revision}"),
            )
        ]

    chart = str(helm.chart)
    helm("install", "site", chart, "--create-namespace")
    assert colours() == ["red", "nginx:red", "red", "1"]
    assert [(one["name"], one["revision"], one["status"]) for one in helm.json("list")] == [("site", "1", "deployed")]

    refused = helm.run("install", "site", chart)
    assert "cannot reuse a name that is still in use" in refused.stderr

    helm("upgrade", "site", chart, "--set", "colour=blue,replicas=3,withExtra=true")
    assert colours() == ["blue", "nginx:blue", "blue", "2"]
    assert kubectl("get", "deployment", "site", "-o", "jsonpath={.spec.replicas}", namespace=NAMESPACE) == "3"
    kubectl("get", "configmap", "site-extra", namespace=NAMESPACE)

    helm("rollback", "site", "1")
    assert colours()[:3] == ["red", "nginx:red", "red"]
    assert kubectl.run("get", "configmap", "site-extra", namespace=NAMESPACE).returncode == 1
    history = [(one["revision"], one["status"]) for one in helm.json("history", "site")]
    assert history == [(1, "superseded"), (2, "superseded"), (3, "deployed")]
    assert helm.json("status", "site")["info"]["status"] == "deployed"
    assert "colour: red" in helm("get", "manifest", "site")

    helm("uninstall", "site", "--wait=hookOnly")
    assert helm.json("list") == []
    left = kubectl("get", "deployment,service,thing,secret", "-o", "name", namespace=NAMESPACE)
    assert left == ""


def test_a_dry_run_on_the_server_leaves_nothing(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "tried", str(helm.chart), "--dry-run=server", "--create-namespace")
    assert kubectl("get", "deployment,secret", "-o", "name", namespace=NAMESPACE) == ""


def test_a_chart_that_the_server_refuses_is_a_failed_release(helm: Helm) -> None:
    refused = helm.run("install", "broken", str(helm.chart), "--set", "replicas=-1", "--create-namespace")
    assert refused.returncode != 0
    assert "spec.replicas" in refused.stderr
    assert [(one["name"], one["status"]) for one in helm.json("list", "--all-namespaces", "--failed")] == [
        ("broken", "failed")
    ]
    helm("uninstall", "broken", "--wait=hookOnly")
