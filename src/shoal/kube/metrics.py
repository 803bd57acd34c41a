"""The metrics of a manager's parts, under the names that controller-runtime and client-go gave them.

One ``Metrics`` for each manager, on a registry of its own: two managers in one process (as in tests) never mix.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

_RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
_QUEUE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))
_REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)


class Metrics:
    """Every metric of the runtime; fields are named as their users speak of them."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        on = self.registry
        ProcessCollector(registry=on)
        PlatformCollector(registry=on)
        GCCollector(registry=on)

        by_controller = ("controller",)
        self.reconciles = Counter(
            "controller_runtime_reconcile_total", "Reconciles by their result.", ("controller", "result"), registry=on
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that failed.", by_controller, registry=on
        )
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed for good and are not tried again.",
            by_controller,
            registry=on,
        )
        self.panics = Counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that failed by a fault of the program, not of the cluster.",
            by_controller,
            registry=on,
        )
        self.timeouts = Counter(
            "controller_runtime_reconcile_timeouts_total",
            "Reconciles that ran past their deadline.",
            by_controller,
            registry=on,
        )
        self.reconcile_time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a reconcile takes.",
            by_controller,
            buckets=_RECONCILE_BUCKETS,
            registry=on,
        )
        self.max_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles",
            "The most reconciles that run at once.",
            by_controller,
            registry=on,
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers", "Reconciles running now.", by_controller, registry=on
        )

        by_queue = ("name", "controller")
        self.queue_depth = Gauge("workqueue_depth", "Keys that wait.", ("name", "controller", "priority"), registry=on)
        self.queue_adds = Counter("workqueue_adds_total", "Keys added.", by_queue, registry=on)
        self.queue_retries = Counter(
            "workqueue_retries_total", "Keys added again after a failure.", by_queue, registry=on
        )
        self.queue_wait = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waits before its work begins.",
            by_queue,
            buckets=_QUEUE_BUCKETS,
            registry=on,
        )
        self.queue_work = Histogram(
            "workqueue_work_duration_seconds",
            "How long the work on a key takes.",
            by_queue,
            buckets=_QUEUE_BUCKETS,
            registry=on,
        )
        self.queue_unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work done on keys that are not finished, added up.",
            by_queue,
            registry=on,
        )
        self.queue_longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the longest running key has been worked on.",
            by_queue,
            registry=on,
        )

        self.requests = Counter(
            "rest_client_requests_total", "Requests by answer.", ("code", "method", "host"), registry=on
        )
        self.request_time = Histogram(
            "rest_client_request_duration_seconds",
            "How long the API server takes to answer.",
            ("verb", "host"),
            buckets=_REQUEST_BUCKETS,
            registry=on,
        )
        self.request_retries = Counter(
            "rest_client_request_retries_total", "Requests sent again.", ("code", "verb", "host"), registry=on
        )
        self.rate_limited = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests wait for the client's own rate limit.",
            ("verb", "host"),
            buckets=_REQUEST_BUCKETS,
            registry=on,
        )

        by_kind = ("resource",)
        self.lists = Counter("reflector_lists_total", "Full reads of a kind.", by_kind, registry=on)
        self.watches = Counter("reflector_watches_total", "Watches begun.", by_kind, registry=on)
        self.watch_events = Counter("reflector_watch_events_total", "Watch events received.", by_kind, registry=on)
        by_informer = ("resource", "selection")
        self.objects = Gauge("informer_store_objects", "Objects held in memory.", by_informer, registry=on)
        self.undecodable = Gauge(
            "informer_undecodable_objects", "Objects that do not decode.", by_informer, registry=on
        )
        self.freshness_wait = Histogram(
            "informer_consistency_delay_seconds",
            "How long a reconcile waited until the cache showed its own earlier writes.",
            by_controller,
            registry=on,
        )

        self.leading = Gauge(
            "leader_election_master_status", "1 while this process holds the lease.", ("name",), registry=on
        )
        self.loop_lag = Gauge("shoal_event_loop_lag_seconds", "How late the event loop last was.", registry=on)
        self.events_dropped = Counter(
            "event_recorder_dropped_total", "Events not written, by why.", ("why",), registry=on
        )
