"""Which devices a pod shares, as its labels say it: one label for one device, a label each for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from shoal.api.kai_names import GPU_GROUP

_EACH: Final = f"{GPU_GROUP}/"


def group_labels(groups: Sequence[str]) -> dict[str, str]:
    """The labels of a pod on these shared devices."""
    if len(groups) == 1:
        return {GPU_GROUP: groups[0]}
    return {f"{_EACH}{group}": group for group in groups}


def groups_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """The shared devices that a pod is on, each once, in the order of their names."""
    found = {value for label, value in labels.items() if is_group_label(label)}
    return tuple(sorted(found))


def is_group_label(label: str) -> bool:
    """Whether a label says that its pod shares a device."""
    return label == GPU_GROUP or label.startswith(_EACH)
