"""What of a PodCliqueSet makes pods different: a short word for it, the same in every version of Shoal.

The word is taken over canonical JSON (sorted keys, nothing that is not there), so that neither another order of keys
nor an upgrade of ours rolls anybody's pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.api.grove import CliqueTemplate, PodCliqueSet

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 12


def template_hash(clique: CliqueTemplate, priority_class_name: str) -> str:
    """The word for the pods of one clique."""
    return _word([_pod_template(clique, priority_class_name)])


def generation_hash(pcs: PodCliqueSet) -> str:
    """The word for the pods of all cliques, in their order."""
    template = pcs.spec.template
    return _word(_pod_template(clique, template.priority_class_name) for clique in template.cliques)


def _pod_template(clique: CliqueTemplate, priority_class_name: str) -> dict[str, Any]:
    # The set's priority goes before the pod's own, which stays where the set has none.
    priority = {"priorityClassName": priority_class_name} if priority_class_name else {}
    return {
        "metadata": {"labels": clique.labels, "annotations": clique.annotations},
        "spec": {**clique.spec.pod_spec, **priority},
    }


def _word(templates: Iterable[dict[str, Any]]) -> str:
    digest = hashlib.sha256(msgspec.json.encode(list(templates), order="deterministic")).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_LENGTH])
