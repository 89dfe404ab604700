"""What each operation does, in terms of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from pamo.contract import answers
from pamo.contract.codes import Code
from pamo.contract.events import Outcome, outcome_of
from pamo.contract.requests import Request
from pamo.engine import AsyncEngine, Engine, Lookout
from pamo.errors import InputError, PamoError
from pamo.service import schemas
from pamo.service.activity import Activity
from pamo.service.keys import Keyring
from pamo.service.limits import RateLimiter
from pamo.service.metrics import Metrics
from pamo.service.operations import Call
from pamo.service.problems import Problem
from pamo.service.settings import Settings
from pamo.service.stream import Stream

Result = TypeVar("Result")


class Api:
    """The engine behind HTTP, and what watches over it."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.live = AsyncEngine(engine, settings.timeout_seconds)
        self.settings = settings
        self.keyring = Keyring(settings.keys)
        self.limiter = RateLimiter(settings.rate, settings.burst) if settings.rate else None
        self.metrics = Metrics()
        self.metrics.watch(self)
        self.activity = Activity(engine, engine.clock)
        self.stream = Stream(self.activity)
        self.lookout = Lookout(engine)
        self.in_flight = 0

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do what may take a while in a thread, so that decisions do not wait for it."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(work), self.settings.timeout_seconds)
        except TimeoutError:
            raise Problem(503, f"this took more than {self.settings.timeout_seconds:g} s") from None


# Decisions and feedback


async def decide(api: Api, call: Call) -> Any:
    """Choose an arm for a user."""
    body: schemas.DecisionBody = call.body
    decision = await api.live.decide(body.user, body.arms, body.preference, body.k, call.key)
    _count(api, [decision])
    return decision


async def decide_many(api: Api, call: Call) -> Any:
    """Choose for many users."""
    several: list[schemas.BatchDecision] = call.body.requests
    _check_batch(api, several, "requests")
    requests = [Request(one.user, one.arms, one.preference, one.k, one.key) for one in several]
    try:
        decisions = await api.live.decide_many(requests)
    except InputError as error:
        raise await _placed(api, error, "requests", requests, _try_request) from None
    _count(api, decisions)
    return answers.Decisions(decisions)


def _count(api: Api, decisions: Sequence[answers.Decision]) -> None:
    """Take note of decisions, of each once: what is repeated under a key was counted before."""
    made = [one for one in decisions if not one.repeated]
    api.metrics.decided(len(made))
    for one in made:
        api.activity.decided(one)


async def feedback(api: Api, call: Call) -> Any:
    """Take what came of a decision."""
    body: schemas.FeedbackBody = call.body
    core = api.engine.core
    event = core.given(call.ids[0], schemas.scores(body.rewards), body.overall, body.preference, body.arm)
    try:
        receipt = await api.live.record(event)
        answer = core.answered(event.decision, receipt)
    except PamoError as error:
        api.metrics.fed(_outcome(error))
        raise
    api.metrics.fed(answer.status)
    if receipt.outcome is Outcome.RECORDED:
        api.activity.fed(event, receipt.decision)
    return answer


async def feedback_many(api: Api, call: Call) -> Any:
    """Take what came of many decisions."""
    several: list[schemas.BatchFeedback] = call.body.feedback
    _check_batch(api, several, "feedback")
    core = api.engine.core
    events = [core.given(one.id, schemas.scores(one.rewards), one.overall, one.preference, one.arm) for one in several]
    try:
        receipts = await api.live.record_many(events)
    except PamoError as error:
        api.metrics.fed(_outcome(error), len(events))
        if isinstance(error, InputError):
            raise await _placed(api, error, "feedback", events, lambda engine, one: engine.store.check(one)) from None
        raise
    for event, receipt in zip(events, receipts, strict=True):
        api.metrics.fed(receipt.outcome.value)
        if receipt.outcome is Outcome.RECORDED:
            api.activity.fed(event, receipt.decision)
    return answers.FeedbackResults(core.results(events, receipts))


def _outcome(error: PamoError) -> str:
    """Return what became of a feedback, in the words of `Outcome` where it has one."""
    if isinstance(error, InputError):
        return "invalid"
    outcome = outcome_of(error.code)
    return "failed" if outcome is None else outcome.value


def _check_batch(api: Api, several: Sequence[Any], field: str) -> None:
    if not 1 <= len(several) <= api.settings.max_batch:
        raise Problem(422, f"expected 1 to {api.settings.max_batch} in {field}, got {len(several)}", field)


def _try_request(engine: Engine, one: Request) -> None:
    if engine.core.repeated(one) is None:
        engine.core.decider.choose_many([one])


async def _placed(
    api: Api, error: InputError, field: str, several: Sequence[Any], attempt: Callable[[Engine, Any], object]
) -> InputError:
    """Return the error with the place in the batch that it is about, found by trying each by itself."""

    def find() -> InputError:
        for place, one in enumerate(several):
            try:
                attempt(api.engine, one)
            except InputError as found:
                where = f"{field}[{place}]"
                place_in = f"{where}.{found.field}" if found.field else where
                return InputError(f"{found}, at {where}", place_in, code=found.code)
        return error

    return await api.aside(find)


async def decision(api: Api, call: Call) -> Any:
    """Return a decision with its explanation."""
    return await api.aside(lambda: api.lookout.decision(call.ids[0]))


# Users


async def preference(api: Api, call: Call) -> Any:
    """Return what a user cares about."""
    return await api.aside(lambda: api.engine.preference(call.ids[0]))


async def user(api: Api, call: Call) -> Any:
    """Return everything that is kept of a user."""
    return await api.aside(lambda: api.engine.export_user(call.ids[0]))


async def erase(api: Api, call: Call) -> None:
    """Forget a user."""
    await api.live.erase_user(call.ids[0])
    api.activity.forget(call.ids[0])


# Arms


async def arms(api: Api, call: Call) -> Any:
    """Return all arms."""
    return answers.ArmList(await api.aside(api.engine.arms))


async def arm(api: Api, call: Call) -> Any:
    """Return one arm."""
    arm_id = call.ids[0]
    found = await api.aside(lambda: api.engine.arm(arm_id))
    if found is None:
        sentence = f"there is no arm {arm_id!r:.80}: GET /v1/arms lists them"
        raise Problem(404, sentence, "id", code=Code.UNKNOWN_ARM)
    return found


async def add_arm(api: Api, call: Call) -> Any:
    """Offer an arm from now on, or rename it."""
    await api.live.add_arm(call.ids[0], None if call.body is None else call.body.name)
    return await arm(api, call)


async def add_arms(api: Api, call: Call) -> Any:
    """Offer many arms from now on, or rename them."""
    several: list[schemas.BatchArm] = call.body.arms
    _check_batch(api, several, "arms")
    names = {one.id: one.name for one in several}
    if len(names) < len(several):
        raise Problem(422, "expected each arm once in arms", "arms")
    await api.live.add_arms(names)
    found = await api.aside(api.engine.arms)
    return answers.ArmList([one for one in found if one.id in names])


async def retire_arm(api: Api, call: Call) -> Any:
    """Offer an arm no longer."""
    await arm(api, call)
    await api.live.retire_arm(call.ids[0])
    return await arm(api, call)


# The service itself


async def objectives(api: Api, call: Call) -> Any:
    """Return the objectives and the scale of the overall score."""
    setup = api.engine.store.setup
    return answers.Objectives(setup.objectives, setup.overall)


async def statistics(api: Api, call: Call) -> Any:
    """Count what there is."""
    return await api.aside(api.engine.statistics)


async def health(api: Api, call: Call) -> Any:
    """Give a sign of life."""
    return answers.Health()


async def ready(api: Api, call: Call) -> Any:
    """Tell whether decisions and feedback can be recorded."""
    trouble = await api.aside(api.engine.store.trouble)
    if trouble is not None:
        raise Problem(503, trouble, headers={"retry-after": "5"})
    return answers.Health()


async def measures(api: Api, call: Call) -> Any:
    """Return what Prometheus reads."""
    text = await api.aside(api.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
