"""One trial played in plain Python, decision by decision: the compiled loop shows only its totals.

It learns by pamo's public sums and scores offers by `pamo.policies.scores`, where the loop keeps means and inverses by
updates of its own; it draws from the same streams. What users have in common is fitted in the loop's rounds. Regrets
are worked out here from the true means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pamo import policies
from pamo.arrays import Floats
from pamo.compiling import dimensions
from pamo.environments import PROTOCOLS, Environment
from pamo.environments.protocols import assign
from pamo.estimators import common_to, preferences
from pamo.policies import Feedback, Keeping, Policy, Shape, kept_for
from pamo.policies.base import pick, scratch_for
from pamo.priors import arms_prior_of, sites_of
from pamo.statistics import ArmStatistics, UserStatistics
from pamo.streams import ENVIRONMENT, INSTANCE, POLICY, STATED, Stream, stream_for
from tests.witness import Pull, Question
from tests.witness_spread import fitted_after


class Decision(NamedTuple):
    """One decision: what was asked, and what the policy's kernel answered."""

    question: Question
    """Its stream stands where the policy's stood before the kernel was called."""
    scores: Floats
    """The kernel's scores of the offer."""
    stream_after: Stream
    """The policy's stream after the kernel, before ties are settled."""
    picked: int
    """The place in the offer of the arm that was pulled."""


class Totals(NamedTuple):
    """What a trial comes to after a round, as the loop's records have it."""

    regret_by_user: Floats
    pareto_regret: float
    overall: float
    optimal: int
    preference_error: float
    pulls: Floats
    questions: list[Question]
    """What is known then, as the next round's questions would have it, but for their offers."""


def instance_of(environment: Environment, seed: int, trial: int) -> tuple[Floats, Floats]:
    """Return a trial's true reward means and mean preferences."""
    means = np.empty((environment.arm_count, environment.objectives))
    truth = np.empty((environment.users, environment.objectives))
    stream = stream_for(seed, trial, INSTANCE)
    type(environment).instance(means, truth, environment.numbers(), stream, dimensions(environment.objectives))
    return means, truth


def play(
    policy: Policy, environment: Environment, *, rounds: int, seed: int, trial: int
) -> Iterator[tuple[list[Decision], Totals]]:
    """Yield each round's decisions and the totals after it."""
    users, arms, objectives = environment.users, environment.arm_count, environment.objectives
    numbers, dims, size = environment.numbers(), dimensions(objectives), environment.offer_size
    means, truth = instance_of(environment, seed, trial)
    stream, policy_stream = stream_for(seed, trial, ENVIRONMENT), stream_for(seed, trial, POLICY)
    spare = stream_for(seed, trial, STATED)
    wants_stated = Feedback.STATED in policy.reads
    blocks = np.arange(arms // size)
    estimate = policy.estimate(objectives)
    memory: dict[Any, Any] = {}
    shape = Shape(users, arms, objectives, rounds)
    kept, hyperparameters = kept_for(policy.keeps(shape), shape), np.array(policy.hyperparameters(shape), dtype=float)

    arm_sums = ArmStatistics.zeros(arms=arms, objectives=objectives)
    user_sums = UserStatistics.zeros(users=users, objectives=objectives)
    own_sums = [ArmStatistics.zeros(arms=arms, objectives=objectives) for _ in range(users)]
    population, arms_prior, sites = common_to(user_sums, estimate), arms_prior_of(arm_sums), None
    history: list[Pull] = []
    regret, pareto_regret, overall_total, optimal = np.zeros(users), 0.0, 0.0, 0

    for t in range(1, rounds + 1):
        assign(blocks, PROTOCOLS[environment.protocol], stream)
        decisions: list[Decision] = []
        now: list[Pull] = []
        for n in range(users):
            first = 0 if environment.protocol == "all" else int(blocks[n]) * size
            offer = list(range(first, first + size))
            question = Question(
                user=n,
                t=t,
                offer=offer,
                earlier=list(history),
                settings=policy.settings,
                users=users,
                arms=arms,
                objectives=objectives,
                horizon=rounds,
                truth=truth,
                stream=policy_stream.copy(),
                memory=memory,
            )
            scores = policies.scores(
                policy,
                arms=arm_sums,
                users=user_sums,
                user=n,
                offer=offer,
                horizon=rounds,
                known=truth,
                own=own_sums[n],
                population=population,
                sites=sites,
                arms_prior=arms_prior,
                kept=kept,
                stream=policy_stream,
            )
            after = policy_stream.copy()
            picked = int(pick(scores, size, policy_stream))
            decisions.append(Decision(question, scores, after, picked))

            arm = offer[picked]
            room, stated = np.empty(objectives + 1), np.full(objectives, np.nan)
            overall = type(environment).draw(
                room, stated, arm, n, means, truth, numbers, wants_stated, stream, spare, dims
            )
            reward = room[:objectives]
            now.append(Pull(user=n, arm=arm, reward=reward, overall=overall, stated=stated))
            user_sums.observe(n, reward, overall, stated if wants_stated else None)
            own_sums[n].observe(arm, reward, overall)

            values = means[offer] @ truth[n]
            regret[n] += values.max() - values[picked]
            optimal += bool(values.max() - values[picked] < 1e-12)
            pareto_regret += max(0.0, *(float(np.min(means[other] - means[arm])) for other in offer))
            overall_total += overall
        # Only now do the arms' statistics take the round.
        for pull in now:
            arm_sums.observe(pull.arm, pull.reward, pull.overall)
            if policy.remember is not None:
                scratch = np.empty(scratch_for(size, objectives))
                about = Keeping(hyperparameters, policy_stream, scratch, kept, t, pull.user, np.arange(0))
                type(policy).remember(pull.arm, np.array([*pull.reward, pull.overall]), about, dims)
        history.extend(now)
        if fitted_after(t + 1) == t:
            population, arms_prior = common_to(user_sums, estimate), arms_prior_of(arm_sums)
            sites = sites_of(user_sums, population) if estimate.shared else None
        estimates = preferences(user_sums, estimate, known=truth, population=population, sites=sites)
        error = float(np.linalg.norm(estimates - truth, axis=1).mean())
        questions = [decision.question._replace(t=t + 1, offer=[], earlier=list(history)) for decision in decisions]
        pulls = arm_sums.pulls.copy()
        yield decisions, Totals(regret.copy(), pareto_regret, overall_total, optimal, error, pulls, questions)
