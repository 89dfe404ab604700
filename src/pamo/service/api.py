"""What each operation does, in terms of the engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from pamo.contract import answers
from pamo.contract.codes import Code
from pamo.contract.events import ARMS, Outcome, outcome_of
from pamo.contract.experiments import Variant
from pamo.contract.features import Feature
from pamo.contract.requests import Request
from pamo.engine import AsyncEngine, Engine, Lookout
from pamo.errors import InputError, PamoError
from pamo.service import schemas
from pamo.service.activity import Activity
from pamo.service.history import History
from pamo.service.keys import Keyring
from pamo.service.limits import RateLimiter
from pamo.service.metrics import Metrics
from pamo.service.problems import Problem
from pamo.service.settings import Settings
from pamo.service.stream import Stream

if TYPE_CHECKING:
    from pamo.service.operations import Arguments

Result = TypeVar("Result")

log = logging.getLogger("pamo.service")


class Api:
    """The engine behind HTTP, and what watches over it."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.live = AsyncEngine(engine, settings.timeout_seconds, settings.max_cost)
        self.settings = settings
        self.keyring = Keyring(settings.keys)
        self.limiter = RateLimiter(settings.rate, settings.burst) if settings.rate else None
        self.metrics = Metrics()
        self.metrics.watch(self)
        self.activity = Activity(engine, engine.clock)
        self.history = History(engine.store, self.activity)
        self.stream = Stream(self.activity)
        self.lookout = Lookout(engine)
        self.in_flight = 0
        self.others: Mapping[str, Api] = {}
        """The projects that are served beside this one, by name."""
        self.said = ""
        """The last trouble of the store that was logged."""

    async def aside(self, work: Callable[[], Result]) -> Result:
        """Do what may take a while in a thread, so that decisions do not wait for it."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(work), self.settings.timeout_seconds)
        except TimeoutError:
            raise Problem(503, f"this took more than {self.settings.timeout_seconds:g} s") from None


# Decisions and feedback


async def decide(api: Api, asked: Arguments) -> Any:
    """Choose an arm for a user."""
    body: schemas.DecisionBody = asked.body
    decision = await api.live.decide(
        body.user, body.arms, body.preference, body.k, asked.key, body.features, body.choice
    )
    api.activity.decided(decision)
    return decision


async def decide_many(api: Api, asked: Arguments) -> Any:
    """Choose for many users."""
    several: list[schemas.BatchDecision] = asked.body.requests
    _check_batch(api, several, "requests")
    requests = [
        Request(one.user, one.arms, one.preference, one.k, one.key, one.features, one.choice) for one in several
    ]
    try:
        decisions = await api.live.decide_many(requests)
    except InputError as error:
        if error.field == "requests":  # about all of them together
            raise
        raise await _placed(api, error, "requests", requests, _try_request) from None
    for one in decisions:
        api.activity.decided(one)
    return answers.Decisions(decisions)


async def feedback(api: Api, asked: Arguments) -> Any:
    """Take what came of a decision."""
    body: schemas.FeedbackBody = asked.body
    core = api.engine.core
    event = core.given(asked.ids[0], schemas.scores(body.rewards), body.overall, body.preference, body.arm)
    try:
        receipt = await api.live.record(event)
        answer = core.answered(event, receipt)
    except PamoError as error:
        api.metrics.fed(_outcome(error))
        raise
    api.metrics.fed(answer.status)
    if receipt.outcome is Outcome.RECORDED:
        api.activity.fed(event, receipt.decision)
    return answer


async def feedback_many(api: Api, asked: Arguments) -> Any:
    """Take what came of many decisions."""
    several: list[schemas.BatchFeedback] = asked.body.feedback
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


async def decision(api: Api, asked: Arguments) -> Any:
    """Return a decision with its explanation."""
    return await api.aside(lambda: api.lookout.decision(asked.ids[0]))


# Users


async def preference(api: Api, asked: Arguments) -> Any:
    """Return what a user cares about."""
    return await api.aside(lambda: api.engine.preference(asked.ids[0]))


async def user(api: Api, asked: Arguments) -> Any:
    """Return everything that is kept of a user."""
    return await api.aside(lambda: api.engine.export_user(asked.ids[0]))


async def erase(api: Api, asked: Arguments) -> None:
    """Forget a user."""
    await api.live.erase_user(asked.ids[0])
    api.activity.forget(asked.ids[0])
    api.stream.forget()


# Arms


async def arms(api: Api, asked: Arguments) -> Any:
    """Return all arms."""
    return answers.ArmList(await api.aside(api.engine.arms))


async def arm(api: Api, asked: Arguments) -> Any:
    """Return one arm."""
    arm_id = asked.ids[0]
    found = await api.aside(lambda: api.engine.arm(arm_id))
    if found is None:
        sentence = f"there is no arm {arm_id!r:.80}: GET /v1/arms lists them"
        raise Problem(404, sentence, "id", code=Code.UNKNOWN_ARM)
    return found


async def add_arm(api: Api, asked: Arguments) -> Any:
    """Offer an arm from now on, or rename it."""
    body: schemas.ArmBody = asked.body or schemas.ArmBody()
    await api.live.add_arm(asked.ids[0], body.name, body.features)
    return await arm(api, asked)


async def add_arms(api: Api, asked: Arguments) -> Any:
    """Offer many arms from now on, or rename them."""
    several: list[schemas.BatchArm] = asked.body.arms
    _check_batch(api, several, "arms")
    names = {one.id: one.name for one in several}  # of an arm that is there twice the later counts, as by two requests
    features = {one.id: one.features for one in several if one.features is not None}
    await api.live.add_arms(names, features)
    found = await api.aside(api.engine.arms)
    return answers.ArmList([one for one in found if one.id in names])


async def declare_features(api: Api, asked: Arguments) -> Any:
    """Let arms, or users, have more features."""
    of = asked.body.of
    await api.live.declare_features([Feature(one.name, one.kind) for one in asked.body.features], of)
    return answers.Features(api.engine.features if of == ARMS else api.engine.user_features)


async def retire_arm(api: Api, asked: Arguments) -> Any:
    """Offer an arm no longer."""
    await arm(api, asked)
    await api.live.retire_arm(asked.ids[0])
    return await arm(api, asked)


# Experiments


async def experiment(api: Api, asked: Arguments) -> Any:
    """Return how the groups of the newest experiment compare."""
    return answers.ExperimentFound(await api.aside(api.engine.experiment))


async def start_experiment(api: Api, asked: Arguments) -> Any:
    """Serve a share of the users otherwise."""
    body: schemas.ExperimentBody = asked.body
    variants = [Variant(one.name, one.share, one.policy, one.preference) for one in body.variants]
    await api.live.start_experiment(body.name, body.control, body.policy, body.smallest, variants)
    return await api.aside(api.engine.experiment)


async def end_experiment(api: Api, asked: Arguments) -> Any:
    """Serve everybody alike again."""
    await api.live.end_experiment()
    return await api.aside(api.engine.experiment)


# The service itself


async def objectives(api: Api, asked: Arguments) -> Any:
    """Return the objectives, the scale of the overall score, and the features that arms and users may have."""
    setup = api.engine.store.setup
    return answers.Objectives(setup.objectives, setup.overall, api.engine.features, api.engine.user_features)


async def statistics(api: Api, asked: Arguments) -> Any:
    """Count what there is."""
    return await api.aside(api.engine.statistics)


async def health(api: Api, asked: Arguments) -> Any:
    """Give a sign of life, unless only a new start would help."""
    for one in (api, *api.others.values()):
        if one.engine.store.stopped:
            raise _not_ready(one, one.engine.store.trouble() or "")
    return answers.Health()


async def ready(api: Api, asked: Arguments) -> Any:
    """Tell whether decisions and feedback can be recorded."""
    for one in (api, *api.others.values()):
        trouble = await one.aside(one.engine.store.trouble)
        if trouble is not None:
            raise _not_ready(one, trouble)
    return answers.Health()


def _not_ready(api: Api, trouble: str) -> Problem:
    """Return why nothing can be recorded; where there are keys, to the log only, since it tells of the machine."""
    if trouble != api.said:
        log.error("nothing can be recorded: %s", trouble)
        api.said = trouble
    if not api.keyring.empty:
        trouble = "nothing can be recorded at the moment: the log here says why"
    return Problem(503, trouble, headers={"retry-after": "5"})


async def measures(api: Api, asked: Arguments) -> Any:
    """Return what Prometheus reads."""
    text = await api.aside(lambda: api.metrics.text({name: one.metrics for name, one in api.others.items()}))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
