"""The port that counts: rates of an owner, and the brakes on what one task sends out (spec: skills 4 and 6)."""

from typing import Literal, Protocol

#: What is counted per owner; each is a setting of the same name.
Rate = Literal["search", "fetch", "llm", "image", "email_send", "telegram_send", "whatsapp_send", "api"]


class Meter(Protocol):
    def admit(self, rate: Rate, owner_id: str) -> None:
        """Counts one call.

        Raises:
            SkillError: `rate_limited`, with `retryAfter` in seconds among its details; nothing was counted.
        """
        ...

    def outbound(self, task_id: str, host: str) -> None:
        """Counts one GET that a task makes without asking anyone.

        Raises:
            SkillError: `rate_limited`: the task has used up its requests, or its hosts.
        """
        ...
