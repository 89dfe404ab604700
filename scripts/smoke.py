"""Install the wheel into clean environments, by pip and by uv, with each extra, and use what was installed.

Usage: python scripts/smoke.py [--installer pip|uv] [--extra NAME …] [--python COMMAND]

Without options every extra but cuda, by both installers. Each environment is made anew in a temporary folder; nothing
of this clone is on its path.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = ROOT / "scripts" / "uv"
USES = {
    "": "import pamo; print(pamo.recommended().label)",
    "plot": "import matplotlib, pamo.simulation.plot",
    "results": "import pyarrow.parquet, pamo.simulation.files",
    "sqlite": "from pamo.store import open_store, Setup; import apsw",
    "postgres": "import psycopg, pamo.store.postgres",
    "server": "from pamo.service import create_app; import uvicorn",
    "client": "from pamo.client import Client; print(Client('http://127.0.0.1:8000'))",
    "gym": "import gymnasium, pamo.loops.gym",
    "ray": "from pamo.experiments.cluster import require_ray; require_ray()",
    "all": "from pamo import Client, Engine; from pamo.service import create_app",
}
"""What has to work with each extra."""


def main() -> int:
    """Build the wheel and try it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installer", choices=("pip", "uv"), action="append", help="default: both")
    parser.add_argument("--extra", choices=[*filter(None, USES), "none"], action="append", help="default: all of them")
    parser.add_argument("--python", default=sys.executable, help="of the environments; default: the one that runs this")
    options = parser.parse_args()
    extras = ["" if one == "none" else one for one in options.extra or ["none", *filter(None, USES)]]
    with tempfile.TemporaryDirectory(prefix="pamo-smoke-") as name:
        folder = Path(name)
        _run([options.python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
        (wheel,) = folder.glob("pamo-*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        for installer in options.installer or ("pip", "uv"):
            for extra in extras:
                began = time.monotonic()
                _try(folder / f"{installer}-{extra or 'core'}", installer, extra, wheel, options.python)
                print(f"{installer} {extra or 'core':9} works ({time.monotonic() - began:.0f} s)", flush=True)
    return 0


def _try(environment: Path, installer: str, extra: str, wheel: Path, command: str) -> None:
    wanted = f"pamo[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    python = environment / "bin" / "python"
    if installer == "pip":
        _run([command, "-m", "venv", str(environment)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted])
    else:
        _run([str(UV), "venv", "--quiet", "--python", command, str(environment)])
        _run([str(UV), "pip", "install", "--quiet", "--python", str(python), wanted])
    told = _run([str(environment / "bin" / "pamo"), "--version", "--verbose"], cwd=environment)
    _run([str(environment / "bin" / "pamo"), "policies"], cwd=environment)
    _run([str(python), "-c", USES[extra]], cwd=environment)
    listed = told.split("extras: ")[1].splitlines()[0]
    if extra not in ("", "all") and extra not in listed.split(", "):
        raise SystemExit(f"pamo[{extra}] was installed by {installer}, and pamo has these extras: {listed}")


def _run(command: list[str], cwd: Path | None = None) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PAMO_"))}
    done = subprocess.run(command, check=False, cwd=cwd, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
