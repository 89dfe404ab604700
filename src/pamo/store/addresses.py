"""Addresses of stores: which kind they name, and how they are shown without their passwords."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from pamo.errors import InputError, PamoError

HIDDEN = "…"
_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&]*)", re.IGNORECASE)


def is_postgres(address: str | Path) -> bool:
    """Tell whether an address names a PostgreSQL database.

    >>> is_postgres("postgresql://localhost/pamo"), is_postgres("pamo.db")
    (True, False)
    """
    return str(address).startswith(("postgresql://", "postgres://"))


def file_of(address: str | Path) -> Path:
    """Return the path that an address names; raise `InputError` where it is not one of a file."""
    text = str(address)
    if text == "memory:":
        raise InputError("a store in memory is gone with its process: give the path of a SQLite file or postgresql://…")
    if "://" in text or not text:
        raise InputError(f"expected the path of a SQLite file or postgresql://… as a store's address, got {text!r}")
    return Path(text)


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
    if not is_postgres(address):
        return
    _, _, rest = address.partition("://")
    passwords = [rest.rpartition("@")[0].partition(":")[2], *(found[2] for found in _QUERY.finditer(address))]
    for password in passwords:
        # One that was not quoted falls to pieces when the address is read, and an error shows one of them.
        for piece in (password, *re.split(r"[@/?#:]", password)):
            for spelt in (piece, unquote(piece)):
                if len(spelt) > 2:  # shorter ones would be taken out of every word
                    yield spelt
        for place in (found.end() for found in re.finditer("@", password)):
            yield f"{password[place:]}@"  # where the host is taken to begin
