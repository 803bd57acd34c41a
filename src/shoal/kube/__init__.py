"""The controller runtime: client, cache, queue, controller, manager, events, leases, admission, metrics.

Knows none of our API groups, and is usable without the rest: ``docs/write-a-controller.md`` shows how.
"""

from shoal.kube.cache import Cache, NotSynced
from shoal.kube.client import Client, Listing, Retry, retry_on_conflict
from shoal.kube.connection import Connection
from shoal.kube.controller import Controller, Requeue, TerminalError, Watch
from shoal.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFault,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    NotLeading,
    ReconcileError,
    TooManyRequests,
    Unauthorized,
)
from shoal.kube.events import About, Recorder
from shoal.kube.expectations import Expectations
from shoal.kube.http import HttpTransport
from shoal.kube.informer import Change, Informer
from shoal.kube.kubeconfig import load_connection
from shoal.kube.leases import Election
from shoal.kube.logs import configure_logs
from shoal.kube.manager import Manager, Settings, run_until_signalled, running
from shoal.kube.metrics import Metrics
from shoal.kube.store import Key, by_label, by_namespace, by_owner
from shoal.kube.transport import Transport
from shoal.kube.watch import EventType, WatchEvent
from shoal.kube.writer import Foreign, Writer

__all__ = [
    "About",
    "AlreadyExists",
    "ApiError",
    "Cache",
    "Change",
    "Client",
    "Conflict",
    "Connection",
    "ConnectionFault",
    "Controller",
    "Election",
    "EventType",
    "Expectations",
    "Expired",
    "Forbidden",
    "Foreign",
    "HttpTransport",
    "Informer",
    "Invalid",
    "Key",
    "Listing",
    "Manager",
    "Metrics",
    "NotFound",
    "NotLeading",
    "NotSynced",
    "ReconcileError",
    "Recorder",
    "Requeue",
    "Retry",
    "Settings",
    "TerminalError",
    "TooManyRequests",
    "Transport",
    "Unauthorized",
    "Watch",
    "WatchEvent",
    "Writer",
    "by_label",
    "by_namespace",
    "by_owner",
    "configure_logs",
    "load_connection",
    "retry_on_conflict",
    "run_until_signalled",
    "running",
]
