"""API keys: who may ask for what. Only their digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pamo.errors import InputError, unknown_name

PREFIX = "pamo_"
"""What every key begins with, so that people and scanners of leaked secrets know it for one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


class Role(StrEnum):
    """What a key may do. Any key may read preferences, arms, decisions and the front."""

    DECIDE = "decide"
    FEEDBACK = "feedback"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, init=False)
class Key:
    """A key as it is kept: whose it is, what it may do, and the SHA-256 of its text in hexadecimal digits.

    >>> Key("shop", ["decide", "feedback"], digest_of("pamo_secret")).roles == {Role.DECIDE, Role.FEEDBACK}
    True
    """

    name: str
    roles: frozenset[Role]
    sha256: str

    def __init__(self, name: str, roles: Iterable[str], sha256: str) -> None:
        # No message repeats the digest: what was written there by mistake may be the key itself.
        if not _matches(_NAME, name) or _is_clear(name):
            raise InputError(
                "expected a key's name of up to 64 letters, digits, dots, dashes and underscores, the first a letter "
                f"or digit, got {_careful(name)}"
            )
        if isinstance(roles, str) or not isinstance(roles, Iterable):
            raise InputError(f"expected the roles of key {name!r} as a list, got {roles!r:.80}")
        allowed = frozenset(_role(one) for one in roles)
        if not allowed:
            raise InputError(f"expected at least one role for key {name!r}, got none: {', '.join(Role)}")
        if not _matches(_DIGEST, sha256):
            hint = "that is the key itself, and no file should have it; " if _is_clear(sha256) else ""
            raise InputError(
                f"expected the sha256 of key {name!r} as 64 hexadecimal digits, got something else: {hint}"
                "`pamo key` prints what to write there"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "roles", allowed)
        object.__setattr__(self, "sha256", sha256.lower())

    @classmethod
    def of(cls, given: Any) -> Key:
        """Return the key that NAME:ROLE+ROLE:SHA256, or a table with name, roles and sha256, describes.

        >>> Key.of("shop:decide+feedback:" + 64 * "0").name
        'shop'
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            parts = given.strip().split(":")
            if len(parts) != 3:
                raise InputError(
                    f"expected a key as NAME:ROLE+ROLE:SHA256, got {len(parts)} parts and not 3: `pamo key` prints it "
                    "so"
                )
            return cls(parts[0], parts[1].split("+"), parts[2])
        if not isinstance(given, Mapping):
            raise InputError(f"expected a key as text or as a table, got a value of type {type(given).__name__}")
        known = ("name", "roles", "sha256")
        for field in given:
            if field not in known:
                raise unknown_name("field of a key", field, known)
        missing = [field for field in known if field not in given]
        if missing:
            raise InputError(f"expected a key with {', '.join(known)}, got one without {', '.join(missing)}")
        return cls(**given)

    @property
    def text(self) -> str:
        """The key as NAME:ROLE+ROLE:SHA256."""
        return f"{self.name}:{'+'.join(sorted(self.roles))}:{self.sha256}"


def new_key() -> str:
    """Return a new key: 256 random bits, which no one guesses.

    >>> new_key().startswith("pamo_"), new_key() == new_key()
    (True, False)
    """
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """Return what is kept of a key.

    A slow hash, as for passwords, would make no key safer: it is for secrets that people think up and that can be
    guessed by trying. Of 2²⁵⁶ keys none is found by trying, however fast; and every request pays for the hash.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Keyring:
    """Finds a request's key among those that are known.

    >>> key = new_key()
    >>> ring = Keyring([Key("shop", ["decide"], digest_of(key))])
    >>> ring.roles_for(f"Bearer {key}")
    ('shop', frozenset({<Role.DECIDE: 'decide'>}))
    >>> ring.roles_for("Bearer pamo_other") is None
    True
    """

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        listed = list(keys)
        check_keys(listed)
        # By digest, so that a thousand keys cost what one does. What the time of a lookup could tell is of a digest,
        # from which nobody gets to a key.
        self._known = {key.sha256: key for key in listed}
        everything = frozenset(Role)
        self._roles = {key.name: everything if Role.ADMIN in key.roles else key.roles for key in listed}

    @property
    def empty(self) -> bool:
        """Whether there are no keys, so that everybody may do all."""
        return not self._known

    def roles_for(self, authorization: str | None) -> tuple[str, frozenset[Role]] | None:
        """Return whose key an Authorization header has and what it may do, or None if it has none that is known.

        An admin may do all, and has all roles here.
        """
        if authorization is None:
            return None
        scheme, _, secret = authorization.strip().partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = digest_of(secret.strip())
        key = self._known.get(digest)
        if key is None or not hmac.compare_digest(key.sha256, digest):
            return None
        return key.name, self._roles[key.name]


def check_keys(keys: Iterable[Key]) -> None:
    """Raise `InputError` if two of these have the same name or the same digest."""
    owners: dict[str, str] = {}  # by digest
    for key in keys:
        if key.name in owners.values():
            raise InputError(f"expected keys of different names, got {key.name!r} twice")
        if key.sha256 in owners:
            raise InputError(
                f"expected a key of its own for each name, got one for {owners[key.sha256]} and {key.name}"
            )
        owners[key.sha256] = key.name


def _role(text: Any) -> Role:
    try:
        return Role(text.strip() if isinstance(text, str) else text)
    except ValueError:
        raise unknown_name("role", _careful(text).strip("'"), map(str, Role)) from None


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_clear(text: Any) -> bool:
    return isinstance(text, str) and text.strip().startswith(PREFIX)


def _careful(text: Any) -> str:
    """Return a value for a message, unless it is a key."""
    return "a key" if _is_clear(text) else f"{text!r:.80}"
