"""Prometheus metrics: requests are counted as they are answered; all others are read at each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from likewise.broker.service import Broker

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Metrics:
    """The metrics of one broker."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "likewise_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "likewise_request_seconds", "Time to answer.", ["route"], buckets=_BUCKETS, registry=self._registry
        )

        self._labelled: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        key = (method, route, status)
        if key not in self._labelled:
            self._labelled[key] = (self._requests.labels(method, route, str(status)), self._seconds.labels(route))
        counter, histogram = self._labelled[key]
        counter.inc()
        histogram.observe(seconds)

    def render(self, broker: Broker) -> bytes:
        """All metrics as text."""
        state = _BrokerState(broker)
        self._registry.register(state)
        try:
            return generate_latest(self._registry)
        finally:
            self._registry.unregister(state)


class _BrokerState:
    """Collects the current state of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family for each value."""
        for name, text, value in self._gauges():
            yield GaugeMetricFamily(f"likewise_{name}", text, value=value)
        for name, text, value in self._counters():
            yield CounterMetricFamily(f"likewise_{name}", text, value=value)

    def _gauges(self) -> Iterator[tuple[str, str, float]]:
        broker = self._broker
        yield "ready", "Whether the broker is ready.", float(all(v == "ok" for v in broker.checks().values()))
        yield "warm", "Whether everything is loaded and compiled.", float(broker.engine_factory.is_warm)
        yield "backlog_records", "Stored records that are not matched yet.", broker.host.backlog
        yield "streams", "Open streams.", broker.hub.streams
        yield "storage_failing", "Whether the database cannot be written.", float(broker.log.failing is not None)
        yield (
            "clock_behind_seconds",
            "Seconds by which the clock is behind the last arrival time.",
            broker.arrival_clock.behind / 1e6,
        )
        tenants = list(broker.host.tenants.values())
        yield "subscriptions", "Subscriptions, including paused ones.", sum(len(tenant.entries) for tenant in tenants)
        yield "pattern_instances", "Partial instances that patterns hold.", broker.instances()

    def _counters(self) -> Iterator[tuple[str, str, float]]:
        broker = self._broker
        yield "log_position", "Records in the log so far.", broker.log.position
        yield "commits", "Group commits to the log.", broker.log.commits
        yield "storage_failures", "Commits that failed.", broker.log.failures
        tenants = list(broker.host.tenants.values())
        yield "events", "Events matched since the start.", sum(tenant.events for tenant in tenants)
        notifications = sum(sum(tenant.found.values()) for tenant in tenants)
        yield "notifications", "Notifications since the start.", notifications
        yield "delivered", "Notifications sent to streams.", broker.hub.delivered
        for name, value in broker.counts.items():
            yield name, f"{name.replace('_', ' ').capitalize()} since the start.", value
