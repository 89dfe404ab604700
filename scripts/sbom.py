"""Write what pamo is made of, as a CycloneDX document: every package that an extra brings in, pinned and with hashes.

Usage: python scripts/sbom.py FILE

The packages are those of pamo[all] as they are installed here; their hashes are those of requirements/dev.txt, all of
them, since each system has a file of its own. The same packages give the same file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pamo._version import __version__

ROOT = Path(__file__).parents[1]
_NAME = re.compile(r"^([\w.-]+)(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)['\"]")


def document() -> dict[str, Any]:
    """Return the whole document as plain values."""
    needed = dict(_needed())
    packages = {name: metadata.distribution(name) for name in sorted(needed) if name != "pamo"}
    hashes = _hashes()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_component("pamo", __version__), "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [
            {**_component(name, found.version), **_licence(found), **_listed(hashes.get((name, found.version), []))}
            for name, found in packages.items()
        ],
        "dependencies": [
            {"ref": _ref(name), "dependsOn": sorted(_ref(one) for one in depends)}
            for name, depends in sorted(needed.items())
        ],
    }


def _needed() -> Iterator[tuple[str, set[str]]]:
    """Yield the packages that pamo[all] brings in, each with those that it needs itself."""
    waiting, seen = [("pamo", frozenset({"all"}))], dict[str, set[str]]()
    asked = dict[str, set[str]]()
    while waiting:
        name, extras = waiting.pop()
        before = asked.setdefault(name, set())
        if name in seen and extras <= before:
            continue
        before |= extras
        needs = seen.setdefault(name, set())
        for line in metadata.requires(name) or ():
            extra = _EXTRA.search(line)
            if extra is not None and extra[1] not in before:
                continue
            found = _NAME.match(line)
            assert found is not None, line
            package = _plain(found[1])
            if not _is_installed(package):
                continue  # of another system or Python
            if package != name:
                needs.add(package)
            waiting.append((package, frozenset(_plain(one) for one in (found[2] or "").split(",") if one)))
    yield from seen.items()


def _hashes() -> dict[tuple[str, str], list[str]]:
    text = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        pinned = re.match(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", line)
        if pinned is not None:
            found[_plain(pinned[1]), pinned[2]] = sorted(re.findall(r"sha256:([0-9a-f]{64})", line))
    return found


def _listed(hashes: list[str]) -> dict[str, Any]:
    return {"hashes": [{"alg": "SHA-256", "content": one} for one in hashes]} if hashes else {}


def _licence(found: metadata.Distribution) -> dict[str, Any]:
    about = found.metadata
    if "License-Expression" in about:
        return {"licenses": [{"expression": about["License-Expression"]}]}
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    words = kinds or [line for line in "\n".join(about.get_all("License") or ()).splitlines()[:1] if line]
    return {"licenses": [{"license": {"name": word}} for word in words]} if words else {}


def _component(name: str, version: str) -> dict[str, str]:
    return {
        "type": "library",
        "bom-ref": _ref(name),
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
    }


def _ref(name: str) -> str:
    return f"pypi:{name}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")
    print(f"{len(document()['components'])} packages are in {target}")
