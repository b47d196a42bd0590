"""Mail and messages: four skills over accounts their owner has connected (spec: skills 7.23 to 7.26)."""

from typing import Final

from registry.skills.email_read import read_email
from registry.skills.email_send import send_email
from registry.skills.skill import Skill
from registry.skills.telegram import send_telegram
from registry.skills.whatsapp import send_whatsapp

SKILLS: Final[tuple[Skill, ...]] = (read_email, send_email, send_telegram, send_whatsapp)

__all__ = ["SKILLS"]
