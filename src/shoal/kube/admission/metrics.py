"""The metrics of the admission server, under the names that controller-runtime gave them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class WebhookMetrics:
    """What an admission server counts; ``webhook`` is the path it was called on."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        on = self.registry
        self.requests = Counter(
            "controller_runtime_webhook_requests_total",
            "Webhook requests by the HTTP status of their answer.",
            ("webhook", "code"),
            registry=on,
        )
        self.latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "How long webhook requests took.",
            ("webhook",),
            buckets=_LATENCY_BUCKETS,
            registry=on,
        )
        self.in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Webhook requests being answered now.",
            ("webhook",),
            registry=on,
        )
        self.panics = Counter(
            "controller_runtime_webhook_panics_total",
            "Reviews that failed by a fault of the program, not of the request.",
            registry=on,
        )
        self.conversion_panics = Counter(
            "controller_runtime_conversion_webhook_panics_total",
            "Conversions that failed by a fault of the program, not of the request.",
            registry=on,
        )
        self.certificate_reads = Counter(
            "certwatcher_read_certificate_total", "Times the serving certificate was read.", registry=on
        )
        self.certificate_errors = Counter(
            "certwatcher_read_certificate_errors_total",
            "Times the serving certificate could not be read or used.",
            registry=on,
        )

    def announce(self, webhook: str) -> None:
        """Shows a webhook's series at zero before its first request, so that a rate can be taken from the start."""
        for code in ("200", "500"):
            self.requests.labels(webhook, code)
        self.in_flight.labels(webhook)
        self.latency.labels(webhook)
