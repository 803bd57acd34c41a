"""Admission and conversion webhooks: rules as pure functions, the server that API servers call, and its certificates.

Rules are given to ``Webhooks``; ``AdmissionServer`` serves them with a certificate from a source (``SelfMade`` or
``FromFiles``), and ``Injector`` tells API servers to trust it. ``webhooks`` shows how rules look.
"""

from shoal.kube.admission.certs import CertificateSource, FromFiles, SelfMade, Serving
from shoal.kube.admission.configuration import (
    ServiceEndpoint,
    UrlEndpoint,
    conversion_section,
    mutating_configuration,
    validating_configuration,
)
from shoal.kube.admission.fields import (
    FieldProblem,
    Reason,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
    too_many,
)
from shoal.kube.admission.injection import Injector
from shoal.kube.admission.metrics import WebhookMetrics
from shoal.kube.admission.review import Change
from shoal.kube.admission.rotation import Policy
from shoal.kube.admission.server import AdmissionServer
from shoal.kube.admission.stores import DirectoryStore, MemoryStore, SecretStore
from shoal.kube.admission.verdicts import Allowed, Denied, Finding, Patched, Verdict, Warn
from shoal.kube.admission.webhooks import Webhook, Webhooks
from shoal.kube.admission.wire import AdmissionRequest, Operation, UserInfo

__all__ = [
    "AdmissionRequest",
    "AdmissionServer",
    "Allowed",
    "CertificateSource",
    "Change",
    "Denied",
    "DirectoryStore",
    "FieldProblem",
    "Finding",
    "FromFiles",
    "Injector",
    "MemoryStore",
    "Operation",
    "Patched",
    "Policy",
    "Reason",
    "SecretStore",
    "SelfMade",
    "ServiceEndpoint",
    "Serving",
    "UrlEndpoint",
    "UserInfo",
    "Verdict",
    "Warn",
    "Webhook",
    "WebhookMetrics",
    "Webhooks",
    "conversion_section",
    "duplicate",
    "forbidden",
    "immutable",
    "invalid",
    "mutating_configuration",
    "not_found",
    "not_supported",
    "required",
    "too_long",
    "too_many",
    "validating_configuration",
]
