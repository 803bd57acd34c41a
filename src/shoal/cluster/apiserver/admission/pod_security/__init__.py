"""PodSecurity, the admission plugin for Kubernetes' Pod Security Standards.

``policy`` reads a namespace's labels; ``host``, ``kernel``, ``privileges``, ``profiles`` and ``volumes`` hold the
checks as pure rules; ``evaluation`` picks those of a level and version; ``plugin`` applies them to requests.
"""

from shoal.cluster.apiserver.admission.pod_security.evaluation import NEWEST_MINOR
from shoal.cluster.apiserver.admission.pod_security.metrics import PodSecurityMetrics
from shoal.cluster.apiserver.admission.pod_security.plugin import PodSecurity

__all__ = ["NEWEST_MINOR", "PodSecurity", "PodSecurityMetrics"]
