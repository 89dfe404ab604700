"""What a release needs: one version everywhere, a citation that can be read, and a list of what is inside."""

from __future__ import annotations

import re
import tomllib

import yaml

from pamo import __version__
from scripts import sbom, smoke
from tests.documents import ROOT


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(cited["version"]) == __version__
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    (paper,) = cited["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Cao", "Shi", "Shroff"]


def test_the_list_of_parts_is_whole_and_pinned() -> None:
    document = sbom.document()
    parts = {one["name"]: one for one in document["components"]}
    # One that every extra needs, one of each extra, and one that only a part of a part needs.
    assert {"numpy", "numba", "matplotlib", "pyarrow", "apsw", "psycopg", "uvicorn", "httpx", "llvmlite"} <= set(parts)
    assert "pytest" not in parts
    for name, part in parts.items():
        assert part["hashes"], f"{name} {part['version']} is not pinned"
        assert part["licenses"], name
        assert part["purl"] == f"pkg:pypi/{name}@{part['version']}"
    refs = {one["bom-ref"] for one in parts.values()} | {"pypi:pamo"}
    assert {one["ref"] for one in document["dependencies"]} == refs
    assert all(set(one["dependsOn"]) <= refs for one in document["dependencies"])
    assert "pypi:llvmlite" in next(one for one in document["dependencies"] if one["ref"] == "pypi:numba")["dependsOn"]


def test_every_extra_is_tried_in_a_clean_environment() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(smoke.USES) - {""} == set(project["optional-dependencies"]) - {"docs", "cuda"}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^pip install '?pamo(?:\[(\w+)\])?", readme, re.MULTILINE)
    assert set(shown) <= set(smoke.USES) | {"cuda"}
