"""The error family.

    OfficinaError                 every error of ours: a stable code, a message for people
    ├── WrongUse                  the caller's words or file are off; exit code 2
    ├── Refused                   a move the rows do not allow (already answered, run ended); exit code 1
    │   └── LeaseStale            control flow: this worker no longer owns the run it writes to
    ├── Unavailable               the store cannot be reached: nothing was decided, the rows stand
    ├── RunFailure                ends a run as `failed` with its code
    └── SkillError                ends one call; its result carries the code, the run goes on

A message names the field, the kind of value found and what to do; it never echoes secrets or whole inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from registry.base import Json


@dataclass(frozen=True, order=True)
class Fault:
    """One thing that is wrong in something a person wrote."""

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.code}: {self.message}" if self.path else f"{self.code}: {self.message}"


class OfficinaError(Exception):
    """Something Officina refuses or cannot do."""

    code = "internal"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class WrongUse(OfficinaError):
    """A command, file or setting cannot be used as it is; `faults` lists every reason found."""

    code = "wrong_use"

    def __init__(self, message: str, *, code: str | None = None, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message, code=code)
        self.faults = list(faults)


class Refused(OfficinaError):
    """A move was refused and nothing changed."""

    code = "refused"


class LeaseStale(Refused):
    """Control flow: the run was claimed, cancelled or ended by someone else; stop at once and write nothing."""

    code = "lease_stale"


class Unavailable(OfficinaError):
    """The store cannot be reached; what was under way is another claim's, once it can."""

    code = "unavailable"


class RunFailure(OfficinaError):
    """Ends the run as `failed` with this code (spec: engine 13)."""

    def __init__(self, code: str, message: str, **data: Json) -> None:
        super().__init__(message, code=code)
        self.data = data


@dataclass(frozen=True)
class Detail:
    """Where in an input, and what; at most ten of them travel with an error."""

    path: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"path": self.path, "message": self.message}


class SkillError(OfficinaError):
    """Ends one skill call with a coded result (spec: skills 3)."""

    def __init__(self, code: str, message: str, *, retryable: bool = False, details: Sequence[Detail] = ()) -> None:
        super().__init__(message, code=code)
        self.retryable = retryable
        self.details = list(details)
