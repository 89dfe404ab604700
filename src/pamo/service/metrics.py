"""What Prometheus reads: requests by operation and status, how long they took, and how much of everything there is."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from pamo._version import __version__
from pamo.errors import StoreError
from pamo.service.activity import DECISIONS
from pamo.service.alerts import CODES, alerts

if TYPE_CHECKING:
    from pamo.service.api import Api

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The histogram's buckets, close together where a request should be."""


class Requests:
    """The answers of one operation: how many by status, and how many took how long."""

    def __init__(self) -> None:
        self.statuses: Counts[int] = Counts()
        self.seconds = 0.0
        self._numbers = [0] * (len(SECONDS) + 1)

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.seconds += seconds
        self._numbers[bisect_left(SECONDS, seconds)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many took at most so many seconds."""
        return list(zip((*map(str, SECONDS), "+Inf"), accumulate(self._numbers), strict=True))


class Metrics:
    """Counts what the service does. Each service has its own registry.

    Plain numbers, since only the event loop counts, several times for each request: a lock for each would show.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests: dict[str, Requests] = {}
        self.feedback: Counts[str] = Counts()

    def of(self, operation: str) -> Requests:
        """Return what counts an operation's answers."""
        return self.requests.setdefault(operation, Requests())

    def fed(self, status: str, number: int = 1) -> None:
        """Count feedback."""
        self.feedback[status] += number

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
        requests = CounterMetricFamily("pamo_http_requests", "Requests answered.", labels=("operation", "status"))
        seconds = HistogramMetricFamily(
            "pamo_http_request_seconds", "Seconds until a request was answered.", labels=("operation",)
        )
        for operation, one in api.metrics.requests.items():
            seconds.add_metric((operation,), one.buckets(), one.seconds)
            for status, count in one.statuses.copy().items():
                requests.add_metric((operation, str(status)), count)
        yield from (requests, seconds)
        fed = CounterMetricFamily("pamo_feedback", "Feedback taken, by what became of it.", labels=("status",))
        for outcome, count in api.metrics.feedback.copy().items():
            fed.add_metric((outcome,), count)
        yield fed
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
