"""GPU models, as NVIDIA's feature discovery labels them, and the share of a node that comes with each GPU."""

from __future__ import annotations

from dataclasses import dataclass

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"


@dataclass(frozen=True, slots=True)
class Model:
    """A kind of GPU, and how much of a machine there usually is for each."""

    product: str
    memory_mib: int
    cpus: int = 16
    memory_gib: int = 128
    resource: str = NVIDIA


MODELS = {
    "GB200": Model("NVIDIA-GB200", 189471, 36, 240),
    "B300": Model("NVIDIA-B300-SXM6-AC", 275040, 28, 512),
    "B200": Model("NVIDIA-B200", 183359, 28, 256),
    "H200": Model("NVIDIA-H200", 143771, 24, 256),
    "H100": Model("NVIDIA-H100-80GB-HBM3", 81559, 24, 256),
    "H100-PCIE": Model("NVIDIA-H100-PCIe", 81559, 24, 192),
    "H20": Model("NVIDIA-H20", 97871, 24, 256),
    "A100": Model("NVIDIA-A100-SXM4-80GB", 81920, 16, 128),
    "A100-40GB": Model("NVIDIA-A100-SXM4-40GB", 40960, 12, 128),
    "A100-PCIE": Model("NVIDIA-A100-80GB-PCIe", 81920, 16, 128),
    "L40S": Model("NVIDIA-L40S", 46068, 16, 96),
    "L40": Model("NVIDIA-L40", 46068, 16, 96),
    "L4": Model("NVIDIA-L4", 23034, 12, 48),
    "A40": Model("NVIDIA-A40", 46068, 16, 96),
    "A30": Model("NVIDIA-A30", 24576, 12, 64),
    "A10": Model("NVIDIA-A10", 23028, 12, 64),
    "T4": Model("Tesla-T4", 15360, 8, 32),
    "V100": Model("Tesla-V100-SXM2-32GB", 32768, 10, 64),
    "V100-16GB": Model("Tesla-V100-SXM2-16GB", 16384, 10, 64),
    "P100": Model("Tesla-P100-SXM2-16GB", 16384, 8, 48),
    "RTX-4090": Model("NVIDIA-GeForce-RTX-4090", 24564, 12, 64),
    "RTX-3090": Model("NVIDIA-GeForce-RTX-3090", 24576, 12, 64),
    "RTX-A6000": Model("NVIDIA-RTX-A6000", 49140, 12, 64),
    "MI300X": Model("AMD-Instinct-MI300X-OAM", 196592, 24, 256, AMD),
    "MI325X": Model("AMD-Instinct-MI325X", 262128, 24, 256, AMD),
    "MI250X": Model("AMD-Instinct-MI250X", 131040, 16, 128, AMD),
}

DEFAULT = "H100"
_UNKNOWN_MIB = 81920
_BY_LOWER = {name.lower(): model for name, model in MODELS.items()}


def model_named(name: str) -> Model:
    """The model of a name in any case; one that is not in the table is taken at its word, with 80 GiB."""
    return _BY_LOWER.get(name.lower()) or Model(name, _UNKNOWN_MIB)
