"""The machine's GPUs, as NVIDIA's management library (NVML) tells of them.

NVML comes with the driver. The few calls that are needed are made directly, without a package for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import msgspec
import structlog

log = structlog.get_logger("shoal.cluster.node.process")

LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
_NO_DRIVER = 9
"""NVML's word for: the library is there, a driver that runs is not."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One device."""

    uuid: str
    index: int
    minor: int
    """The number in the name of its device file."""
    product: str
    memory_bytes: int


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class NvmlFault(Exception):
    """A call of NVML failed."""

    def __init__(self, call: str, code: int) -> None:
        self.code = code
        super().__init__(f"{call} answered {code}")


def read_gpus(library: str = LIBRARY) -> list[Gpu]:
    """The GPUs of this machine, in NVML's order; one that does not answer is left out. May take a second: it blocks."""
    try:
        nvml = ctypes.CDLL(library)
    except OSError:
        return []
    try:
        _call(nvml, "nvmlInit_v2")
    except NvmlFault as fault:
        if fault.code != _NO_DRIVER:
            log.warning("GPUs cannot be told, though there is a library for them", error=str(fault))
        return []
    try:
        count = ctypes.c_uint()
        _call(nvml, "nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [found for index in range(count.value) if (found := _read(nvml, index)) is not None]
    except NvmlFault as fault:
        log.warning("GPUs cannot be counted", error=str(fault))
        return []
    finally:
        nvml.nvmlShutdown()


def gpu_labels(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The labels of NVIDIA's feature discovery; the first GPU stands for all."""
    if not gpus:
        return {}
    first = gpus[0]
    return {
        "nvidia.com/gpu.product": "-".join(first.product.split()),
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.memory": str(first.memory_bytes // (1024 * 1024)),
    }


def _read(nvml: ctypes.CDLL, index: int) -> Gpu | None:
    device, memory, minor = ctypes.c_void_p(), _Memory(), ctypes.c_uint()
    name, uuid = ctypes.create_string_buffer(_TEXT), ctypes.create_string_buffer(_TEXT)
    try:
        _call(nvml, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        _call(nvml, "nvmlDeviceGetUUID", device, uuid, ctypes.c_uint(_TEXT))
        _call(nvml, "nvmlDeviceGetName", device, name, ctypes.c_uint(_TEXT))
        _call(nvml, "nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        _call(nvml, "nvmlDeviceGetMinorNumber", device, ctypes.byref(minor))
    except NvmlFault as fault:
        log.warning("a GPU does not answer and is left out", index=index, error=str(fault))
        return None
    return Gpu(
        uuid=uuid.value.decode(),
        index=index,
        minor=minor.value,
        product=name.value.decode(errors="replace"),
        memory_bytes=memory.total,
    )


def _call(nvml: ctypes.CDLL, name: str, *arguments: object) -> None:
    code = getattr(nvml, name)(*arguments)
    if code != 0:
        raise NvmlFault(name, code)
