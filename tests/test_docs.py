"""The documents' code blocks and commands run, and print what the documents say that they print."""

import doctest
import json
import math
import re
import runpy
from pathlib import Path

import pytest

from pamo import policies
from tests import documents
from tests.documents import README, ROOT, Block, blocks, commands, pages, run_pamo

# Neither speed nor the last digits are the document's to promise: another processor rounds otherwise.
TOLERANCE = 0.05
SPEED = re.compile(r" +[\d.]+ M$", re.MULTILINE)

PYTHON = [block for page in pages() for block in blocks(page, "python")]
COMMANDS = [block for page in pages() for block in blocks(page, "console", "sh")]


def assert_alike(shown: str, printed: str) -> None:
    """Check two outputs line by line: the same words, and numbers within the tolerance."""
    ours, theirs = (SPEED.sub("", text).strip().splitlines() for text in (shown, printed))
    assert len(ours) == len(theirs), f"the document shows\n{shown}\nand the command prints\n{printed}"
    for left, right in zip(ours, theirs, strict=True):
        for word, other in zip(left.split(), right.split(), strict=True):
            try:
                numbers = float(word.rstrip("%")), float(other.rstrip("%"))
            except ValueError:
                assert word == other, f"the document shows {left!r} and the command prints {right!r}"
            else:
                assert math.isclose(*numbers, rel_tol=TOLERANCE, abs_tol=0.02), f"{left!r} is now {right!r}"


@pytest.mark.parametrize("block", PYTHON, ids=repr)
def test_python_blocks_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if block.text.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.text, {}, repr(block), str(block.page), 0)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        results = doctest.DocTestRunner(optionflags=flags).run(test)
        assert results.attempted > 0
        assert results.failed == 0
    else:
        script = tmp_path / "block.py"
        script.write_text(block.text, encoding="utf-8")
        runpy.run_path(str(script), run_name="block")


@pytest.mark.parametrize("block", COMMANDS, ids=repr)
def test_pamo_commands_run_and_print_what_is_shown(block: Block, tmp_path: Path) -> None:
    for command in commands(block):
        if not command.line.startswith("pamo "):
            continue  # make, pip and python: the tests' own ground
        if command.line == documents.regret_command():
            continue  # below, with fewer trials
        if "--device cuda" in command.line:
            continue  # tests/test_cuda.py
        printed = run_pamo(command.line, tmp_path)
        if command.output:
            assert_alike(command.output, printed)


def test_the_commands_are_found() -> None:
    lines = [command.line for block in COMMANDS for command in commands(block)]
    assert sum(line.startswith("pamo simulate") for line in lines) >= 5
    assert "make run" in " ".join(lines)
    assert "make test" in " ".join(lines)
    shown = [command for block in COMMANDS for command in commands(block) if command.output]
    assert len(shown) >= 3


def test_the_readmes_table_of_regrets_is_what_its_command_gives(tmp_path: Path) -> None:
    """A tenth of the trials: the shown means lie within four standard errors of theirs."""
    text = README.read_text(encoding="utf-8")
    table = text[text.index(documents.REGRET[0]) : text.index(documents.REGRET[1])]
    shown = {row[0]: float(row[1]) for row in re.findall(r"^\| `(\S+)` \| (\d+) \|", table, re.MULTILINE)}
    assert set(shown) <= set(policies.available())
    assert len(shown) >= 12
    assert list(shown.values()) == sorted(shown.values())
    document = json.loads(run_pamo(f"{documents.regret_command()} --format json", tmp_path, trials="40"))
    for name, outcome in document["policies"].items():
        final = outcome["final_regret"]
        assert shown[name] == pytest.approx(final["mean"], abs=4.0 * final["sd"] / math.sqrt(40)), name


def test_the_policies_page_is_what_the_registry_gives() -> None:
    page = documents.POLICIES_PAGE.read_text(encoding="utf-8")
    assert page == documents.policies_page(), "run: python -m tests.documents"


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    for name in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", text):
        planned = page.name == "CONTRIBUTING.md" and name in (
            "src/pamo/policies/least_pulled.py",
            "src/pamo/environments/uniform.py",
        )
        built = name.startswith("docs/_build")
        assert planned or built or (ROOT / name).exists(), f"{page.name} names {name}"


def test_every_row_of_the_notation_names_something_that_exists() -> None:
    """The last column names files of the package; the third names of that code."""
    page = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "pamo").rglob("*.py"))
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and not line.startswith("| paper")]
    assert len(rows) > 30
    for row in rows:
        *_, names, where = row
        for path in re.findall(r"`([\w/.]+)`", where):
            assert (ROOT / "src" / "pamo" / path).exists(), f"{path} of {row}"
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", names):
            assert re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", source), f"{name} of {row}"


def test_each_decision_is_short_and_has_its_number() -> None:
    found = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert len(found) >= 10
    for number, page in enumerate(found, start=1):
        text = page.read_text(encoding="utf-8")
        assert page.name.startswith(f"{number:04}-")
        assert text.startswith(f"# {number}. ")
        assert "**Choice.**" in text
        assert len(text.split()) < 400
