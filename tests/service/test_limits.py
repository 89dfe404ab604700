"""The rate limiter, against a plain token bucket and a clock of the test's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamo.service.limits import RateLimiter
from tests.service.calling import Clock


class Bucket:
    """Tokens as a textbook counts them."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self.rate, self.burst, self.tokens, self.at = rate, burst, float(burst), now

    def wait(self, now: float) -> float:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        if self.tokens >= 1 - 1e-6:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / self.rate


def test_a_burst_goes_through_and_then_the_rate_holds():
    clock = Clock()
    limiter = RateLimiter(rate=10, burst=3, clock=clock)
    assert [limiter.wait_for("a") for _ in range(3)] == [0, 0, 0]
    assert limiter.wait_for("a") == pytest.approx(0.1)
    clock.at += 0.05
    assert limiter.wait_for("a") == pytest.approx(0.05)
    clock.at += 0.05
    assert limiter.wait_for("a") == 0
    assert limiter.wait_for("a") == pytest.approx(0.1)


def test_being_refused_costs_nothing():
    clock = Clock()
    limiter = RateLimiter(rate=1, burst=1, clock=clock)
    assert limiter.wait_for("a") == 0
    assert all(limiter.wait_for("a") == pytest.approx(1.0) for _ in range(50))
    clock.at += 1.0
    assert limiter.wait_for("a") == 0


def test_who_waits_as_told_is_let_through():
    clock = Clock()
    clock.at = 1_234_567.891
    limiter = RateLimiter(rate=700, burst=2, clock=clock)
    granted = 0
    for _ in range(1000):
        wait = limiter.wait_for("a")
        if wait:
            clock.at += wait
            assert limiter.wait_for("a") == 0
        granted += 1
    assert granted == 1000


def test_names_do_not_share():
    limiter = RateLimiter(rate=1, burst=1, clock=Clock())
    assert limiter.wait_for("a") == 0
    assert limiter.wait_for("b") == 0
    assert limiter.wait_for("a") > 0


def test_a_rate_of_0_is_no_limit_and_keeps_nothing():
    limiter = RateLimiter(rate=0, burst=1, clock=Clock())
    assert all(limiter.wait_for("a") == 0 for _ in range(1000))
    assert len(limiter) == 0


def test_memory_is_bounded_while_strangers_come():
    clock = Clock()
    limiter = RateLimiter(rate=0.001, burst=1, clock=clock, most_names=100)
    for number in range(5000):
        assert limiter.wait_for(f"stranger {number}") == 0
        assert len(limiter) <= 100
    assert limiter.wait_for("stranger 4999") > 0, "the latest ones are remembered"
    assert limiter.wait_for("stranger 4950") > 0


def test_who_keeps_asking_is_not_forgotten_for_strangers():
    limiter = RateLimiter(rate=0.001, burst=1, clock=Clock(), most_names=10)
    assert limiter.wait_for("busy") == 0
    for number in range(200):
        limiter.wait_for(f"stranger {number}")
        assert limiter.wait_for("busy") > 0


def test_names_are_forgotten_once_their_buckets_are_full():
    clock = Clock()
    limiter = RateLimiter(rate=10, burst=5, clock=clock)
    for number in range(1000):
        limiter.wait_for(f"guest {number}")
    assert len(limiter) == 1000
    clock.at += 60.0
    for _ in range(1000):
        limiter.wait_for("regular")
    assert len(limiter) == 1


@given(
    rate=st.sampled_from([0.5, 1.0, 3.0, 100.0]),
    burst=st.integers(1, 5),
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.01, 0.25, 0.5, 2.0])), max_size=80),
)
def test_it_answers_as_a_plain_token_bucket_does(rate, burst, steps):
    clock = Clock()
    limiter = RateLimiter(rate, burst, clock)
    buckets = {name: Bucket(rate, burst, clock.at) for name in "abc"}
    for name, pause in steps:
        clock.at += pause
        assert limiter.wait_for(name) == pytest.approx(buckets[name].wait(clock.at), abs=1e-6)
