"""The key of this installation, and what is encrypted with it: secrets of connections, calls that hold one.

`OFFICINA_SECRET_KEY` holds one key, or several parted by commas: the first encrypts, all decrypt, so that a key can be
changed without losing what the old one closed. Without it the embedded stack keeps a key of its own in its home.
"""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from orchestrator.settings import Settings
from registry.base import Json
from registry.errors import Fault, OfficinaError, WrongUse
from registry.jsontext import compact

FILE: Final = "secret.key"
_HOW: Final = "make one with `officina connections new-key`"


class Sealed(OfficinaError):
    """Something cannot be opened with the keys at hand."""

    code = "sealed"


class Vault:
    """Closes and opens JSON values."""

    def __init__(self, settings: Settings | None) -> None:
        """
        Args:
            settings: whose key it is; None: one that nobody keeps, for what ends with this process.
        """
        given = settings.secret_key.get_secret_value() if settings is not None and settings.secret_key else ""
        keys = [part for part in (one.strip() for one in given.split(",")) if part]
        if not keys:
            keys = [home_key(settings) if settings is not None else new_key()]
        try:
            self._keys = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            words = f"a key is 32 bytes in URL-safe base64; {_HOW}"
            raise WrongUse(words, faults=[Fault("OFFICINA_SECRET_KEY", "invalid_key", words)]) from None

    def close(self, value: Json) -> str:
        """The value as text that only a holder of the key reads."""
        return self.close_text(compact(value))

    def open(self, text: str) -> Json:
        """What was closed.

        Raises:
            Sealed: it was closed with another key, or changed since.
        """
        return json.loads(self.open_text(text))

    def close_text(self, text: str) -> str:
        """The same for a text."""
        return self._keys.encrypt(text.encode()).decode("ascii")

    def open_text(self, text: str) -> str:
        """The text that was closed.

        Raises:
            Sealed: it was closed with another key, or changed since.
        """
        try:
            return self._keys.decrypt(text.encode()).decode()
        except InvalidToken:
            raise Sealed("it was stored under another key than OFFICINA_SECRET_KEY or the one in the home") from None


def home_key(settings: Settings) -> str:
    """The key that a home keeps for itself, made where there is none yet."""
    return _kept(settings.home / FILE)


def new_key() -> str:
    return Fernet.generate_key().decode("ascii")


def _kept(path: Path) -> str:
    """The key in the home; made at its first use, by whoever comes first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        words = f"{path} can be read by others; take that away (chmod 600) and save the connections anew"
        raise WrongUse(words, code="open_key")
    return path.read_text(encoding="ascii").strip()


def _make(path: Path) -> None:
    """Whole or not at all: a file of its own, then linked into place unless someone was faster."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".key-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(new_key() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, path)
        except FileExistsError:
            return
    finally:
        Path(name).unlink()
