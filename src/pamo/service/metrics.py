"""What Prometheus reads: requests by operation and status, how long they took, and how much of everything there is."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pamo._version import __version__
from pamo.errors import StoreError
from pamo.service.activity import DECISIONS
from pamo.service.alerts import CODES, alerts

if TYPE_CHECKING:
    from pamo.service.api import Api

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The histogram's buckets, close together where a request should be."""


class Metrics:
    """Counts what the service does. Each service has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "pamo_http_requests", "Requests answered.", ("operation", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "pamo_http_request_seconds",
            "Seconds until a request was answered.",
            ("operation",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self._feedback = Counter(
            "pamo_feedback", "Feedback taken, by what became of it.", ("status",), registry=self.registry
        )
        self._by_status = functools.cache(self._feedback.labels)

    def of(self, operation: str) -> tuple[Callable[[int], None], Callable[[float], None]]:
        """Return what counts an operation's answers by status, and what takes their seconds."""

        @functools.cache
        def counter(status: int) -> Counter:
            return self._requests.labels(operation, str(status))

        def count(status: int) -> None:
            counter(status).inc()

        return count, self._seconds.labels(operation).observe

    def fed(self, status: str, number: int = 1) -> None:
        """Count feedback."""
        self._by_status(status).inc(number)

    def watch(self, api: Api) -> None:
        """Read the engine's numbers whenever metrics are asked for."""
        self.registry.register(_Numbers(api))

    def text(self, others: Mapping[str, Metrics]) -> bytes:
        """Return everything as Prometheus reads it, that of other projects with their names as a label."""
        return generate_latest(_Together({"": self, **others}) if others else self.registry)


class _Together(Collector):
    """The numbers of several projects: each metric once, as Prometheus wants it, with those of all of them."""

    def __init__(self, projects: Mapping[str, Metrics]) -> None:
        self._projects = projects

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers as they are now."""
        found: dict[str, Metric] = {}
        for project, metrics in self._projects.items():
            for one in metrics.registry.collect():
                whole = found.setdefault(one.name, Metric(one.name, one.documentation, one.type))
                for sample in one.samples:
                    labels = {**sample.labels, "project": project} if project else sample.labels
                    whole.samples.append(sample._replace(labels=labels))
        yield from found.values()


class _Numbers(Collector):
    def __init__(self, api: Api) -> None:
        self._api = api

    def describe(self) -> Iterator[Metric]:
        """Say nothing yet: asking the store when the service starts would be too soon."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the numbers as they are now."""
        api = self._api
        yield GaugeMetricFamily("pamo_http_in_flight", "Requests under way.", value=api.in_flight)
        yield CounterMetricFamily("pamo_decisions", "Decisions made.", value=api.activity.totals[DECISIONS])
        trouble = api.engine.store.trouble()
        # Where the store cannot be read, the rest is all the more worth knowing.
        with contextlib.suppress(StoreError):
            for name, value in api.engine.statistics().items():
                yield GaugeMetricFamily(f"pamo_{name}", f"Present number of {name.replace('_', ' ')}.", value=value)
            known = Counts(one.code for one in alerts(api))
            told = GaugeMetricFamily("pamo_alerts", "What there is to know, by code.", labels=("code",))
            for code in CODES:
                told.add_metric((code,), known[code])
            yield told
        yield GaugeMetricFamily("pamo_ready", "1 if decisions and feedback can be recorded.", value=trouble is None)
        about = GaugeMetricFamily("pamo_info", "What this is.", labels=("version",))
        about.add_metric((__version__,), 1)
        yield about
