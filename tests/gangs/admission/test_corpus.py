"""Every PodCliqueSet among Grove's own manifests: accepted or refused, by which rule, and what comes of it.

The verdicts were derived by hand from the rules; the counts from the manifests' own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from shoal.api.grove import ClusterTopologyBinding
from shoal.gangs import plan
from shoal.gangs.admission import defaulted, set_findings
from shoal.gangs.backends import Backends
from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies import topology_name
from shoal.kube.admission import FieldProblem, Warn
from tests.gangs.admission.verdicts import a_binding
from tests.gangs.builders import typed
from tests.support.schemas.corpus import CORPUS, needs_corpus, upstream_samples

EVERYTHING_ON = GangSettings(has_topologies=True, has_mnnvl=True)
TOPOLOGIES: dict[str, ClusterTopologyBinding] = {
    "grove-topology": a_binding("zone", "block", "rack", "host"),
    "h100-topology": a_binding("block", "host"),
    "tas20-topology": a_binding("block", "rack", "host"),
}


@dataclass(frozen=True)
class Makes:
    """The set is accepted, and so many objects come of it."""

    cliques: int
    gangs: int
    pods: int
    needs: str = ""
    """What must be on in the operator's configuration for it: the path of the field that is refused where it is off."""


@dataclass(frozen=True)
class Refused:
    """The set is refused for this field, by this rule."""

    field: str
    rule: str


TOPOLOGY = "spec.template.topologyConstraint"
GROUP_TOPOLOGY = "spec.template.podCliqueScalingGroups[0].topologyConstraint"
CLIQUE_TOPOLOGY = "spec.template.cliques[0].topologyConstraint"
MNNVL = "metadata.annotations[grove.io/mnnvl-group]"

VERDICTS: dict[str, Makes | Refused] = {
    # Three cliques alone and three groups of three, a pod each; groups are there once unless they say otherwise.
    "e2e__auto-mnnvl__mnnvl-comprehensive-mix: PodCliqueSet/mnnvl-mix": Makes(12, 1, 12, needs=MNNVL),
    "e2e__auto-mnnvl__mnnvl-gpu-bare: PodCliqueSet/mnnvl-gpu-bare": Makes(1, 1, 1),
    "e2e__auto-mnnvl__mnnvl-gpu-invalid: PodCliqueSet/mnnvl-gpu-invalid": Refused(
        MNNVL, "must consist of lower case letters, digits and '-'"
    ),
    "e2e__scale-down-to-zero: PodCliqueSet/scale-down-to-zero": Makes(500, 500, 1000),
    "e2e__scale-test-1000-moe: PodCliqueSet/scale-test-1000-moe": Makes(500, 500, 1000),
    "e2e__scale-up-from-zero: PodCliqueSet/scale-up-from-zero": Makes(0, 0, 0),
    "e2e__scale-up: PodCliqueSet/scale-up": Makes(250, 250, 500),
    # A group there twice, both in the base gang, of two cliques of two pods; block ⊃ rack ⊃ host.
    "e2e__tas-hierarchy: PodCliqueSet/tas-hierarchy": Makes(4, 1, 8, needs=TOPOLOGY),
    "e2e__tas-indep-clq: PodCliqueSet/tas-indep-clq": Makes(2, 1, 7, needs=CLIQUE_TOPOLOGY),
    # Ten replicas of a group, three of them in the base gang: seven scaled gangs. A constraint of null is none.
    "e2e__tas-large-scale: PodCliqueSet/tas-large-scale": Makes(10, 8, 20, needs=TOPOLOGY),
    "e2e__tas-multi-topology-h100: PodCliqueSet/tas-h100-workload": Makes(1, 1, 2, needs=TOPOLOGY),
    "e2e__tas-no-constraint: PodCliqueSet/tas-no-constraint": Makes(2, 1, 4),
    # Two groups there twice, one each in the base gang, of two single pods; and a router of two.
    "e2e__tas-pcs-multi-pcsg: PodCliqueSet/tas-pcs-multi-pcsg": Makes(9, 3, 10, needs=TOPOLOGY),
    "e2e__tas-pcsg-pclq: PodCliqueSet/tas-pcsg-pclq": Makes(2, 1, 4, needs=GROUP_TOPOLOGY),
    "e2e__tas-preferred-pack: PodCliqueSet/tas-preferred-pack": Makes(3, 2, 3, needs=TOPOLOGY),
    "e2e__tas-sl-pcsg-only: PodCliqueSet/tas-sl-pcsg-only": Makes(3, 1, 4, needs=GROUP_TOPOLOGY),
    "e2e__tas-topology-condition: PodCliqueSet/tas-topology-condition": Makes(0, 0, 0, needs=TOPOLOGY),
    # Two pods alone, and a group there twice of one pod and three; how many are in the base gang differs.
    "e2e__workload-ondelete: PodCliqueSet/workload-ondelete": Makes(5, 1, 10),
    "e2e__workload1-gt: PodCliqueSet/workload1-gt": Makes(5, 1, 10),
    "e2e__workload2-gt: PodCliqueSet/workload2-gt": Makes(5, 2, 10),
    "e2e__workload3: PodCliqueSet/workload3": Makes(5, 1, 10),
    "e2e__workload5-gt: PodCliqueSet/workload5-gt": Makes(5, 2, 10),
    "e2e__workload6: PodCliqueSet/workload6": Makes(5, 2, 10),
    "samples__simple__simple1: PodCliqueSet/simple1": Makes(4, 1, 9),
    # Three and two pods alone; a group there three times, two in the base gang, of three cliques of two pods.
    "samples__simple__simple3-explicit-startup-order: PodCliqueSet/simple3": Makes(11, 2, 23),
    "samples__user-guide__01_core-concepts__multi-node-aggregated: PodCliqueSet/multinode-aggregated": Makes(4, 2, 8),
    "samples__user-guide__01_core-concepts__single-node-aggregated: PodCliqueSet/single-node-aggregated": Makes(
        1, 1, 2
    ),
    # One clique names no role, which Grove's own schema refuses: it is the clique's name here.
    "samples__user-guide__02_pod-and-resource-naming-conventions__multinode-disaggregated-with-frontend: "
    "PodCliqueSet/mn-disagg": Makes(7, 2, 13),
    "samples__user-guide__03_environment-variables-for-pod-discovery__standalone-env-vars: "
    "PodCliqueSet/env-demo-standalone": Makes(1, 1, 2),
}
SAMPLES: dict[str, dict[str, Any]] = (
    {name: body for name, body in upstream_samples("grove") if body["kind"] == "PodCliqueSet"}
    if CORPUS.is_dir()
    else {}
)
pytestmark = needs_corpus


def judged(body: dict[str, Any], settings: GangSettings) -> list[FieldProblem]:
    """The problems of a manifest as a user posts it; nothing is warned of that nobody wrote."""
    pcs = defaulted(typed(body))
    found = set_findings(
        pcs,
        None,
        is_new=True,
        binding=TOPOLOGIES.get(topology_name(pcs)),
        settings=settings,
        backends=Backends.load(),
    )
    assert not [finding for finding in found if isinstance(finding, Warn)]
    return [finding for finding in found if isinstance(finding, FieldProblem)]


def test_every_manifest_has_its_verdict() -> None:
    assert set(SAMPLES) == set(VERDICTS)


@pytest.mark.parametrize("sample", VERDICTS, ids=lambda name: str(name).rpartition("/")[2])
def test_a_manifest_is_judged_by_the_rules(sample: str) -> None:
    found = judged(SAMPLES[sample], EVERYTHING_ON)
    match VERDICTS[sample]:
        case Refused(field, rule):
            assert [problem.path for problem in found] == [field]
            assert rule in found[0].message
        case Makes() as expected:
            assert found == []
            pcs = defaulted(typed(SAMPLES[sample]))
            gangs = [gang for replica in range(pcs.spec.replicas) for gang in plan.gangs_of_replica(pcs, replica, {})]
            cliques = [clique for gang in gangs for clique in gang.cliques]
            assert len({clique.name for clique in cliques}) == expected.cliques
            assert len({gang.name for gang in gangs}) == expected.gangs
            assert sum(clique.template.spec.replicas for clique in cliques) == expected.pods


ASKING = [sample for sample, verdict in VERDICTS.items() if isinstance(verdict, Makes) and verdict.needs]


@pytest.mark.parametrize("sample", ASKING, ids=lambda name: str(name).rpartition("/")[2])
def test_what_is_off_is_not_asked_for(sample: str) -> None:
    verdict = VERDICTS[sample]
    assert isinstance(verdict, Makes)
    found = judged(SAMPLES[sample], GangSettings())
    assert found[0].path == verdict.needs
    assert {problem.reason.words for problem in found} == {"Forbidden"}


@pytest.mark.parametrize("sample", VERDICTS, ids=lambda name: str(name).rpartition("/")[2])
def test_a_manifest_may_be_posted_again(sample: str) -> None:
    """What was accepted is no change, and what was filled in is none either."""
    pcs = defaulted(typed(SAMPLES[sample]))
    stored = typed(msgspec.to_builtins(pcs))
    found = set_findings(pcs, stored, is_new=False, binding=None, settings=EVERYTHING_ON, backends=Backends.load())
    assert found == []
