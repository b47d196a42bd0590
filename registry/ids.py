"""Identifiers: UUIDv7 as text, so that rows sort by the time they were made."""

from uuid_utils.compat import uuid7


def new_id() -> str:
    return str(uuid7())
