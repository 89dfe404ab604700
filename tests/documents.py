"""What the documents show is made from what the program does: `python -m tests.documents` writes it anew.

- README.md and docs/: below each `$ pamo …` in a console block, what that command prints;
- README.md, between the regret marks: the table of final regrets, from the command above it;
- docs/policies.md, from the registry;
- docs/serve.md, between the settings marks: the table of all settings;
- docs/which-policy.md, between the suite's marks, with `--suite`, since that takes minutes: what `pamo compare` found.

tests/test_docs.py checks that the documents are what this would write.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pamo import policies
from pamo.cli import main
from pamo.experiments.suites import SUITES, rounds_of
from pamo.service import settings_file

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
POLICIES_PAGE = ROOT / "docs" / "policies.md"
SERVE_PAGE = ROOT / "docs" / "serve.md"
WHICH_PAGE = ROOT / "docs" / "which-policy.md"
SETTINGS = ("<!-- settings: written by python -m tests.documents -->\n", "<!-- end of settings -->\n")
SUITE = ("<!-- suite: written by python -m tests.documents --suite -->\n", "<!-- end of suite -->\n")
REGRET = ("<!-- regret: written by python -m tests.documents -->\n", "<!-- end of regret -->\n")


class Block(NamedTuple):
    """A fenced block of a page: its language, its text, and where the text is."""

    page: Path
    language: str
    text: str
    start: int
    end: int

    def __repr__(self) -> str:
        line = self.page.read_text(encoding="utf-8")[: self.start].count("\n") + 1
        return f"{self.page.relative_to(ROOT)}:{line}"


class Command(NamedTuple):
    """A command line of a page, without its `$`, and what the page says that it prints."""

    line: str
    output: str


def pages() -> list[Path]:
    """Return every page with blocks that run."""
    built = ROOT / "docs" / "_build"
    docs = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not path.is_relative_to(built)]
    return [README, CONTRIBUTING, *docs]


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yield the page's fenced blocks in these languages."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if found[1] in languages:
            yield Block(page, found[1], found[2], found.start(2), found.end(2))


def commands(block: Block) -> list[Command]:
    """Return the command lines of a block: after `$ ` with output below (console), or bare (sh)."""
    text = block.text.replace("\\\n", " ")
    if block.language == "sh":
        return [Command(line, "") for line in text.splitlines() if line and not line.startswith("#")]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [Command(line, output) for line, _, output in (part.partition("\n") for part in parts)]


def run_pamo(line: str, folder: Path, **replaced: str) -> str:
    """Run a `pamo …` line in this folder, beside our examples; `trials="40"` stands in for its `--trials`."""
    arguments = shlex.split(line, comments=True)
    assert arguments[0] == "pamo", line
    for option, value in replaced.items():
        arguments[arguments.index(f"--{option}") + 1] = value
    target = None
    if ">" in arguments:
        target = folder / arguments[arguments.index(">") + 1]
        arguments = arguments[: arguments.index(">")]
    examples = folder / "examples"
    if not examples.exists():
        examples.symlink_to(ROOT / "examples")
    printed, errors, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            code = main(arguments[1:])
    finally:
        os.chdir(before)
    assert code == 0, f"{line}: exit code {code}: {errors.getvalue()}"
    if target is None:
        return printed.getvalue()
    target.write_text(printed.getvalue(), encoding="utf-8")
    return ""


def regret_command() -> str:
    """Return the command above the README's table of regrets."""
    above = README.read_text(encoding="utf-8").index(REGRET[0])
    block = [block for block in blocks(README, "sh") if block.end < above][-1]
    (command,) = commands(block)
    return command.line


def regret_rows(document: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """Return (policy, mean, low, high) of a JSON document of `pamo simulate`, the lowest first."""
    finals = {name: outcome["final_regret"] for name, outcome in document["policies"].items()}
    return sorted(((name, f["mean"], f["low"], f["high"]) for name, f in finals.items()), key=lambda row: row[1])


def regret_table(document: dict[str, Any]) -> str:
    """Return the README's table of regrets."""
    lines = ["| policy | mean final regret | 95 % interval | learns from |", "|---|---:|---:|---|"]
    for name, mean, low, high in regret_rows(document):
        reads = ", ".join(policies.REGISTRY[name].reads)
        lines.append(f"| `{name}` | {mean:.0f} | {low:.0f} … {high:.0f} | {reads} |")
    return "\n".join(lines) + "\n"


def suite_tables(document: dict[str, Any]) -> str:
    """Return the tables of docs/which-policy.md from the JSON document of `pamo compare`."""
    lines: list[str] = []
    for part in SUITES["regret"]:
        if part.name != "hidden":
            lines += ["", f"**{part.title[0].upper()}{part.title[1:]}** ({rounds_of(part, 5000):,} rounds)"]
        for setting in part.settings:
            rows = [row for row in document["parts"][part.name] if row["setting"] == setting]
            places = 0 if rows[0]["mean"] > 10 else 2
            lines += ["", f"{setting}:", "", "| policy | mean | median | 90 % | 99 % | share | over bound |"]
            lines.append("|---|---:|---:|---:|---:|---:|---:|")
            for row in sorted(rows, key=lambda row: float(row["mean"])):
                figures = " | ".join(f"{row[name]:,.{places}f}" for name in ("mean", "median", "p90", "p99"))
                bound = "–" if row["over_bound"] is None or part.name == "newcomers" else f"{row['over_bound']:.1f}"
                lines.append(f"| `{row['policy']}` | {figures} | {row['share']:.3f} | {bound} |")
    lines += ["", "**What is asked of the recommended policies**", "", "| | seen | at most |", "|---|---:|---:|"]
    lines += [f"| {line['what']} | {line['seen']:.3g} | {line['most']:.3g} |" for line in document["asked"]]
    return "\n".join(lines) + "\n"


def write_suite(folder: Path) -> None:
    """Write the tables of docs/which-policy.md anew."""
    document = json.loads(run_pamo("pamo compare --format json", folder))
    _write_between(WHICH_PAGE, SUITE, suite_tables(document))


def _write_between(page: Path, marks: tuple[str, str], shown: str) -> None:
    text = page.read_text(encoding="utf-8")
    start, end = text.index(marks[0]) + len(marks[0]), text.index(marks[1])
    page.write_text(text[:start] + "\n" + shown.lstrip("\n") + "\n" + text[end:], encoding="utf-8")


def policies_page() -> str:
    """Return docs/policies.md."""
    parts = [
        "# Policies\n\n"
        "What `pamo policies` prints, as a page. It is written from the registry by `python -m tests.documents`.\n\n"
        "Symbols are those of [the notation](notation.md). The arm of the highest score is pulled, one of them at "
        "random where several\nare the highest. Give hyperparameters on the command line after a colon "
        '(`--policy oful:epsilon=0.1`) or from Python\n(`policies.create("oful", epsilon=0.1)`).\n'
    ]
    for cls in policies.REGISTRY.values():
        settings = ", ".join(f"`{name}={value}`" for name, value in cls().settings.items()) or "none"
        parts.append(
            f"## {cls.id}\n\n{cls.summary[0].upper()}{cls.summary[1:]}.\n\n"
            f"- score: `{cls.formula}`\n"
            f"- reads: {', '.join(cls.reads)}\n"
            f"- hyperparameters: {settings}\n"
            f"- reference: {cls.reference}\n"
        )
    return "\n".join(parts)


def write_outputs(page: Path, folder: Path) -> None:
    """Write below each console command of a page what it prints."""
    text = page.read_text(encoding="utf-8")
    for block in reversed(list(blocks(page, "console"))):
        shown = block.text
        for command in commands(block):
            if command.line.startswith("pamo ") and command.output:
                shown = shown.replace(command.output, run_pamo(command.line, folder), 1)
        text = text[: block.start] + shown + text[block.end :]
    page.write_text(text, encoding="utf-8")


def write_all(folder: Path) -> None:
    """Write everything that is made, running its commands in this folder."""
    POLICIES_PAGE.write_text(policies_page(), encoding="utf-8")
    _write_between(SERVE_PAGE, SETTINGS, settings_file.table())
    for page in pages():
        write_outputs(page, folder)
    document = json.loads(run_pamo(f"{regret_command()} --format json", folder))
    _write_between(README, REGRET, regret_table(document))


if __name__ == "__main__":
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        if "--suite" in sys.argv[1:]:
            write_suite(Path(made))
            print("written: docs/which-policy.md")
        else:
            write_all(Path(made))
            print("written: README.md, docs/policies.md, docs/serve.md, and the console blocks of all pages")
