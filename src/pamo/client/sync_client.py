"""The client for programs that wait for each answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pamo.client import calls
from pamo.client.answers import FeedbackResult
from pamo.client.calls import Call
from pamo.client.connection import Connection, succeeded
from pamo.client.retrying import Outcome
from pamo.engine import Arm, Decision, Explanation, Feedback, FrontArm, Objective, Preference, Request

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class Client(Connection):
    """Asks pamo's HTTP service what `Engine` is asked in process, and answers the same.

    url: where the service is; by default the environment's PAMO_URL, or this machine's port 8000. key: the API key, by
    default the environment's PAMO_KEY. timeout: seconds to wait for each step of an attempt (to connect, to send, to
    receive).

    A call that is not answered, or answered 429, 502, 503 or 504, is tried again, up to `retries` times, after
    `backoff` seconds, then twice as many, up to `longest_pause`; or after as many as the service asks for. It is the
    same call each time: a decision has a key and a feedback its decision's id, so that nothing is decided or counted
    twice. After the last attempt it is a `ServiceError`. See `pamo.errors` for the others.

    transport: sends the requests in place of the network, or over one with settings of your own; sleep and chance:
    wait, and draw the length of pauses. A client may be used by any number of threads.

    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 4,
        backoff: float = 0.1,
        longest_pause: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(url, key, timeout, retries, backoff, longest_pause, chance)
        import httpx

        self._http = httpx.Client(headers=self._headers, timeout=self._timeout, transport=transport)
        self._sleep = sleep

    # Decisions and feedback

    def decide(
        self,
        user: str,
        arms: Sequence[str] | None = None,
        preference: Mapping[str, float] | None = None,
        k: int = 1,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm for a user, or rank the best k (all of them, if there are fewer).

        arms: those to choose from, by default all active ones. preference: the user's weights where they are known.
        key: makes the request repeatable, by any client; without one the call makes its own, for its retries.
        """
        return self._ask(calls.decide(user, arms, preference, k, key))

    def decide_many(self, requests: Iterable[str | Mapping[str, Any] | Request]) -> list[Decision]:
        """Choose for many users at once: each request a user, or a mapping of what `decide` takes.

        Nothing is recorded if one of them is wrong. A key that was used for another request raises `ConflictError`
        after the others were recorded.
        """
        return self._ask(calls.decide_many(requests))

    def feedback(
        self,
        decision_id: str,
        rewards: Mapping[str, float] | None = None,
        overall: float | None = None,
        preference: Mapping[str, float] | None = None,
        arm: str | None = None,
    ) -> Feedback:
        """Give what came of a decision, once: the same again changes nothing, and something else is refused.

        rewards: scores by objective, on their own scales; some may be missing. overall: the user's one overall score.
        preference: the weights that the user stated. arm: the one that it is for, the first of the decision by default.
        The status is "duplicate" also where the first attempt was recorded and its answer lost: it counts once.
        """
        return self._ask(calls.feedback(decision_id, rewards, overall, preference, arm))

    def feedback_many(self, items: Iterable[Mapping[str, Any]]) -> list[FeedbackResult]:
        """Give many feedbacks at once: each a mapping of what `feedback` takes, `decision_id` among it.

        Nothing is recorded if one of them is wrong in itself. One that is refused for what was recorded before stops
        no other; its result says why.
        """
        return self._ask(calls.feedback_many(items))

    def decision(self, decision_id: str) -> Decision:
        """Return a decision that was made."""
        return self._ask(calls.decision(decision_id))

    def explain(self, decision: str | Decision) -> Explanation:
        """Say why an arm was chosen, and which would have been without exploration."""
        return self._ask(calls.explain(decision))

    # Users

    def preference(self, user: str) -> Preference:
        """Return what a user cares about, with intervals; for a new user, what users have in common."""
        return self._ask(calls.preference(user))

    def export_user(self, user: str) -> dict[str, Any]:
        """Return everything that is kept of a user, as plain values. Needs the role admin."""
        return self._ask(calls.export_user(user))

    def erase_user(self, user: str) -> None:
        """Forget a user; the arms keep what they learned. Needs the role admin."""
        self._ask(calls.erase_user(user))

    # Arms

    def add_arm(self, arm: str, name: str | None = None) -> Arm:
        """Offer an arm from now on; again: revive it; with another name: rename it. Needs the role admin."""
        return self._ask(calls.add_arm(arm, name))

    def retire_arm(self, arm: str) -> Arm:
        """Offer an arm no longer; late feedback still counts. Needs the role admin."""
        return self._ask(calls.retire_arm(arm))

    def arm(self, arm: str) -> Arm:
        """Return an arm."""
        return self._ask(calls.arm(arm))

    def arms(self) -> list[Arm]:
        """Return all arms, the retired ones among them."""
        return self._ask(calls.arms())

    def front(self) -> list[FrontArm]:
        """Return the active arms, those on the Pareto front first, with how sure it is that they are on it."""
        return self._ask(calls.front())

    # The service

    def objectives(self) -> tuple[Objective, ...]:
        """Return what arms are scored on."""
        return self._ask(calls.objectives())

    def overall(self) -> Objective:
        """Return the scale of the overall score."""
        return self._ask(calls.overall())

    def statistics(self) -> dict[str, int]:
        """Count what there is: arms, users who gave feedback, feedbacks, and decisions that wait for one."""
        return self._ask(calls.statistics())

    def health(self) -> bool:
        """Tell whether the service is alive; asked once."""
        return succeeded(self._send(calls.health()))

    def ready(self) -> bool:
        """Tell whether the service can record anything now; asked once."""
        return succeeded(self._send(calls.ready()))

    def close(self) -> None:
        """Let go of the connections. Closing twice is fine."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, call: Call[T]) -> T:
        """Make a call, as often as it takes."""
        if call.known is not None:
            return call.known
        attempts = self._attempts(call)
        while (pause := attempts.pause_after(self._send(call))) is not None:
            self._sleep(pause)
        return attempts.answer()

    def _send(self, call: Call[Any]) -> Outcome:
        """Make one attempt."""
        try:
            return self._http.request(**self._request(call, closed=self._http.is_closed))
        except self._no_answer as error:
            return error
