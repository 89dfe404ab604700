"""What can go wrong, under one root: every message says what was expected, what came, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pamo.contract.codes import Code


class PamoError(Exception):
    """The root of every error that pamo raises on purpose; the command line turns it into one sentence.

    code: what went wrong, in one word that stays the same while sentences improve (see `pamo.contract.codes`).
    """

    codes: tuple[str, ...] = (Code.FAILED,)
    """What such an error may be, the usual first."""

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.codes[0]


class InputError(PamoError, ValueError):
    """A value given to pamo is not one that it can work with. field: where it was given, such as "rewards.price"."""

    codes = (
        Code.INVALID,
        Code.UNKNOWN_ARM,
        Code.ARM_NOT_CHOSEN,
        Code.UNKNOWN_EXPERIMENT,
        Code.MALFORMED,
        Code.NOT_FOUND,
        Code.TOO_LARGE,
        Code.NOT_JSON,
    )

    def __init__(self, message: str = "", field: str | None = None, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.field = field


class ResultFileError(PamoError):
    """A result file cannot be read: cut short, not a result, or written by a newer pamo."""


class StoreError(PamoError):
    """A store cannot be opened, read or written: nothing that it was asked to record meanwhile is acknowledged."""

    codes = (Code.UNAVAILABLE,)


class DamagedError(StoreError):
    """What a store holds is not what was recorded: something is missing, or was changed."""


class InUseError(StoreError):
    """Another process has the store, and this one cannot be shared."""


class UnknownDecisionError(PamoError, LookupError):
    """There is no decision of that id, or none any more."""

    codes = (Code.UNKNOWN_DECISION,)


class ExpiredDecisionError(PamoError):
    """A feedback came too late for its decision, and was not counted."""

    codes = (Code.EXPIRED_DECISION,)


class ConflictError(PamoError):
    """Something else was recorded before, as the feedback to the same decision or under the same key."""

    codes = (Code.FEEDBACK_CONFLICT, Code.DECISION_CONFLICT, Code.EXPERIMENT_CONFLICT, Code.KEY_CONFLICT)


class RefusedError(PamoError):
    """The service refused a client's key: none was given, it is not known, or its role may not do that."""

    codes = (Code.FORBIDDEN, Code.UNAUTHORIZED)


class ServiceError(PamoError):
    """The service did not answer a client, or not with anything that it can go on with."""

    codes = (Code.UNAVAILABLE,)


class MissingExtraError(PamoError, ImportError):
    """A feature needs a package that the light core does not install."""


_KINDS = (InputError, UnknownDecisionError, ExpiredDecisionError, ConflictError, RefusedError)
ERRORS: dict[str, type[PamoError]] = {code: kind for kind in _KINDS for code in kind.codes}
"""Which error a code stands for."""


def error_of(code: str | None, message: str, field: str | None = None) -> PamoError | None:
    """Return the error that a code stands for, None for one that stands for none.

    >>> error_of("key_conflict", "the key was used before")
    ConflictError('the key was used before')
    """
    kind = ERRORS.get(code or "")
    if kind is InputError:
        return InputError(message, field, code=code)
    return None if kind is None else kind(message, code=code)


def unknown_name(kind: str, name: str, known: Iterable[str], field: str | None = None) -> InputError:
    """Return the error for a name that is not in `known`, with the nearest ones that are.

    >>> print(unknown_name("policy", "prucb-ph", ["prucb-hp", "ucb"]))
    unknown policy 'prucb-ph'; did you mean 'prucb-hp'? Known: prucb-hp, ucb
    """
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    code = Code.UNKNOWN_ARM if kind == "arm" else Code.INVALID
    return InputError(f"unknown {kind} {name!r:.80}{hint} Known: {', '.join(choices)}", field, code=code)


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for a feature whose package is not installed.

    >>> print(missing_extra("drawing a figure", "matplotlib", "plot"))
    drawing a figure needs matplotlib, which is not installed: pip install 'pamo[plot]'
    """
    return MissingExtraError(f"{feature} needs {package}, which is not installed: pip install 'pamo[{extra}]'")
