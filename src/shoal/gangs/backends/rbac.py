"""What the backends must be allowed to do in a cluster: rules of a ClusterRole, as data.

A backend of a third party needs a rule of its own for the kinds that it writes, beside these.
"""

from __future__ import annotations

from typing import Final

_VERBS: Final = ("create", "get", "list", "watch", "update", "patch", "delete")

_WRITTEN: Final = {
    "scheduling.run.ai": ("podgroups",),
    "scheduling.k8s.io": ("workloads", "podgroups", "compositepodgroups"),
    "scheduling.koordinator.sh": ("podgroups",),
    "scheduling.sigs.k8s.io": ("podgroups",),
    "scheduling.volcano.sh": ("podgroups",),
}
"""The kinds of each group. Koordinator's PodGroups are often looked for in its own group, and live in the SIG's."""

RULES: Final[tuple[dict[str, list[str]], ...]] = tuple(
    {
        "apiGroups": [group],
        "resources": [f"{plural}{part}" for plural in plurals for part in ("", "/status")],
        "verbs": list(_VERBS),
    }
    for group, plurals in _WRITTEN.items()
)
