"""Admission webhooks: which of them a request concerns, how they are asked, and what comes of their answers."""

from shoal.cluster.apiserver.admission.webhooks.calling import Backends, Caller
from shoal.cluster.apiserver.admission.webhooks.dispatch import MutatingWebhooks, Reinvocation, ValidatingWebhooks
from shoal.cluster.apiserver.admission.webhooks.matching import Condition, ConditionCompiler, Equivalents

__all__ = [
    "Backends",
    "Caller",
    "Condition",
    "ConditionCompiler",
    "Equivalents",
    "MutatingWebhooks",
    "Reinvocation",
    "ValidatingWebhooks",
]
