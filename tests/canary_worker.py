"""A worker with two more skills, whose results and faults hold secrets: started in place of the usual one.

`python -m tests.canary_worker worker ...`; what they let slip stands in CANARY_RESULT and CANARY_FAULT.
"""

import os

from registry.base import Model
from registry.skills import catalogue
from registry.skills.context import SkillContext
from registry.skills.skill import Skill, skill
from workers.commands import child


class Nothing(Model):
    pass


class Leaked(Model):
    token: str
    text: str


@skill("canary.tell", title="Tell", timeout_s=5)
def tell(_: Nothing, context: SkillContext) -> Leaked:
    """Brings a result in which a secret stands under its name, and in a text."""
    secret = os.environ["CANARY_RESULT"]
    return Leaked(token=secret, text=f"Set-Cookie: session={secret}; api_key={secret}")


@skill("canary.fall", title="Fall", timeout_s=5)
def fall(_: Nothing, context: SkillContext) -> Leaked:
    """Fails in a way nobody thought of, and says too much."""
    secret = os.environ["CANARY_FAULT"]
    raise RuntimeError(f"cannot open https://me:{secret}@example.com/?token={secret} with password={secret}")


WITH_THEM = [*catalogue.catalogue(), tell, fall]


def more() -> list[Skill]:
    """The catalogue, and these two."""
    return WITH_THEM


if __name__ == "__main__":
    catalogue.catalogue = more
    child.main()
