"""Our environments and policies in other people's loops: the simulator's trials, draw for draw."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from pamo import InputError, environments, policies, simulate
from pamo.environments import Environment
from pamo.loops.gym import Bandit, VectorBandit
from pamo.loops.scalar import ForOpenBandit, ForRiver
from pamo.simulation.stepping import Player

ROUNDS, SEED, TRIAL = 45, 4, 2
LATE = environments.Gaussian(users=3, block_size=2, objectives=2, newcomers=1, arrival=7)
WIDE = environments.Bounded(users=2, block_size=3, objectives=2, protocol="all")
LIVE = environments.Gaussian(
    users=3, block_size=2, objectives=2, arms=7, protocol="subset", changes_every=9, changing_arms=0.5
)
KINDS = ["prucb-hp", "prucb-up", "prucb-kp", "prucb-hp-v", "prts", "ucb-per-user", "exp3", "sw-pareto-ucb"]
"""Of each way to learn one: by ridges, by what is stated, by the truth, with priors, alone, with rows of its own."""


def stepped(policy: str, environment: Environment) -> float:
    """Return the regret of a policy that is played through Gymnasium."""
    env = VectorBandit(environment, rounds=ROUNDS)
    seen, _ = env.reset(seed=SEED, options={"trial": TRIAL})
    known = env.episode.preferences
    player = Player(policies.parse(policy), environment, rounds=ROUNDS, known=known, seed=SEED, trial=TRIAL)
    regret, over = 0.0, False
    while not over:
        arm = player.choose(int(seen["user"]), seen["offer"])
        seen, reward, _, over, info = env.step(seen["offer"].tolist().index(arm))
        player.learn(info["user"], info["arm"], reward, info["overall"], info["stated"])
        regret += info["regret"]
    return regret


@pytest.mark.parametrize("policy", KINDS)
def test_a_policy_stepped_through_gymnasium_has_the_simulators_regret(policy: str) -> None:
    for environment in (LATE, WIDE, LIVE):
        run: dict[str, Any] = {"rounds": ROUNDS, "trials": 1, "first_trial": TRIAL, "seed": SEED}
        (outcome,) = simulate([policy], environment, **run).values()
        assert stepped(policy, environment) == pytest.approx(float(outcome.final_regret[0]), rel=1e-12)


@pytest.mark.parametrize("policy", [*KINDS, "prucb-hp-v:bias=True"])
def test_users_in_any_order_are_learned_of_at_once(policy: str) -> None:
    """As by rounds of one pull each; and a copy goes on alone."""
    draw, known = np.random.default_rng(2), np.full((9, 2), 0.5)
    sizes: Any = {"users": 9, "arms": 7, "objectives": 2}
    within = environments.Gaussian(users=9, block_size=7, arms=7, objectives=2, protocol="all")
    live = Player.of(policy, **sizes, rounds=120, known=known, seed=3)
    slow = Player(policies.parse(policy), within, rounds=120, known=known, seed=3)
    for pull in range(120):
        user, offer = int(draw.integers(9)), None if pull % 3 else np.sort(draw.permutation(7)[:4])
        arm = live.choose(user, offer)
        assert arm == slow.choose(user, range(7) if offer is None else offer)
        told: Any = (user, arm, draw.random(2), draw.random(), draw.random(2))
        live.learn(*told)
        slow.learn(*told)
        slow._end_round()
        live = copy.deepcopy(live) if pull == 50 else pickle.loads(pickle.dumps(live)) if pull == 80 else live
    for name in ("arms", "sums", "common", "read", "rows", "stated", "priors", "by_arm", "by_user", "shared"):
        assert live._tables[name].tobytes() == slow._tables[name].tobytes(), name
    assert live.round == slow.round == 121


@pytest.mark.parametrize("name", ["gaussian", "bounded"])
@pytest.mark.filterwarnings("ignore:.*WARN.*")  # that a space has no bounds, and that it says nothing of rendering
def test_gymnasiums_checker_passes(name: str) -> None:
    check_env(gymnasium.make(f"pamo/{name}-v0").unwrapped, skip_render_check=True)


@pytest.mark.filterwarnings("ignore:.*WARN.*")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pygame, which comes along
def test_mo_gymnasiums_wrapper_makes_one_reward_and_passes_the_checker_too() -> None:
    mo_gymnasium: Any = importlib.import_module("mo_gymnasium")  # which says nothing of its names' types
    env = mo_gymnasium.make("pamo/gaussian-mo-v0", rounds=3, users=2, objectives=4)
    env.reset(seed=1)
    _, reward, *_ = env.step(0)
    assert env.unwrapped.reward_space.contains(reward)
    assert reward.shape == (env.unwrapped.reward_dim,)
    weight = np.full(4, 0.25)
    linear = mo_gymnasium.wrappers.LinearReward(env, weight=weight)
    linear.reset(seed=1)
    _, scalar, *_ = linear.step(0)
    assert scalar == pytest.approx(float(weight @ reward))

    class Fresh(mo_gymnasium.wrappers.LinearReward):  # type: ignore[misc]
        """As it is, but for the weights that it hands out each time: the checker refuses one object in two infos."""

        def step(self, action: Any) -> Any:
            *given, info = super().step(action)
            return *given, info | {"reward_weights": info["reward_weights"].copy()}

    check_env(Fresh(VectorBandit("bounded")), skip_render_check=True)


def test_an_episode_is_cut_copied_and_kept() -> None:
    env = Bandit("gaussian", users=2, rounds=2)
    env.reset(seed=1)
    env.step(0)
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    ends = [[each.step(0)[1:4] for _ in range(3)] for each in (env, *others)]
    assert ends[0] == ends[1] == ends[2]
    assert [over for _, _, over in ends[0]] == [False, False, True]
    with pytest.raises(InputError, match="`reset` before"):
        Bandit("gaussian").step(0)


@pytest.mark.parametrize("loop", ["river", "open bandit"])
def test_a_policy_alone_finds_the_best_arm(loop: str) -> None:
    generator, chosen = np.random.default_rng(3), []
    river, pipeline = ForRiver("ucb", arms=3).clone(), ForOpenBandit("ucb", arms=3)
    pipeline.initialize()
    for _ in range(400):
        arm = river.pull(["a", "b", "c"]) if loop == "river" else "abc"[int(pipeline.select_action()[0])]
        reward = {"a": 0.1, "b": 1.9, "c": 0.4}[arm] + generator.normal(0.0, 0.2)
        if loop == "river":
            river.update(arm, reward)
        else:
            pipeline.update_params(action="abc".index(arm), reward=reward)
        chosen.append(arm)
    assert chosen[-200:].count("b") > 180


def test_what_a_loop_does_not_tell_gets_a_sentence() -> None:
    policy = ForRiver("greedy", arms=2, objectives=2)
    with pytest.raises(InputError, match="overall=… beside a reward of 2 objectives"):
        policy.update("tea", [0.4, 0.2])
    policy.update("tea", [0.4, 0.2], overall=0.5)
    policy.update("coffee", [0.4, 0.2], overall=0.5)
    with pytest.raises(InputError, match="'milk' is more"):
        policy.pull(["tea", "coffee", "milk"])
    with pytest.raises(InputError, match="known="):
        Player(policies.create("prucb-kp"), LATE)
    with pytest.raises(InputError, match="stated="):
        Player(policies.create("prucb-up"), LATE).learn(0, 0, [0.1, 0.2], 0.3)
    with pytest.raises(InputError, match="expected a reward of 2 objectives, got 1"):
        Player(policies.create("ucb"), LATE).learn(0, 0, [0.1], 0.3)
    player = Player.of("prucb-up", users=3, arms=4, objectives=2)
    for user in (-1, 3):
        with pytest.raises(InputError, match=f"a user from 0 to 2, got {user}"):
            player.choose(user)
        with pytest.raises(InputError, match=f"a user from 0 to 2, got {user}"):
            player.learn(user, 0, [0.1, 0.2], 0.3, [0.5, 0.5])
    for offer in ([], [0, 4], [-1]):
        with pytest.raises(InputError, match="arms from 0 to 3, at least one"):
            player.choose(0, offer)
    with pytest.raises(InputError, match=r"arms from 0 to 3, at least one, got \[4\]"):
        player.learn(0, 4, [0.1, 0.2], 0.3, [0.5, 0.5])


@pytest.mark.parametrize(
    ("reward", "overall"),
    [([0.1, float("nan")], 0.3), ([0.1, 0.2], float("inf")), ("much", 0.3), ([0.1, 0.2], None)],
)
def test_a_player_takes_nothing_in_that_is_no_number(reward: Any, overall: Any) -> None:
    player = Player.of("recommended", users=3, arms=4, objectives=2)
    player.learn(1, 2, [0.1, 0.2], 0.3)
    before = player.__getstate__()
    with pytest.raises(InputError, match="finite numbers as reward and overall score"):
        player.learn(1, 2, reward, overall)
    assert repr(player.__getstate__()) == repr(before)


def test_users_and_arms_of_a_player_are_numbers_and_preferences_finite() -> None:
    player = Player.of("prucb-up", users=3, arms=4, objectives=2)
    for user in ("ann", 1.5, None):
        with pytest.raises(InputError, match=r"a user from 0 to 2, got ('ann'|1\.5|None)"):
            player.choose(user)  # type: ignore[arg-type]
    for offer in (["a"], [0.5]):
        with pytest.raises(InputError, match="arms from 0 to 3, at least one"):
            player.choose(0, offer)
    with pytest.raises(InputError, match="arms from 0 to 3, at least one"):
        player.learn(0, "a", [0.1, 0.2], 0.3, [0.5, 0.5])  # type: ignore[arg-type]
    for stated in ([0.5], [0.5, float("nan")], "much"):
        with pytest.raises(InputError, match="a stated preference of 2 finite weights"):
            player.learn(0, 1, [0.1, 0.2], 0.3, stated)
    player.learn(np.int64(0), np.int64(1), [0.1, 0.2], 0.3, [0.5, 0.5])  # type: ignore[arg-type]
    assert player.choose(np.int64(0)) in range(4)  # type: ignore[arg-type]


def test_a_player_takes_offers_and_rewards_however_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code looks at arrays of its kind where they lie; others, and all where it knows none, are copied."""
    draw, sizes = np.random.default_rng(3), {"users": 3, "arms": 6, "objectives": 3}
    known, unknown = Player.of("prucb-hp", **sizes), copy.deepcopy(Player.of("prucb-hp", **sizes))
    monkeypatch.setattr("pamo.simulation.alone.known_arrays", lambda: (0, 0, 0))
    blind = pickle.loads(pickle.dumps(unknown))
    forms: list[Any] = [
        lambda line: line,
        lambda line: line.tolist(),
        lambda line: np.repeat(line, 2)[::2],
        lambda line: line.astype(np.float32).astype(line.dtype) if line.dtype.kind == "f" else line.astype(np.int16),
        lambda line: line.view(type("Own", (np.ndarray,), {})),
        lambda line: line.astype(line.dtype.newbyteorder()),
        lambda line: np.frombuffer(b"." + line.tobytes(), np.uint8)[1:].view(line.dtype),
        tuple,
    ]
    for form in forms * 5:
        reward, offer = draw.random(3).astype(np.float32).astype(float), np.sort(draw.permutation(6)[:4])
        arms = {player.choose(1, form(offer)) for player in (known, blind)} | {unknown.choose(1, offer)}
        assert len(arms) == 1
        (arm,), score = arms, np.float64(draw.random())
        for player in (known, blind):
            player.learn(1, arm, form(reward), score)
        unknown.learn(1, arm, reward, float(score))
    for name in ("arms", "sums", "read"):
        tables = [player._tables[name].tobytes() for player in (known, unknown, blind)]
        assert tables[0] == tables[1] == tables[2], name


def test_a_player_says_what_is_wrong_with_numbers_that_are_too_large_and_offers_that_are_too_long() -> None:
    player = Player.of("ucb", users=3, arms=4, objectives=2)
    for user in (2**70, -(2**62), -(2**63) - 1):
        with pytest.raises(InputError, match=f"a user from 0 to 2, got {user}"):
            player.choose(user)
        with pytest.raises(InputError, match=f"a user from 0 to 2, got {user}"):
            player.choose(user, [1, 2])
        with pytest.raises(InputError, match=f"a user from 0 to 2, got {user}"):
            player.learn(user, 0, np.zeros(2), 0.3)
    with pytest.raises(InputError, match=f"arms from 0 to 3, at least one, got .{2**70}"):
        player.learn(0, 2**70, np.zeros(2), 0.3)
    for offer in ([2**70], [2**63], [0, 1, 2, 3] * 5, np.arange(4).repeat(9), [[0, 1]], np.empty(0, dtype=int)):
        with pytest.raises(InputError, match="arms from 0 to 3, at least one"):
            player.choose(0, offer)
    with pytest.raises(InputError, match="finite numbers as reward and overall score"):
        player.learn(0, 0, np.zeros(2), 10**400)
    with pytest.raises(InputError, match="a reward of 2 objectives, got 3"):
        player.learn(0, 0, np.zeros(3), 0.3)
    assert player.round == 1
