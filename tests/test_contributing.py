"""CONTRIBUTING's walks, walked: its blocks are applied to a copy of the package, and the copy is run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pamo
from tests.documents import CONTRIBUTING, blocks


def walk(heading: str) -> str:
    """Return the section of CONTRIBUTING.md under this heading."""
    sections = re.split(r"^## ", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (section for section in sections if section.startswith(heading))
    return section


def new_file(section: str) -> tuple[str, str]:
    """Return the path that the section names before its first Python block, and the block."""
    before, _, rest = section.partition("```python\n")
    names = re.findall(r"`(src/pamo/\w+/\w+\.py)`", before)
    return names[-1], rest.partition("```")[0]


def apply_diff(section: str, root: Path) -> str:
    """Apply the section's diff block to the files under root: context must be there, and in that order."""
    found = re.search(r"```diff\n--- (\S+)\n(.*?)```", section, re.DOTALL)
    assert found is not None
    target = root / found[1]
    lines, place = target.read_text(encoding="utf-8").splitlines(), 0
    for entry in found[2].splitlines():
        sign, text = entry[0], entry[1:]
        if sign == "+":
            lines.insert(place, text)
            place += 1
        else:
            assert text in lines[place:], f"{found[1]} has no line {text!r} where CONTRIBUTING says"
            place = lines.index(text, place)
            if sign == "-":
                del lines[place]
            else:
                place += 1
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found[1]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with CONTRIBUTING's policy and environment added, and nothing else changed."""
    root = tmp_path_factory.mktemp("clone")
    shutil.copytree(Path(pamo.__file__).parent, root / "src" / "pamo", ignore=shutil.ignore_patterns("__pycache__"))
    for heading in ("Add a policy", "Add an environment"):
        section = walk(heading)
        name, text = new_file(section)
        assert not (root / name).exists()
        (root / name).write_text(text, encoding="utf-8")
        changed = apply_diff(section, root)
        assert changed.endswith("registry.py")
    return root


def run(clone: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        check=False,
        cwd=clone,
        env=environment | {"PYTHONPATH": str(clone / "src"), "PYTHONIOENCODING": "utf-8"},
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_new_policy_is_listed_and_runs_in_the_new_environment(clone):
    rows = json.loads(run(clone, "-m", "pamo", "policies", "--family", "baselines", "--format", "json"))
    assert rows[-1]["id"] == "least-pulled"
    assert rows[-1]["formula"] == "−Nᵢ"
    arguments = ["--policy", "least-pulled", "--environment", "uniform", "--rounds", "50", "--trials", "2"]
    document = json.loads(run(clone, "-m", "pamo", "simulate", *arguments, "--format", "json"))
    assert document["settings"]["environment"]["id"] == "uniform"
    assert document["policies"]["least-pulled"]["final_regret"]["mean"] > 0.0
    # 2 users × 50 rounds spread evenly over 10 arms: 10 pulls each, give or take the last rounds.
    program = (
        "from pamo import environments, simulate\n"
        "result = simulate(['least-pulled'], environments.create('uniform'), rounds=50, trials=2)\n"
        "print(result['least-pulled'].pulls.min(), result['least-pulled'].pulls.max())"
    )
    low, high = map(int, run(clone, "-c", program).split())
    assert (low, high) == (10, 10)


def test_the_new_policy_gets_its_golden(clone):
    """`python -m tests.goldens`, cut down to the new policy and to what is compiled by now."""
    (clone / "tests").mkdir(exist_ok=True)
    for name in ("__init__.py", "goldens.py"):
        shutil.copy(CONTRIBUTING.parent / "tests" / name, clone / "tests")
    program = (
        "from pamo import policies\n"
        "from tests import goldens\n"
        "policies.available = lambda: ('least-pulled',)\n"
        "del goldens.ENVIRONMENTS['bounded']\n"
        "goldens.main()"
    )
    assert "changed least-pulled" in run(clone, "-c", program)
    kept = json.loads((clone / "tests" / "goldens.json").read_text(encoding="utf-8"))
    assert len(kept["least-pulled"]["gaussian"]) == 3


def test_the_examples_in_the_new_files_docstrings_are_right(clone):
    for heading in ("Add a policy", "Add an environment"):
        name, _ = new_file(walk(heading))
        module = name.removeprefix("src/").removesuffix(".py").replace("/", ".")
        program = f"import doctest, {module}; print(doctest.testmod({module}))"
        assert run(clone, "-c", program) == "TestResults(failed=0, attempted=1)\n"


def test_the_new_files_pass_the_checks(clone):
    """The walk's code is held to what the package's own is."""
    config = CONTRIBUTING.parent / "pyproject.toml"
    files = [new_file(walk(heading))[0] for heading in ("Add a policy", "Add an environment")]
    changed = ["src/pamo/policies/registry.py", "src/pamo/environments/registry.py"]
    run(clone, "-m", "ruff", "check", "--no-cache", "--config", str(config), *files, *changed)
    run(clone, "-m", "ruff", "format", "--no-cache", "--config", str(config), "--check", *files, *changed)


def test_the_walks_use_up_every_code_block_of_the_page():
    """A block that is in no walk would be shown and not run."""
    shown = list(blocks(CONTRIBUTING, "python"))
    assert [block.text for block in shown] == [
        new_file(walk(heading))[1] for heading in ("Add a policy", "Add an environment")
    ]


def test_the_map_of_the_house_shows_every_room():
    (picture,) = re.findall(r"```text\n(.*?)```", walk("The house"), re.DOTALL)
    rooms = {path.stem for path in Path(pamo.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    for room in rooms - {"__init__", "__pycache__"}:
        assert re.search(rf"\b{room}\b", picture), f"{room} is not on the map"
