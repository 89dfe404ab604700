"""The report of a reproduction: one self-contained HTML page, a Markdown summary and the same as JSON.

All three are made from the studies' records alone, so they can be made again without running anything.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pamo._version import __version__
from pamo.errors import PamoError
from pamo.experiments.study import Verdict
from pamo.plain import to_json

Record = Mapping[str, Any]

_SIGNS = {str(Verdict.CONFIRMED): "✓", str(Verdict.PARTLY): "◐", str(Verdict.NOT): "✗", str(Verdict.CANNOT): "–"}
_CLASSES = {
    str(Verdict.CONFIRMED): "yes",
    str(Verdict.PARTLY): "partly",
    str(Verdict.NOT): "no",
    str(Verdict.CANNOT): "untold",
}
_GROUPS = {
    str(Verdict.CONFIRMED): "What holds",
    str(Verdict.PARTLY): "What holds in part",
    str(Verdict.NOT): "What does not hold",
    str(Verdict.CANNOT): "What cannot be told",
}
_PAPER = "Provably Efficient Multi-Objective Bandit Algorithms under Preference-Centric Customization"
_INTRODUCTION = (
    "Every study of the paper, run again from code written for this purpose (the paper has published none). Each claim "
    "is judged by a rule that was fixed in code and is printed beside it, with what would have refuted the claim; "
    "nothing here is typed in by hand. A claim that nothing within reach could refute is not called confirmed: it "
    "cannot fail here. Claims marked “ours” are not in the paper: they test what it leaves out."
)

_STYLE = "\n" + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def write_report(records: Sequence[Record], output: Path) -> Path:
    """Write report.html, summary.md and summary.json from the studies' records; return the page's path."""
    try:
        for name, text in (
            ("summary.json", to_json(summary(records), indent=1) + "\n"),
            ("summary.md", markdown(records)),
            ("report.html", html(records, output)),
        ):
            (output / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PamoError(f"the report could not be written to {output}: {error}") from error
    return output / "report.html"


def summary(records: Sequence[Record]) -> dict[str, Any]:
    """Return every study with its claims, verdicts and figures, as plain values."""
    return {
        "paper": _PAPER,
        "version": __version__,
        "seconds": round(sum(record["seconds"] for record in records), 1),
        "studies": [dict(record) for record in records],
    }


def verdict_table(records: Sequence[Record]) -> str:
    """Return the verdicts as lines of text: what the command prints at its end.

    >>> claim = {"id": "c", "claim": "x", "verdict": "confirmed", "seen": "y", "ours": True}
    >>> print(verdict_table([{"name": "toy", "claims": [claim]}]))
    study        verdict            claim
    toy          ✓ confirmed        c (ours)
    """
    lines = [f"{'study':<13}{'verdict':<19}claim"]
    for record in records:
        for claim in record["claims"]:
            verdict = f"{_SIGNS[claim['verdict']]} {claim['verdict']}"
            mark = " (ours)" if claim["ours"] else ""
            lines.append(f"{record['name']:<13}{verdict:<19}{claim['id']}{mark}")
    return "\n".join(lines)


def markdown(records: Sequence[Record]) -> str:
    """Return the summary as Markdown."""
    lines = [f"# The paper, reproduced\n\n*{_PAPER}* (AAAI 2026), by pamo {__version__}. {_counts(records)}"]
    for title, verdict, found in _grouped(records):
        lines.append(f"\n## {title} ({len(found)})\n\n| claim | study | {verdict}: what we saw |\n|---|---|---|")
        for record, claim in found:
            mark = " *(ours)*" if claim["ours"] else ""
            cells = (claim["claim"] + mark, f"`{record['name']}`", claim["seen"])
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines.append(f"\n{_INTRODUCTION}")
    for record in records:
        lines.append(f"\n## {record['title']} (`{record['name']}`)\n\n{record['about']}\n")
        lines.append(f"Source: {record['source']}. Seed {record['seed']}, {record['seconds']:.1f} s.\n")
        for drawing in record["drawings"]:
            lines.append(f"![{drawing['alt']}]({record['name']}/{drawing['id']}.png)\n")
        for claim in record["claims"]:
            lines.append(
                f"- **{claim['verdict']}** – {claim['claim']} {claim['seen']} *Rule:* {claim['rule']} *Would have "
                f"refuted it:* {claim['refuted_by']}"
            )
    return "\n".join(lines) + "\n"


def html(records: Sequence[Record], output: Path) -> str:
    """Return the page, with every figure inside it."""
    seconds = sum(record["seconds"] for record in records)
    seeds = ", ".join(sorted({str(record["seed"]) for record in records}))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>The paper, reproduced by pamo</title><style>{_STYLE}</style></head><body>",
        "<header><h1>The paper, reproduced</h1>",
        f"<p><cite>{escape(_PAPER)}</cite> (AAAI 2026), by pamo {__version__}, seed {seeds}, "
        f"{seconds:,.0f} seconds of computing. {_counts(records)}</p>{_size(records)}</header><main>",
        _verdicts(records),
        f"<p>{escape(_INTRODUCTION)}</p>",
        *(_study(record, output) for record in records),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _badge(claim: Record) -> str:
    verdict = claim["verdict"]
    return f"<span class='verdict {_CLASSES[verdict]}'>{_SIGNS[verdict]} {escape(verdict)}</span>"


def _mark(claim: Record) -> str:
    return " <span class='tag'>ours</span>" if claim["ours"] else ""


def _wide(title: str, table: str, kind: str = "wide") -> str:
    """Return something wide in a box that scrolls by itself."""
    return f"<div class='{kind}' tabindex='0' role='region' aria-label='{title}'>{table}</div>"


def _size(records: Sequence[Record]) -> str:
    small = [record["name"] for record in records if record["quick"]]
    if not small:
        return ""
    return (
        f"<p><strong class='partly'>A quick run:</strong> {', '.join(small)} at a small size, to see that it works. "
        "The verdicts are those of so few rounds and trials, not of the paper's.</p>"
    )


def _grouped(records: Sequence[Record]) -> list[tuple[str, str, list[tuple[Record, Record]]]]:
    """Return (title, verdict, claims with their studies), what holds first, then what does not, then what cannot be
    told; in each the paper's own claims first. What no claim is in is left out.
    """
    groups = []
    for verdict, title in _GROUPS.items():
        found = [(record, claim) for record in records for claim in record["claims"] if claim["verdict"] == verdict]
        if found:
            groups.append((title, verdict, sorted(found, key=lambda pair: bool(pair[1]["ours"]))))
    return groups


def _counts(records: Sequence[Record]) -> str:
    """Say in a sentence how many claims there are, and what became of them."""
    groups = _grouped(records)
    parts = [f"{len(found)} {verdict}" for _, verdict, found in groups]
    return f"Of {sum(len(found) for *_, found in groups)} claims: {', '.join(parts)}."


def _verdicts(records: Sequence[Record]) -> str:
    """Return all verdicts, group by group."""
    parts = []
    for title, verdict, found in _grouped(records):
        rows = "".join(
            f"<li class='{_CLASSES[verdict]}'>{_SIGNS[verdict]} {escape(claim['claim'])}{_mark(claim)} "
            f"<a href='#{record['name']}'>{record['name']}</a><details><summary>What we saw</summary>"
            f"<p>{escape(claim['seen'])}</p></details></li>"
            for record, claim in found
        )
        parts.append(f"<h3>{title} ({len(found)})</h3><ul class='verdicts'>{rows}</ul>")
    return f"<section id='verdicts'><h2>What became of the claims</h2>{''.join(parts)}</section>"


def _study(record: Record, output: Path) -> str:
    claims = "".join(_claim(claim) for claim in record["claims"])
    figures = "".join(_figure(record, drawing, output) for drawing in record["drawings"])
    settings = escape(json.dumps(record["settings"], ensure_ascii=False, indent=1))
    return (
        f"<section id='{record['name']}'><h2>{escape(record['title'])} <code>{record['name']}</code></h2>"
        f"<p>{escape(record['about'])}</p><p class='soft'>In the paper: {escape(record['source'])}.</p>"
        f"{claims}{figures}<details><summary>Settings and seed</summary><p class='soft'>Seed {record['seed']}; "
        f"{record['seconds']:.1f} seconds; pamo {record['version']}.</p><pre>{settings}</pre></details></section>"
    )


def _claim(claim: Record) -> str:
    return (
        f"<div class='claim {_CLASSES[claim['verdict']]}'><p>{_badge(claim)}{_mark(claim)}</p>"
        f"<p><strong>Claim:</strong> {escape(claim['claim'])} "
        f"<span class='soft'>({escape(claim['source'])})</span></p>"
        f"<p><strong>Seen:</strong> {escape(claim['seen'])}</p><p class='soft'>Rule: {escape(claim['rule'])}</p>"
        f"<p class='soft'>Would have refuted it: {escape(claim['refuted_by'])}</p></div>"
    )


def _figure(record: Record, drawing: Record, output: Path) -> str:
    data = base64.b64encode((output / record["name"] / f"{drawing['id']}.svg").read_bytes()).decode()
    title, alt = escape(drawing["title"]), escape(drawing["alt"], quote=True)
    image = f"<img alt=\"{alt}\" src='data:image/svg+xml;base64,{data}'>"
    return (
        f"<figure id='{drawing['id']}'><figcaption>{title}</figcaption>{_wide(f'Figure: {title}', image, 'wide plot')}"
        f"<details><summary>The same as a table</summary>{_table(drawing['table'], drawing['title'])}</details>"
        "</figure>"
    )


def _table(table: Record, title: str) -> str:
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in table["columns"])
    rows = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in table["rows"])
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return _wide(f"Table: {escape(title)}", whole)


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"<td class='number'>{value:,}</td>"
    return f"<td>{escape(str(value))}</td>"
