"""A trajectory: every decision of a run, with the arms on offer, the one chosen, its chance, and what came of it.

The loop's observer notes it, so that the trials are those of `simulate` without one. A policy's chance to choose as it
did is that of its kernel asked again: of a tie where it draws nothing, and else the share of `DRAWS` draws, from a
stream of their own, the choice itself counting as one more: it was possible.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pamo.arrays import Floats
from pamo.compiling import apart, around, count_of
from pamo.contract.objectives import Objective
from pamo.environments.base import Environment
from pamo.policies.base import Policy, Run, scratch_for
from pamo.reading import padded
from pamo.simulation.files import written_whole
from pamo.simulation.learning import TrialPlan
from pamo.simulation.loop import Moment, Watched
from pamo.streams import key_of, start
from pamo.tabular import OBJECTIVES, require_pyarrow
from pamo.words import LANES, row_of, seat

DRAWS = 200
"""How often a policy that draws is asked again for each choice."""
_SEED, _TRIAL, _HYPERPARAMETERS = range(3)
"""Places in the observer's numbers: the seed, the first trial's number, and the policy's hyperparameters from there."""
_ARM, _CHANCE, _VALUES = range(3)
"""Places in the notes of a decision: the arm and 1 (0 for a user who was not there), its chance, what came of it."""
_CHANCES = 1 << 20
"""The purpose of the first round's extra draws, past all that a trial draws for."""


def width_of(objectives: int) -> int:
    """Return the numbers that are noted of a decision."""
    return _VALUES + objectives + 1


def room_of(plan: TrialPlan, objectives: int) -> int:
    """Return the numbers that the observer works with: scores, the kernel's room, and a stream's four words."""
    lines, length = scratch_for(plan.offer_size, objectives)
    return padded(plan.offer_size) + lines * length + 4


@cache
def noting(kernel: Any) -> Any:
    """Return the observer that notes every decision of a policy's kernel."""
    score = apart(kernel.py_func)

    def note_round(moment: Moment, watched: Watched, plan: TrialPlan, dims: Any) -> None:
        objectives, size, blocks = count_of(dims), plan.offer_size, plan.arms // plan.offer_size
        wide, width = padded(size), _VALUES + objectives + 1
        lines, length = scratch_for(size, objectives)
        scores, stream = watched.room[:wide], watched.room[len(watched.room) - 4 :].view(np.uint64)
        scratch = watched.room[wide : wide + lines * length].reshape((lines, length))
        run = Run(watched.numbers[_HYPERPARAMETERS:], stream, scratch)
        seed, trial = np.uint64(watched.numbers[_SEED]), np.uint64(watched.numbers[_TRIAL] + moment.trial)
        start(stream, key_of(seed, trial, np.uint64(_CHANCES + moment.t)))
        first = (moment.t - 1) * plan.users * width
        for n in range(plan.users):
            own = moment.t if n < plan.users - plan.newcomers else moment.t - plan.arrival + 1
            if own < 1:
                continue
            arm = moment.chosen[n]
            block, place = arm // size, arm % size
            tile = moment.arms[n * blocks + block if plan.per_user else block]
            user, before, chance, asked = row_of(moment.users.read, moment.first + n), stream[0], 0.0, 0
            for _ in range(DRAWS):
                score(scores, size, own, tile, user, moment.common, run, dims)
                best, ties = scores[0], 0
                for j in range(1, size):
                    best = max(best, scores[j])
                for j in range(size):
                    ties += 1 if scores[j] == best else 0
                chance += 1.0 / ties if scores[place] == best else 0.0
                asked += 1
                if stream[0] == before:  # it draws nothing, and would say the same again
                    break
            note = watched.notes[moment.trial, first + n * width : first + (n + 1) * width]
            note[_ARM] = arm + 1
            note[_CHANCE] = chance if asked == 1 else (chance + 1.0) / (asked + 1.0)
            chunk, lane = seat(moment.first + n, LANES)
            for d in range(objectives + 1):
                note[_VALUES + d] = moment.rewards[chunk, d, lane]

    return around(note_round, kernel)


def write_trajectory(
    path: str | Path, notes: Floats, policy: Policy, environment: Environment, rounds: int, first_trial: int
) -> Path:
    """Write what was noted as a Parquet file, a row a decision; `pamo evaluate` reads it."""
    pyarrow, parquet = require_pyarrow("a trajectory")
    objectives, size, target = environment.objectives, environment.offer_size, Path(path)
    table = notes.reshape(len(notes), rounds, environment.users, width_of(objectives))
    trial, t, n = np.nonzero(table[..., _ARM])
    rows = table[trial, t, n]
    arm, trial = rows[:, _ARM].astype(np.int64) - 1, trial + first_trial
    scales = [Objective(f"objective {d + 1}") for d in range(objectives)]
    first = arm // size * size
    columns = {
        "trial": trial,
        "round": t + 1,
        "user": [f"{k}.{one}" for k, one in zip(trial.tolist(), n.tolist(), strict=True)],
        "offer": [
            [f"{k}.{each}" for each in range(one, one + size)]
            for k, one in zip(trial.tolist(), first.tolist(), strict=True)
        ],
        "arm": [f"{k}.{one}" for k, one in zip(trial.tolist(), arm.tolist(), strict=True)],
        "propensity": rows[:, _CHANCE],
        **{one.name: rows[:, _VALUES + d] for d, one in enumerate(scales)},
        "overall": rows[:, _VALUES + objectives],
    }
    about = {OBJECTIVES: json.dumps([asdict(one) for one in scales]), "policy": policy.label}
    with written_whole(target, "trajectory", (".parquet",)) as partial:
        parquet.write_table(pyarrow.table(columns, metadata=about), partial, compression="zstd")
    return target
