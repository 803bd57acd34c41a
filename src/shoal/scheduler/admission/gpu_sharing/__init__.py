"""Admission of pods that share GPUs: nonsense is refused, and containers are made to read what they will be given.

``rules`` finds what is wrong with a pod, ``mutation`` prepares its container; both are pure. ``webhooks`` offers them
to API servers at the paths that KAI's own have.
"""

from shoal.scheduler.admission.gpu_sharing.settings import GpuSharingSettings
from shoal.scheduler.admission.gpu_sharing.webhooks import add_gpu_sharing_webhooks, gpu_sharing_configurations

__all__ = ["GpuSharingSettings", "add_gpu_sharing_webhooks", "gpu_sharing_configurations"]
