"""Trials on a GPU are the processor's: run by CUDA's simulator, which needs no GPU, in a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest

from pamo import InputError, environments, simulate

SIMULATED = """
import sys

import numpy as np

from pamo import environments, simulate
from pamo.simulation import cuda

local, nothing = cuda.LOCAL, dict.fromkeys(cuda.LOCAL, 0)
cases = [
    ("prucb-hp", environments.Gaussian(users=3, block_size=4, objectives=3, newcomers=1, arrival=5), local, 2),
    ("prucb-up", environments.Bounded(users=2, block_size=3, objectives=2, protocol="rotate"), nothing, 99),
    ("prucb-hp-v:bias=true", environments.Gaussian(users=2, block_size=3, objectives=2, protocol="all"), local, 99),
    ("ucb-per-user", environments.conflict(preference_variance=0.1), local, 99),
]
for policy, environment, cuda.LOCAL, cuda.WAVE in cases:
    run = {"rounds": 30, "trials": 3, "first_trial": 2, "seed": 5, "checkpoints": [10]}
    here, there = (
        simulate([policy], environment, device=device, **run)[policy.split(":")[0]] for device in ("cpu", "cuda")
    )
    for name in ("regret_by_user", "pareto_regret", "overall", "optimal_share", "preference_error", "pulls"):
        one, other = getattr(here, name), getattr(there, name)
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9, err_msg=f"{policy}: {name}")
    print(policy)
"""


@pytest.fixture(scope="module")
def simulated() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SIMULATED],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_gpu_plays_the_trials_of_the_processor(simulated: subprocess.CompletedProcess[str]) -> None:
    """In local tables and in the GPU's memory, in waves, for each protocol, with newcomers, and with a shared prior."""
    assert simulated.returncode == 0, simulated.stderr
    assert simulated.stdout.split() == ["prucb-hp", "prucb-up", "prucb-hp-v:bias=true", "ucb-per-user"]


def test_a_missing_gpu_gets_a_sentence() -> None:
    missing = importlib.util.find_spec("numba_cuda") is None
    expected = "pip install 'pamo\\[cuda\\]'" if missing else "needs an NVIDIA GPU and its driver"
    try:
        result = simulate(["prucb-hp"], environments.Gaussian(), rounds=2, trials=1, device="cuda")
    except Exception as error:  # an error that says what is missing, and no other
        with pytest.raises(Exception, match=expected):
            raise error
    else:
        assert len(result["prucb-hp"].final_regret) == 1  # there is a GPU


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"device": "gpu"}, "unknown device 'gpu'"),
        ({"device": "cuda", "precision": "half"}, "unknown precision 'half'"),
        ({"precision": "single"}, "expected precision 'double' on the device 'cpu'"),
    ],
)
def test_a_wrong_device_or_precision_gets_a_sentence(chosen: dict[str, str], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        simulate(["prucb-hp"], environments.Gaussian(), rounds=2, trials=1, **chosen)  # type: ignore[arg-type]
