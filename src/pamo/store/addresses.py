"""Addresses of stores: which kind each names, how it is opened, and how it is shown without its password."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from pamo.errors import InputError, PamoError
from pamo.store.base import EXPIRES_AFTER, Reader, Setup, Store

HIDDEN = "…"
_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&]*)", re.IGNORECASE)


class Kind(NamedTuple):
    """A kind of store: one row of `KINDS`. Its classes are imported when one is opened, and not before.

    pattern: what its addresses match. written: how a sentence writes such an address. store: a module and its class.
    reader: those of what reads it and changes nothing; None where nothing is left to be read once the process is gone.
    """

    name: str
    pattern: str
    written: str
    store: str
    reader: str | None

    def load(self, name: str) -> Any:
        """Return the class of that name."""
        module, _, found = name.partition(":")
        return getattr(import_module(f"pamo.store.{module}"), found)


KINDS = (
    Kind("memory", "memory:", "memory:", "memory:MemoryStore", None),
    Kind("SQLite", "(?!.*://|:?memory:).+", "the path of a file", "sqlite:SqliteStore", "sqlite:SqliteReader"),
    Kind(
        "PostgreSQL",
        "postgres(ql)?://.*",
        "postgresql://…",
        "postgres:PostgresStore",
        "postgres_reading:PostgresReader",
    ),
)


def kind_of(address: str | Path, *, lasting: bool = False) -> Kind:
    """Return the kind of store that an address names; lasting: only one that outlives its process.

    >>> kind_of("postgresql://localhost/pamo").name, kind_of("pamo.db").name
    ('PostgreSQL', 'SQLite')
    """
    text = str(address)
    found = next((kind for kind in KINDS if re.fullmatch(kind.pattern, text, re.DOTALL)), None)
    written = [kind.written for kind in KINDS if kind.reader or not lasting]
    choice = f"{', '.join(written[:-1])} or {written[-1]}"
    if found is None:
        hint = ": a store in memory is memory:, and a file of such a name is ./" + text if "memory:" in text else ""
        raise InputError(f"expected {choice} as a store's address, got {shown(text)!r}{hint}")
    if lasting and found.reader is None:
        raise InputError(f"a store in {found.name} is gone with its process: give {choice}")
    return found


def is_postgres(address: str | Path) -> bool:
    """Tell whether an address names a PostgreSQL database."""
    return str(address).startswith(("postgresql://", "postgres://"))


def file_of(address: str | Path) -> Path:
    """Return the path that an address names; raise `InputError` where it is not one of a file."""
    kind_of(address, lasting=True)
    return Path(address)


def open_store(address: str | Path, setup: Setup | None = None, *, expires_after: float = EXPIRES_AFTER) -> Store:
    """Open the store at an address, or begin it there with the objectives of `setup`.

    address: "memory:", the path of a SQLite file, or "postgresql://…". setup: needed for a new store; for an
    old one it may be given, and must be the same. expires_after: seconds for which a decision takes feedback.

    >>> from pamo.store import Objective, Setup
    >>> with open_store("memory:", Setup((Objective("taste", 1, 5),))) as store:
    ...     store.pending()
    0
    """
    kind = kind_of(address)
    store: type[Store] = kind.load(kind.store)
    return store.at(str(address), setup, expires_after)


def open_reader(address: str | Path, *, alone: bool = True, sums: bool = True) -> Reader:
    """Open the store at an address to read it; one that is not there is an `InputError`, and is not begun.

    alone: whether to keep other processes from a SQLite store meanwhile; if one has it, that is an `InUseError`.
    Without it, be quick: meanwhile the process that writes cannot shorten its log. PostgreSQL needs no such care.
    sums: whether these are wanted as well; who only wants the journal folds nothing, and need not be quick.
    """
    kind = kind_of(address, lasting=True)
    reader: type[Reader] = kind.load(kind.reader or "")
    return reader.of(str(address), alone=alone, sums=sums)


def open_existing(address: str | Path, *, adopt_damage: bool = False) -> Store:
    """Open the store at an address to work on it; one that is not there is an `InputError`, and is not begun.

    adopt_damage: whether to go on with what is left where some of the journal is damaged or missing.
    """
    if adopt_damage:
        kind = kind_of(address, lasting=True)
        store: type[Store] = kind.load(kind.store)
        return store.adopting(str(address))
    open_reader(address).close()
    return open_store(address)


@contextlib.contextmanager
def begun(address: str | Path, setup: Setup) -> Iterator[Store]:
    """Yield the store at an address, begun where there is none; that one is gone again if the block fails."""
    kind = kind_of(address, lasting=True)
    store: type[Store] = kind.load(kind.store)
    with store.begun(str(address), setup) as new:
        yield new


def shown(address: str | Path) -> str:
    """Return an address as it may be printed.

    >>> shown("postgresql://ann:secret@db.example/pamo?sslmode=require")
    'postgresql://ann:…@db.example/pamo?sslmode=require'
    """
    text = str(address)
    if "://" not in text:  # a path; of other databases' addresses, given by mistake, the password is hidden as well
        return text
    scheme, _, rest = text.partition("://")
    before, at, after = rest.rpartition("@")  # the last one: some forget to write theirs as %40
    user, colon, password = before.partition(":")
    hidden = f"{user}:{HIDDEN}" if colon and password else before
    return _QUERY.sub(rf"\1{HIDDEN}", f"{scheme}://{hidden}{at}{after}")


def scrubbed(text: str, *addresses: str | Path) -> str:
    """Return a text without the passwords of these addresses, nor what a database may take for other parts of them.

    >>> scrubbed('no host "me@db"', "postgresql://ann:sesa@me@db/pamo")
    'no host "…db"'
    """
    for secret in sorted({secret for address in addresses for secret in _secrets(str(address))}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


@contextlib.contextmanager
def without_passwords(*addresses: str | Path) -> Iterator[None]:
    """Take the passwords of these addresses out of what errors say."""
    try:
        yield
    except PamoError as error:
        sentence = scrubbed(str(error), *addresses)
        if sentence == str(error):
            raise
        raise type(error)(sentence) from None


def _secrets(address: str) -> Iterator[str]:
    _, separator, rest = address.partition("://")
    if not separator:
        return
    passwords = [rest.rpartition("@")[0].partition(":")[2], *(found[2] for found in _QUERY.finditer(address))]
    for password in passwords:
        # One that was not quoted falls to pieces when the address is read, and an error shows one of them.
        for piece in (password, *re.split(r"[@/?#:]", password)):
            for spelt in (piece, unquote(piece)):
                if len(spelt) > 2:  # shorter ones would be taken out of every word
                    yield spelt
        for place in (found.end() for found in re.finditer("@", password)):
            yield f"{password[place:]}@"  # where the host is taken to begin
