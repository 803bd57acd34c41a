"""GPUs in containers: the variable that says which ones, and the device files that lead to them.

Whoever knows which files belong to which GPU says so; otherwise a container that has any GPU is given all of them, and
which are its own is said by ``CUDA_VISIBLE_DEVICES`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shoal.api.kai_names import GPU_GROUP


def gpu_variables(gpus: Sequence[str], *, has_gpus: bool) -> dict[str, str]:
    """The variables for a container that was given these GPUs, by number or by uuid; ``has_gpus`` is the machine."""
    if gpus:
        chosen = ",".join(gpus)
        variables = {"CUDA_VISIBLE_DEVICES": chosen, "NVIDIA_VISIBLE_DEVICES": chosen}
        if all(gpu.isdigit() for gpu in gpus):
            variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # or CUDA counts the fastest one first
        return variables
    if has_gpus:
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    return {}


def gpu_devices(gpus: Sequence[str], devices: Path = Path("/dev")) -> list[str]:
    """The device files for a container that was given GPUs."""
    if not gpus:
        return []
    found = [*devices.glob("nvidia*"), *devices.glob("nvidia-caps/*")]
    return sorted(str(path) for path in found if not path.is_dir())


def shared_gpus(labels: Mapping[str, str], variables: Mapping[str, str]) -> list[str]:
    """The GPUs that a container has a part of: those its variables name, where its pod's labels say that it shares.

    Another pod, which has nothing else to do, holds the whole of each.
    """
    if not any(label == GPU_GROUP or label.startswith(f"{GPU_GROUP}/") for label in labels):
        return []
    named = variables.get("NVIDIA_VISIBLE_DEVICES", "")
    return [gpu for gpu in named.split(",") if gpu not in ("", "all", "none", "void")]
