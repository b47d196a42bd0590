"""The tool `fetch` of the pack of that name (spec: engine 15)."""

from typing import Any

import pytest

from orchestrator.ports.meter import CountingMeter
from orchestrator.settings import Limits, Settings
from registry.packs import PACKS
from registry.permissions import Policy
from registry.skills.context import Authority, Caller, SkillContext
from registry.skills.registry import SkillRegistry, SkillResult
from tests.traps import TrapSite
from workers.net.guard import Guard

TOOLS = SkillRegistry(PACKS["fetch"].tools)


def fetched(guard: Guard, given: dict[str, Any], authority: Authority | None = None, **more: Any) -> SkillResult:
    context = SkillContext(Caller("run", task_id="t"), net=guard, **more)
    return TOOLS.invoke("fetch", given, context, authority)


def test_an_answer_of_any_status_is_an_answer(guard: Guard, site: TrapSite) -> None:
    site.page("/", "zażółć".encode("iso-8859-2"), kind="text/plain; charset=iso-8859-2", status=404, Set_Cookie="a=b")
    output = fetched(guard, {"url": site.url()}).output
    assert (output["status"], output["ok"], output["statusText"]) == (404, False, "Not Found")
    assert (output["body"], output["headers"]["set-cookie"], output["untrusted"]) == ("zażółć", "***", True)


def test_reading_needs_the_network_and_anything_else_a_yes(guard: Guard, site: TrapSite) -> None:
    site.page("/", "ok")
    policy = Policy(agent={"network": "allow"}, run={})
    assert fetched(guard, {"url": site.url(), "headers": {"X-A": "b"}}, policy=policy).ok
    post = {"url": site.url(), "method": "POST", "body": "x"}
    assert fetched(guard, post, policy=policy).code == "approval_required"
    assert [asked.method for asked in site.requests] == ["GET"]
    assert fetched(guard, post, Authority(None), policy=policy).ok
    assert site.requests[-1].body == b"x"


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:1/"},
        {"url": "http://169.254.169.254/"},
        {"url": "http://localhost/"},
    ],
)
def test_nothing_inside_is_reached(guard: Guard, given: dict[str, Any]) -> None:
    assert fetched(guard, given).code == "network_blocked"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"url": "file:///etc/passwd"},
        {"url": "https://a.example/?" + "q" * 1025},
        {"url": "https://a.example/", "body": "x"},
        {"url": "https://a.example/", "timeoutMs": 5},
        {"url": "https://a.example/", "timeout_ms": 600_001},
        {"url": "https://a.example/", "headers": {"Host": "b.example"}},
        {"url": "https://a.example/", "headers": {"X": "a\r\nb"}},
        {"url": "https://a.example/", "approved": True},
    ],
)
def test_an_input_that_is_none_is_refused(guard: Guard, given: dict[str, Any]) -> None:
    assert fetched(guard, given).code == "invalid_input"


def test_it_is_braked_as_the_web_skills_are(guard: Guard, site: TrapSite, tmp_path: Any) -> None:
    site.page("/", "ok")
    few = Settings(home=tmp_path, limits=Limits(task_requests=2), _env_file=None)  # type: ignore[call-arg]
    meter = CountingMeter(few)
    codes = [fetched(guard, {"url": site.url(), "timeout_ms": 5000}, meter=meter).code for _ in range(3)]
    assert codes == [None, None, "rate_limited"]


def test_without_a_network_it_fails(guard: Guard) -> None:
    result = TOOLS.invoke("fetch", {"url": "https://a.example/"}, SkillContext(Caller("run")))
    assert result.code == "network_error"
