"""What a rule about the rows is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Invariant:
    """One rule: its name, what it says, and the query for rows that break it (`id` first, then what makes it plain)."""

    name: str
    says: str
    sql: str
