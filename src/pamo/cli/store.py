"""The command `store`: look into a store, compare it with its journal, and carry journals about."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pamo.cli.options import Parser, add_command, check_target
from pamo.errors import DamagedError, InputError
from pamo.progress import Bar, waiting

if TYPE_CHECKING:
    from pamo.store.base import Reader
    from pamo.store.maintenance import Overview

_SHOWN = 20
"""Differences that are printed one by one."""

_STORE = """\
STORE is the path of a SQLite file (pamo.db) or a PostgreSQL address (postgresql://user@host/database). None of these
commands begins a store that is not there, but `restore`, whose target has to be new, and `import` and `migrate`, whose
target has to be new or empty.

A password in an address can be read by others on the same machine, in the list of processes: keep it in ~/.pgpass or in
the variable PGPASSWORD. What these commands print never shows it.
"""

_HELP = f"""\
examples:
  pamo store show pamo.db                               what is in it
  pamo store verify pamo.db                             are its sums what its journal adds up to?
  pamo store backup pamo.db monday.db                   a verified copy, while the service runs
  pamo store restore monday.db pamo.db                  the store as it was then
  pamo store export pamo.db backup.parquet              the whole journal as one file, a row an event
  pamo store export pamo.db decisions.csv --decisions   a row a decision, for other tools
  pamo store import backup.parquet again.db             a new store from it
  pamo store migrate pamo.db postgresql://ann@db/pamo   from one machine to many workers

{_STORE}
`pamo store COMMAND --help` says more of each.
"""

_SHOW_HELP = """\
examples:
  pamo store show pamo.db
  pamo store show postgresql://ann@db/pamo --format json

Users are those who gave feedback; pending are decisions that have none, the expired ones among them. It may be run
while a service uses the store.
"""

_VERIFY_HELP = """\
examples:
  pamo store verify pamo.db
  pamo store verify postgresql://ann@db/pamo && echo all is well

Checks that every event is what was recorded, and that none is missing, by the checksums of SQLite's journal. Folds the
journal from its first event and compares the sums of every arm and every user, the arms' names and states, and the
number of pending decisions with those of the store; in SQLite, first has the database check its own file. Changes
nothing. A SQLite store has to be stopped for it; PostgreSQL's workers may go on.

exit code: 0 all is equal, 1 something differs (it is listed; `pamo store rebuild` sets the sums right, and `pamo store
restore` brings back a journal), 2 it could not be done.
"""

_REBUILD_HELP = """\
examples:
  pamo store rebuild pamo.db
  pamo store rebuild pamo.db --adopt-damage

Throws away the sums (and SQLite's snapshot), folds the journal, which is the truth, and keeps the new ones. In
PostgreSQL workers wait meanwhile.

A SQLite journal that is damaged, or that lacks events which it had, is refused: bring back a backup. With
--adopt-damage what is left of it becomes the truth, as it is; events that cannot be read are dropped. Each is logged.
"""

_BACKUP_HELP = """\
examples:
  pamo store backup pamo.db monday.db
  pamo store backup pamo.db "/backup/pamo-$(date +%F).db"

Copies a SQLite store as it is at one moment, while a service uses it: nobody waits. The copy is read back and verified
before it gets its name; a file of that name is not replaced. It is a store like any other. Users who are erased later
are still in it: look after copies, and erase them again after a restore. PostgreSQL has pg_dump for this.
"""

_RESTORE_HELP = """\
examples:
  pamo store restore monday.db pamo.db

FILE is what `pamo store backup` wrote, and stays as it is. STORE must not be there: move away what is left of a damaged
one first, its log (-wal) too. What is brought back is verified before it gets its name.
"""

_EXPORT_HELP = """\
examples:
  pamo store export pamo.db backup.parquet
  pamo store export postgresql://ann@db/pamo "journal-$(date +%F).parquet"
  pamo store export pamo.db decisions.parquet --decisions
  pamo store export pamo.db october.csv --decisions --since 2026-10-01 --until 2026-11-01

Writes every event as a row: sequence, kind, decision, user, key and body (JSON), which `pamo store import` reads.

With --decisions, a row a decision, as tools for tables want it: time, decision, user, place, arm, offer, propensity,
policy, a score for each objective, overall and feedback_time. A decision for several arms has a row for each, and place
counts them. The offer is empty where that was all active arms; in CSV there is | between its arms. `pamo evaluate`
reads such a file as well.

It may be run while a service uses the store: nobody waits, and the file has what had been recorded when it began. A
file of that name is replaced once the new one is whole. Copies do not follow when a user is erased: look after them.
"""

_IMPORT_HELP = """\
examples:
  pamo store import backup.parquet again.db
  pamo store import backup.parquet postgresql://ann@db/pamo
  pamo store import --ratings stays.csv pamo.db --objective "price: 0..500, lower is better" \\
                    --objective "taste: 1..5" --overall "overall: 1..5" --item hotel

FILE is what `pamo store export` wrote. The store has to be new or empty; if this fails it is again as it was.

With --ratings, FILE is a table, .csv or .parquet, of ratings from before: a row a rating, with a column for the user,
one for the item, which becomes an arm, and one for each objective and the overall score, any of which may be empty.
What they say is learned at once. In the journal they are decisions by the policy `history`, which nobody made:
`pamo evaluate` leaves them out.
"""

_MIGRATE_HELP = """\
examples:
  pamo store migrate pamo.db postgresql://ann@db/pamo
  pamo store migrate postgresql://ann@db/pamo local.db

Carries the journal over as it is, ids and times too, and folds it there. FROM stays as it was; stop what writes to it
first, since what is recorded meanwhile is not carried over. TO has to be new or empty; if this fails it is again as it
was.
"""


def add_store(commands: Any) -> None:
    """Add `pamo store`."""
    parser: Any = add_command(
        commands,
        "store",
        lambda options: parser.print_help() or 0,
        help="look into a store, verify, rebuild, back up, restore, export, import and migrate it",
        about="Look after a store: a journal of decisions and feedback, and the sums that are its fold.",
        examples=_HELP,
    )
    parts = parser.add_subparsers(title="commands", metavar="COMMAND", help="what to do with it")

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, examples: str) -> Parser:
        about = f"{help[0].upper()}{help[1:]}."
        return add_command(parts, name, _quietly(run), help=help, about=about, examples=examples)

    show = add("show", _show, "what a store holds: objectives, counts, size, last event", _SHOW_HELP)
    _add_address(show, "store", "STORE", "the store to look into")
    show.add_argument("--format", choices=("table", "json"), default="table", help="of stdout (default: table)")
    verify = add("verify", _verify, "fold the journal anew and compare it with the sums", _VERIFY_HELP)
    _add_address(verify, "store", "STORE", "the store to verify")
    rebuild = add("rebuild", _rebuild, "throw the sums away and fold the journal again", _REBUILD_HELP)
    _add_address(rebuild, "store", "STORE", "the store to rebuild")
    rebuild.add_argument("--adopt-damage", action="store_true", help="go on with what is left of a damaged journal")
    backup = add("backup", _backup, "copy a store to a file while it is used, and verify the copy", _BACKUP_HELP)
    _add_address(backup, "source", "STORE", "the store to back up")
    backup.add_argument("target", metavar="FILE", help="the file to write")
    restore = add("restore", _backup, "bring back a store that was backed up", _RESTORE_HELP)
    restore.add_argument("source", metavar="FILE", help="the backup")
    restore.add_argument("target", metavar="STORE", help="the store to bring back: a path")
    export = add("export", _export, "write the journal, or its decisions as a table, to a file", _EXPORT_HELP)
    _add_address(export, "store", "STORE", "the store to export")
    export.add_argument("file", metavar="FILE", help="the file to write: .parquet; with --decisions also .csv")
    export.add_argument("--decisions", action="store_true", help="a row a decision, with what came of it")
    for name, text in (("since", "decisions from then on"), ("until", "decisions before then")):
        export.add_argument(f"--{name}", metavar="TIME", help=f"{text}: 2026-10-01 or 2026-10-01T12:30+02:00 (or UTC)")
    import_ = add("import", _import, "begin a store with an exported journal, or with ratings", _IMPORT_HELP)
    import_.add_argument("file", metavar="FILE", help="the file to read: .parquet; with --ratings also .csv")
    _add_address(import_, "store", "STORE", "the store to begin")
    import_.add_argument("--ratings", action="store_true", help="FILE is a table of ratings")
    import_.add_argument(
        "--objective", action="append", default=[], metavar="TEXT", help="such as 'taste: 1..5'; a column each"
    )
    import_.add_argument("--overall", default="overall", metavar="TEXT", help="the same, of the overall score")
    for name in ("user", "item"):
        import_.add_argument(f"--{name}", default=name, metavar="NAME", help=f"its column (default: {name})")
    migrate = add("migrate", _migrate, "begin a store with the journal of another", _MIGRATE_HELP)
    _add_address(migrate, "source", "FROM", "the store that there is")
    _add_address(migrate, "target", "TO", "the store to begin")


def _add_address(parser: argparse.ArgumentParser, name: str, shown: str, text: str) -> None:
    parser.add_argument(name, metavar=shown, help=f"{text}: a path or postgresql://…")


def _quietly(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Return a command whose errors name no password."""

    def run(options: argparse.Namespace) -> int:
        from pamo.store.addresses import without_passwords

        given = [getattr(options, name) for name in ("store", "source", "target") if hasattr(options, name)]
        with without_passwords(*given):
            return command(options)

    return run


# The commands. What they need of a store is imported when they run: the command line starts without it.


def _shown(address: str) -> str:
    from pamo.store.addresses import shown

    return shown(address)


def _read(address: str, *, alone: bool = True, sums: bool = True) -> Reader:
    from pamo.store.addresses import open_reader

    return open_reader(address, alone=alone, sums=sums)


def _bar(name: str, source: Reader) -> AbstractContextManager[Bar]:
    return Bar(name, total=sum(source.kinds().values()))


def _show(options: argparse.Namespace) -> int:
    from pamo.store.addresses import kind_of
    from pamo.store.maintenance import overview

    with _read(options.store, alone=False) as store:
        found = overview(store)
    address, kind = _shown(options.store), kind_of(options.store).name
    if options.format == "json":
        print(json.dumps(_document(address, kind, found), ensure_ascii=False, allow_nan=False))
    else:
        print(_table(address, kind, found))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from pamo.store.maintenance import verify

    name = _shown(options.store)
    wrong: list[str] = []
    try:
        with _read(options.store) as store:
            with waiting("checking the file"):
                wrong = [f"SQLite: {line}" for text in store.damage() for line in text.splitlines()]
            with _bar("verify", store) as bar:
                report = verify(store, progress=bar.advance)
    except DamagedError as error:  # of a damaged file not even all events can be read
        _print_differences(name, [*wrong, str(error)])
        print("the journal cannot be read to its end: bring back a backup of it, or import an export")
        return 1
    if report.ok and not wrong:
        print(
            f"{name}: {report.events:,} events folded anew; compared {report.arms:,} arms, {report.users:,} users "
            "and the pending decisions"
        )
        intact = ", and SQLite finds its file intact" if store.inspects else ""
        print(f"all sums are the journal's{intact}")
        if report.unsealed:
            print(f"{report.unsealed:,} events are from before there were checksums: changes to those cannot be told")
        return 0
    _print_differences(name, [*wrong, *report.damage, *report.differences])
    if report.damage:
        print(
            "the journal is damaged: keep a copy of the files, and bring back a backup (`pamo store restore`), or go "
            f"on with what is left of it (`pamo store rebuild {name} --adopt-damage`)"
        )
    elif report.differences:
        print(f"the journal is the truth: `pamo store rebuild {name}` sets the sums right")
    if wrong:
        print("the file is damaged: keep a copy of it, then bring back a backup, or import an export into a new one")
    return 1


def _print_differences(name: str, wrong: list[str]) -> None:
    print(f"{name}: {len(wrong):,} difference{'s' if len(wrong) > 1 else ''}")
    for sentence in wrong[:_SHOWN]:
        print(f"  {sentence}")
    if len(wrong) > _SHOWN:
        print(f"  … and {len(wrong) - _SHOWN:,} more")


def _rebuild(options: argparse.Namespace) -> int:
    from pamo.store.addresses import open_existing

    with waiting("rebuild"), open_existing(options.store, adopt_damage=options.adopt_damage) as store:
        store.rebuild()
        store.snapshot()
        arms, users = len(store.arms().ids), store.count_users()
    print(f"{_shown(options.store)}: folded anew, {arms:,} arms and {users:,} users")
    return 0


def _backup(options: argparse.Namespace) -> int:
    from pamo.store.addresses import is_postgres
    from pamo.store.maintenance import backup

    if is_postgres(options.target):
        raise InputError(f"expected the path of a file to copy to, got {_shown(options.target)}")
    with waiting("copying"):
        count = backup(options.source, options.target)
    print(f"{options.target}: {count:,} events of {_shown(options.source)}, verified")
    return 0


def _export(options: argparse.Namespace) -> int:
    from pamo.store.maintenance import export

    check_target("FILE", options.file, (".parquet", ".csv") if options.decisions else (".parquet",))
    times = _times(options)
    with _read(options.store, alone=False, sums=False) as store, Bar("export", total=store.end()) as bar:
        if options.decisions:
            from pamo.store.decisions_table import export_decisions

            count, rows = export_decisions(store, options.file, progress=bar.advance, **times)
            what = f"{count:,} decisions" + (f" in {rows:,} rows" if rows > count else "")
        else:
            what = f"{export(store, options.file, progress=bar.advance):,} events"
    print(f"{options.file}: {what} of {_shown(options.store)}")
    return 0


def _times(options: argparse.Namespace) -> dict[str, float]:
    """Return the times that were given, in seconds since 1970."""
    found: dict[str, float] = {}
    for name in ("since", "until"):
        given = getattr(options, name)
        if given is None:
            continue
        if not options.decisions:
            raise InputError(f"expected --{name} only with --decisions: a journal is carried about as a whole")
        try:
            at = datetime.fromisoformat(given)
        except ValueError:
            raise InputError(f"expected --{name} like 2026-10-01 or 2026-10-01T12:30, got {given!r}") from None
        found[name] = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if len(found) == 2 and found["since"] >= found["until"]:
        raise InputError(f"expected --since before --until, got {options.since} and {options.until}")
    return found


def _import(options: argparse.Namespace) -> int:
    from pamo.store.maintenance import exported_events, import_

    if options.ratings:
        return _import_ratings(options)
    if options.objective:
        raise InputError("expected --objective only with --ratings: a journal says itself what its objectives are")
    if Path(options.file).suffix != ".parquet":
        raise InputError(f"expected FILE to end in .parquet, and then the store, got {options.file!r}")
    if not Path(options.file).exists():
        raise InputError(f"there is no file {options.file}: give one that `pamo store export` wrote")
    if options.store.endswith(".parquet"):
        raise InputError(f"expected the store to begin after FILE, got another file: {options.store!r}")
    with Bar("import", total=exported_events(options.file)) as bar:
        count = import_(options.file, options.store, progress=bar.advance)
    print(f"{_shown(options.store)}: begun with {count:,} events of {options.file}")
    return 0


def _import_ratings(options: argparse.Namespace) -> int:
    from pamo.contract.objectives import objectives
    from pamo.store.history import import_ratings

    if not options.objective:
        raise InputError("expected --objective for each column with scores, such as --objective 'taste: 1..5'")
    (overall,) = objectives([options.overall])
    names = {name: getattr(options, name) for name in ("user", "item")}
    with Bar("import") as bar:
        taken, left, items = import_ratings(
            options.file, options.store, objectives(options.objective), overall=overall, at=time.time(), **names
        )
        bar.advance(1.0)
    said = f"; {left:,} rows without a user, an item or a score left out" if left else ""
    print(f"{_shown(options.store)}: begun with {taken:,} ratings of {items:,} items{said}")
    return 0


def _migrate(options: argparse.Namespace) -> int:
    from pamo.store.maintenance import migrate

    names = options.source, options.target
    if len({name if "://" in name else str(Path(name).resolve()) for name in names}) == 1:
        raise InputError(f"expected two stores, got {_shown(options.source)} twice")
    with _read(options.source) as source, _bar("migrate", source) as bar:
        count = migrate(source, options.target, progress=bar.advance)
    print(f"{_shown(options.target)}: begun with {count:,} events of {_shown(options.source)}")
    return 0


# What is printed


def _document(address: str, kind: str, found: Overview) -> dict[str, Any]:
    return {
        "store": address,
        "kind": kind.lower(),
        "format": found.format,
        "objectives": [asdict(one) for one in found.objectives],
        "overall": asdict(found.overall),
        "arms": {"active": found.active_arms, "retired": found.retired_arms},
        "users": found.users,
        "events": {"total": found.events, **found.kinds},
        "decisions": found.decisions,
        "feedbacks": found.feedbacks,
        "pending": found.pending,
        "bytes": {"total": sum(found.sizes.values()), **found.sizes},
        "last_event": _time(found.last_at),
    }


def _table(address: str, kind: str, found: Overview) -> str:
    from pamo.store.setups import scale

    objectives = [scale(one) for one in found.objectives]
    sizes = ", ".join(f"{name} {_bytes(size)}" for name, size in found.sizes.items() if size)
    rows = [
        ("store", f"{address} ({kind}, format {found.format})"),
        ("objectives", objectives[0]),
        *(("", text) for text in objectives[1:]),
        ("overall", scale(found.overall)),
        ("arms", f"{found.active_arms:,} active, {found.retired_arms:,} retired"),
        ("users", f"{found.users:,}"),
        ("events", f"{found.events:,}: {found.decisions:,} decisions, {found.feedbacks:,} feedbacks"),
        ("pending", f"{found.pending:,}"),
        ("on disk", f"{_bytes(sum(found.sizes.values()))} ({sizes})"),
        ("last event", _time(found.last_at) or "none yet"),
    ]
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def _bytes(size: int) -> str:
    number, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"


def _time(at: float | None) -> str | None:
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):  # whoever wrote it had a clock of their own
        return f"{at:g} s"
