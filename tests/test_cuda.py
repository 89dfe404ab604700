"""Trials on a GPU are the processor's: run by CUDA's simulator, which needs no GPU, in a process of its own."""

import importlib.util
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from pamo import InputError, environments, simulate
from tests.uncompiled import CASES, RECORDED, play


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What CUDA's simulator recorded of each case."""
    found = tmp_path_factory.mktemp("cuda") / "found.npz"
    done = subprocess.run(
        [sys.executable, "-m", "tests.uncompiled", str(found)],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return np.load(found)


@pytest.mark.parametrize("case", CASES)
def test_a_gpu_plays_the_trials_of_the_processor(case: str, simulated: Any) -> None:
    here = play(case, "cpu")
    for name in RECORDED:
        there = simulated[f"{case}/{name}"]
        np.testing.assert_allclose(there, getattr(here, name), rtol=1e-9, atol=1e-9, err_msg=name)


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
