"""The real API server that transcripts are recorded from: one without controllers that tells nothing by itself.

A real server repairs addresses of Services behind everybody's back, and where its watches are a moment apart it says so
by an event, which some transcripts would have and others would not. It is made to refuse such events.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.cluster.kubernetes import Binaries, RealKubernetes, Refused
from tests.conformance.real import real_server
from tests.support.waiting import wait_until

_NAME = "no-events-of-repairs"
_REASON = "ClusterIPNotAllocated"
_POLICIES = "/apis/admissionregistration.k8s.io/v1"
_POLICY = {
    "metadata": {"name": _NAME},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["", "events.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE"],
                    "resources": ["events"],
                }
            ]
        },
        "validations": [{"expression": f"object.reason != '{_REASON}'"}],
    },
}
_BINDING = {"metadata": {"name": _NAME}, "spec": {"policyName": _NAME, "validationActions": ["Deny"]}}


@contextmanager
def reference_server(binaries: Binaries, data_dir: Path) -> Iterator[RealKubernetes]:
    """Runs one for the length of a block."""
    with real_server(binaries, data_dir) as server:
        server.admin.request("POST", f"{_POLICIES}/validatingadmissionpolicies", _POLICY)
        server.admin.request("POST", f"{_POLICIES}/validatingadmissionpolicybindings", _BINDING)
        wait_until(lambda: _refuses(server), "the policy to hold")
        yield server


def _refuses(server: RealKubernetes) -> bool:
    about = {"kind": "Service", "name": "any", "namespace": "default"}
    event = {"metadata": {"generateName": "any."}, "involvedObject": about, "reason": _REASON}
    try:
        made = server.admin.request("POST", "/api/v1/namespaces/default/events", event)
    except Refused as refused:
        return refused.status == 422
    server.admin.request("DELETE", f"/api/v1/namespaces/default/events/{made['metadata']['name']}")
    return False
