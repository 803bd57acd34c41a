"""The example of the documentation: its rule without a server, and the whole of it as a process on a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.greeter import Greeting, GreetingSpec, wanted_config_map
from shoal.api.meta import ObjectMeta
from shoal.cluster.kubernetes import RealKubernetes
from tests.support.programs.kubectl import Kubectl
from tests.support.waiting import wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "greeter.py"
DOCUMENT = Path(__file__).parents[2] / "docs" / "write-a-controller.md"


def test_the_words_greet_by_name() -> None:
    ann = Greeting(metadata=ObjectMeta(name="ann", namespace="here"), spec=GreetingSpec(name="Ann"))
    assert wanted_config_map(ann) == {
        "metadata": {"name": "ann-words", "namespace": "here"},
        "data": {"words": "Hello, Ann!"},
    }


def test_the_document_shows_the_example_as_it_is() -> None:
    """Every code block of the document stands in the example, line for line, but for docstrings."""
    source = {line.strip() for line in EXAMPLE.read_text().splitlines()}
    blocks = DOCUMENT.read_text().split("```python\n")[1:]
    shown = [line.strip() for block in blocks[:3] for line in block.split("```")[0].splitlines()]
    assert [line for line in shown if line not in source] == []


@pytest.mark.kube
def test_the_example_runs_heals_and_stops(kube: RealKubernetes, kubectl: Kubectl, namespace: str) -> None:
    definition = subprocess.run([sys.executable, EXAMPLE, "--crd"], capture_output=True, text=True, check=True).stdout
    kubectl("apply", "-f", "-", stdin=definition)
    kubectl("wait", "--for=condition=Established", f"crd/{json.loads(definition)['metadata']['name']}")
    kubectl("apply", "-f", str(EXAMPLE.with_name("greeting.yaml")), namespace=namespace)
    environment = {**os.environ, "KUBECONFIG": str(kube.kubeconfig)}
    process = subprocess.Popen([sys.executable, EXAMPLE], env=environment, stderr=subprocess.PIPE, text=True)
    try:

        def words() -> str:
            done = kubectl.run("get", "configmap", "ann-words", "-o", "jsonpath={.data.words}", namespace=namespace)
            return done.stdout

        wait_until(lambda: words() == "Hello, Ann!", "the words")
        kubectl("delete", "configmap", "ann-words", namespace=namespace)
        wait_until(lambda: words() == "Hello, Ann!", "the words to come back")
        shown = kubectl("get", "greeting", "ann", "-o", "jsonpath={.status.configMap}", namespace=namespace)
        assert shown == "ann-words"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0
    finally:
        process.kill()
        process.communicate()
