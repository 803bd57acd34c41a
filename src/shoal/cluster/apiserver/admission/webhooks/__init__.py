"""Admission webhooks: which of them a request concerns, how they are asked, and what comes of their answers."""

from shoal.cluster.apiserver.admission.webhooks.calling import Caller, ServiceResolver
from shoal.cluster.apiserver.admission.webhooks.dispatch import MutatingWebhooks, Reinvocation, ValidatingWebhooks
from shoal.cluster.apiserver.admission.webhooks.matching import Condition, ConditionCompiler, Equivalents

__all__ = [
    "Caller",
    "Condition",
    "ConditionCompiler",
    "Equivalents",
    "MutatingWebhooks",
    "Reinvocation",
    "ServiceResolver",
    "ValidatingWebhooks",
]
