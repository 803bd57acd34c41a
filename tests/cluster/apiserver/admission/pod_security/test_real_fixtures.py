"""A real server and the embedded one say the same, word for word, of every pod of Kubernetes' own test data.

Where a rule changed, that is: between those versions a policy is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cluster.apiserver.admission.pod_security.evaluation import CHECKS
from shoal.cluster.apiserver.admission.pod_security.policy import Level
from shoal.cluster.kubernetes import RealKubernetes
from tests.conformance.normal import normalised
from tests.conformance.player import play
from tests.conformance.recording import difference
from tests.conformance.story import CORE, Request, Story, patch, post
from tests.support.clusters.embedded import Embedded

pytestmark = pytest.mark.slow

CHANGED = [
    (level, minor)
    for level in (Level.BASELINE, Level.RESTRICTED)
    for minor in sorted({each for check in CHECKS if not check.level.is_stricter_than(level) for each in check.forms})
]
PREFIX = "pod-security.kubernetes.io/"


@pytest.mark.parametrize(("level", "minor"), CHANGED)
def test_pods_are_refused_in_the_same_words(
    level: Level, minor: int, fixtures: Path, kube: RealKubernetes, embedded: Embedded
) -> None:
    version = f"v1.{minor}"
    files = sorted((fixtures / level.value / version).glob("*/*.yaml"))
    assert files
    labels = {f"{PREFIX}enforce": level.value, f"{PREFIX}enforce-version": version}
    story = Story(
        f"pod security fixtures {level.value} {minor}",
        [
            patch(CORE, {"metadata": {"labels": labels}}, shown=lambda body: body["kind"]),
            _tried(
                {"metadata": {"name": "probe"}, "spec": {"hostPID": True, "containers": [{"name": "c", "image": "i"}]}}
            ),
            *(_tried(yaml.load(file.read_text(), Loader=yaml.CSafeLoader)) for file in files),
        ],
        account=True,
    )
    real, ours = (normalised(story, play(story, server)) for server in (kube, embedded))
    found = difference(real, ours, left="real server", right="embedded")
    assert not found, found
    # Some are refused as invalid before they come to it: their fields were allowed in an older version alone.
    assert {answer["status"] for answer in ours} >= {201, 403}


def _tried(pod: Any) -> Request:
    """A dry run; the first that is refused shows that the server has seen the labels."""
    until = _is_refused if pod["metadata"]["name"] == "probe" else None
    return post(f"{CORE}/pods", pod, query={"dryRun": "All"}, shown=lambda body: body["metadata"]["name"], until=until)


def _is_refused(status: int, body: Any) -> bool:
    return status == 403 and "violates PodSecurity" in str(body.get("message"))
