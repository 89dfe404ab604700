"""Methods made of functions that are written once, for faces that only differ in how they wait."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def like(function: Callable[..., Any], method: Method, without: str = "", wrapper: str = "") -> Method:
    """Return the method with the name, the documentation and the signature of the function that it calls.

    without: a parameter of the function that the method fills in. wrapper: what the method unwraps the answer from.
    """
    signature = inspect.signature(function)
    kept = [one for name, one in signature.parameters.items() if name not in ("self", without)]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    told: Any = method
    told.__name__, told.__doc__ = function.__name__, function.__doc__
    told.__qualname__ = function.__name__
    answer = inspect.signature(method).return_annotation
    if answer == "T":  # whatever the function answers
        answer = signature.return_annotation
        if wrapper:
            answer = answer.removeprefix(f"{wrapper}[").removesuffix("]")
    told.__signature__ = signature.replace(parameters=[own, *kept], return_annotation=answer)
    return method
