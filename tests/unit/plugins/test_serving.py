"""What a plugin is served outlives its call: it may do later no more than whoever called it (spec: skills 17)."""

from sqlalchemy import select

from orchestrator.ports.wiring import wire
from orchestrator.settings import Settings
from orchestrator.store.database import get_database
from orchestrator.store.kept import schedules
from registry.permissions import Policy
from registry.skills import catalogue
from registry.skills.context import Caller, SkillContext
from workers.plugins.serving import Granted

SKILLS = catalogue.build()
LATER = {"title": "Later", "everyMinutes": 60, "action": {"kind": "prompt", "text": "Write."}}


def test_a_schedule_of_a_plugin_is_held_to_what_its_caller_may(settings: Settings) -> None:
    caller = Caller("run", settings.owner, run_id="r", agent_id="ada", call_id="c")
    policy = Policy(agent={"fs.write": "deny"}, run={}, mode="plan")
    context = SkillContext(caller, policy=policy, schedules=wire(settings, SKILLS).schedules)

    Granted("weather", ["schedule"], SKILLS, context)("schedule", LATER)

    with get_database(settings).read() as connection:
        maker = connection.execute(select(schedules.c.maker)).scalar_one()
    assert maker is not None, "no maker means that a person made it, whom nothing holds back"
    assert (maker["agentId"], maker["mode"], maker["gates"]["fs.write"]) == ("ada", "plan", "deny")
