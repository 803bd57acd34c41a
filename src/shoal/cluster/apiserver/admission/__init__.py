"""What the server adds to a request, or refuses, before it is carried out: the built-in plugins and the webhooks.

``Chain`` is all of it in Kubernetes' order; ``Attributes`` is what it is told of a request.
"""

from shoal.cluster.apiserver.admission.attributes import Attributes, Plugin
from shoal.cluster.apiserver.admission.chain import Chain
from shoal.cluster.apiserver.admission.webhooks import Backends, Condition, ConditionCompiler, Equivalents

__all__ = ["Attributes", "Backends", "Chain", "Condition", "ConditionCompiler", "Equivalents", "Plugin"]
