"""What a run saw: arrays a trial and checkpoint, their summaries, and where to keep, export and draw them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pamo.arrays import Floats, Ints
from pamo.errors import InputError, unknown_name
from pamo.estimators import Kind, student_t
from pamo.plain import plain
from pamo.policies.base import Policy
from pamo.simulation.learning import TrialPlan
from pamo.simulation.loop import Records
from pamo.simulation.showing import frame_of, html_of, line_of, short


class Summary(NamedTuple):
    """Mean and spread of a value over trials; low and high bound its mean with 95 % confidence (Student's t)."""

    mean: float
    sd: float
    low: float
    high: float


def summarize(values: npt.ArrayLike) -> Summary:
    """Return mean, standard deviation and the 95 % interval of the mean; with one value the spread is NaN.

    >>> summarize([1.0, 2.0, 3.0]).mean
    2.0
    """
    return Summary(*(float(each[0]) for each in _summaries(np.asarray(values, dtype=float).reshape(1, -1))))


def _summaries(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the numbers of a `Summary` for each row of values."""
    mean, count = rows.mean(axis=1), rows.shape[1]
    if count < 2:
        unknown = np.full(len(rows), math.nan)
        return mean, unknown, unknown, unknown
    sd = rows.std(axis=1, ddof=1)
    half = student_t(count - 1) * sd / math.sqrt(count)
    return mean, sd, mean - half, mean + half


def band_of(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean, low and high (95 %) of each column of (trials, columns); of one trial, the mean three times."""
    mean, _, low, high = _summaries(np.ascontiguousarray(values.T))
    return mean, np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PolicyResult:
    """What one policy did, in every trial.

    rounds: (checkpoints,), the rounds at which values were noted. regret_by_user: (trials, checkpoints, users),
    cumulative, as are pareto_regret (Drugan & Nowé) and overall (the scores received): (trials, checkpoints).
    optimal_share: (trials, checkpoints), the share of pulls so far that had no regret. preference_error:
    (trials, checkpoints), the mean over users of ‖ĉ − c̄‖₂ at that time, NaN for a policy without ĉ.
    pulls: (trials, arms). seconds: what the trials took, on the wall.
    """

    id: str
    hyperparameters: Mapping[str, Any]
    rounds: Ints
    regret_by_user: Floats
    pareto_regret: Floats
    overall: Floats
    optimal_share: Floats
    preference_error: Floats
    pulls: Ints
    seconds: float

    @classmethod
    def from_records(
        cls, policy: Policy, plan: TrialPlan, marks: Ints, records: Records, seconds: float
    ) -> PolicyResult:
        """Return the result of the loop's records."""
        # Of the newcomers only the rounds since they came are pulls.
        pulls = marks * (plan.users - plan.newcomers) + np.maximum(marks - plan.arrival + 1, 0) * plan.newcomers
        error = np.full_like(records.preference_error, np.nan) if plan.kind == Kind.NONE else records.preference_error
        return cls(
            id=policy.id,
            hyperparameters=policy.settings,
            rounds=marks,
            regret_by_user=records.regret_by_user,
            pareto_regret=records.pareto_regret,
            overall=records.overall,
            optimal_share=records.optimal / pulls,
            preference_error=error,
            pulls=records.pulls.astype(np.int64),
            seconds=seconds,
        )

    @property
    def regret(self) -> Floats:
        """Cumulative regret of all users together, (trials, checkpoints)."""
        total: Floats = self.regret_by_user.sum(axis=2)
        return total

    @property
    def final_regret(self) -> Floats:
        """The regret at the last round, (trials,)."""
        return self.regret[:, -1]

    @property
    def trials(self) -> int:
        """The number of trials."""
        return len(self.pulls)

    @property
    def decisions_per_second(self) -> float:
        """Decisions made a second of wall time, all threads together."""
        return float(int(self.pulls.sum()) / max(self.seconds, 1e-9))

    def __repr__(self) -> str:
        return short(self)

    def band(self, values: Floats | None = None) -> tuple[Floats, Floats, Floats]:
        """Return mean, low and high (95 %) at each checkpoint, by default of the regret."""
        return band_of(self.regret if values is None else values)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Mapping[str, PolicyResult]):
    """The outcome of `simulate`: settings, and a `PolicyResult` for each policy by name.

    >>> from pamo import environments, simulate
    >>> result = simulate(["ucb"], environments.Gaussian(), rounds=50, trials=2, seed=7)
    >>> list(result), result.settings["seed"]
    (['ucb'], 7)
    >>> result
    Result(ucb; gaussian: 2 users, 10 arms, D=3; 50 rounds, 2 trials, seed 7)
    """

    settings: Mapping[str, Any]
    policies: Mapping[str, PolicyResult]

    def __getitem__(self, name: str) -> PolicyResult:
        if name not in self.policies:
            raise unknown_name("policy in this result", name, self.policies)
        return self.policies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.policies)

    def __len__(self) -> int:
        return len(self.policies)

    def __repr__(self) -> str:
        return f"Result({', '.join(self.policies)}; {line_of(self)})"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __contains__(self, name: object) -> bool:
        return name in self.policies

    def summary(self) -> dict[str, Any]:
        """Return the settings and each policy's final regret and mean curve, as plain values for JSON."""
        return {
            "settings": dict(self.settings),
            "policies": {name: _policy_summary(outcome) for name, outcome in self.policies.items()},
        }

    def to_pandas(self, *, users: bool = False) -> Any:
        """Return a pandas frame in long form: a row for each policy, trial and round.

        users: a row for each user, too, with that user's regret in place of what is noted of all.
        """
        return frame_of(self, "pandas", users=users)

    def to_polars(self, *, users: bool = False) -> Any:
        """Return the same as a polars frame."""
        return frame_of(self, "polars", users=users)

    def save(self, path: str | Path, *, flat: bool = False) -> Path:
        """Write the whole result to `path`: Parquet, or by the ending `.csv` or `.json` an export for other tools.

        Only Parquet holds everything and can be loaded again. flat: Parquet in the long form of `to_pandas`, without
        nested lists and so without the pulls and the users' own regrets, for other tools.
        """
        from pamo.simulation.files import save

        return save(self, path, flat=flat)

    @staticmethod
    def load(path: str | Path) -> Result:
        """Return the result that `save` wrote."""
        from pamo.simulation.files import load

        return load(path)

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw mean regret with its 95 % band; write it to `path` (SVG, PNG, PDF) or return the Matplotlib figure.

        The figure shows itself where it is the last line of a notebook's cell.
        """
        from pamo.simulation.plot import plot_result

        return plot_result(self, path, **options)

    @staticmethod
    def join(parts: Sequence[Result]) -> Result:
        """Return the result of several runs of consecutive trials, as if they had been run at once."""
        if not parts:
            raise InputError("expected at least one result to join, got none")
        ordered = sorted(parts, key=lambda part: part.settings["first_trial"])
        base = ordered[0]
        following = base.settings["first_trial"]
        for part in ordered:
            if part.settings["first_trial"] != following:
                raise InputError(f"expected a part that starts at trial {following}, got one that starts at "
                                 f"{part.settings['first_trial']}")  # fmt: skip
            following += part.settings["trials"]
            same = {name: value for name, value in part.settings.items() if name not in ("first_trial", "trials")}
            for name, value in same.items():
                if base.settings[name] != value:
                    raise InputError(f"expected parts of one run, got {name} {base.settings[name]!r} and {value!r}")
            if list(part) != list(base):
                raise InputError(f"expected parts with the same policies, got {list(base)} and {list(part)}")
        settings = dict(base.settings) | {"trials": following - base.settings["first_trial"]}
        joined = {name: _join_policy([part[name] for part in ordered]) for name in base}
        return Result(settings=settings, policies=joined)


_BY_TRIAL = ("regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls")


def _join_policy(parts: Sequence[PolicyResult]) -> PolicyResult:
    first = parts[0]
    for part in parts:
        if (part.id, part.hyperparameters) != (first.id, first.hyperparameters):
            raise InputError(
                f"expected parts with one policy under a name, got {first.id} {first.hyperparameters} and {part.id} "
                f"{part.hyperparameters}"
            )
    if any(not np.array_equal(part.rounds, first.rounds) for part in parts):
        raise InputError(f"expected parts with the same checkpoints, got different ones for {first.id}")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_TRIAL}
    seconds = sum(part.seconds for part in parts)
    return PolicyResult(
        id=first.id, hyperparameters=first.hyperparameters, rounds=first.rounds, seconds=seconds, **arrays
    )


def _policy_summary(outcome: PolicyResult) -> dict[str, Any]:
    mean, low, high = outcome.band()
    last = {
        name: float(getattr(outcome, name)[:, -1].mean())
        for name in ("pareto_regret", "optimal_share", "preference_error", "overall")
    }
    summary: dict[str, Any] = plain(
        {
            "id": outcome.id,
            "hyperparameters": dict(outcome.hyperparameters),
            "final_regret": summarize(outcome.final_regret)._asdict() | {"trials": outcome.final_regret.tolist()},
            "final_pareto_regret": last.pop("pareto_regret"),
            **last,
            "rounds": outcome.rounds.tolist(),
            "mean_regret": mean.tolist(),
            "low_regret": low.tolist(),
            "high_regret": high.tolist(),
            "decisions_per_second": round(outcome.decisions_per_second),
        }
    )
    return summary
