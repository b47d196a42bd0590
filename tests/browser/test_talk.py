"""Conversations, generators and memory in a browser: begun, filled in, looked up, forgotten."""

import re
from typing import Any

import pytest

from orchestrator import saved
from orchestrator.api.shared import skills
from orchestrator.settings import Settings
from tests.browser.conftest import Open
from tests.showroom import Showroom

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_somebody_talks_with_an_agent_and_comes_back_to_it(
    open_desk: Open, studio_settings: Settings, worker_process: Any
) -> None:
    worker_process(studio_settings).ready()
    saved.create_agent(studio_settings, skills(), {"name": "Ada", "instructions": "Talk."}, person=True)
    page = open_desk("/threads")
    page.get_by_label("With").select_option(label="Ada")
    page.get_by_label("Say").fill("How much rain <b>fell</b> in May?")

    page.get_by_label("Say").press("Control+Enter")

    page.wait_for_url(re.compile("/threads/.{36}$"))
    assert page.locator(".said .prose").inner_text() == "How much rain <b>fell</b> in May?"
    page.locator(".talked").first.wait_for()  # it came by itself
    page.get_by_label("Your message").fill("And in June?")
    page.get_by_role("button", name="Send").click()
    page.locator("#turn-2 .talked").first.wait_for()
    assert page.get_by_label("Your message").input_value() == ""
    page.reload()
    assert page.locator(".said").count() == 2

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("No conversation yet").wait_for()


def test_a_thread_at_work_refuses_a_message_and_keeps_its_words(open_desk: Open, studio_settings: Settings) -> None:
    room = Showroom(studio_settings)
    page = open_desk(f"/threads/{room.thread_id}")
    page.get_by_label("Your message").fill("Are you there?")

    page.get_by_role("button", name="Send").click()

    page.locator(".say.refused").wait_for()
    assert "answer that first" in page.locator(".say.refused").inner_text()
    assert page.get_by_label("Your message").input_value() == "Are you there?"
    page.goto(page.url.partition("/threads")[0] + f"/generators/{room.generator_id}")
    page.get_by_label("City").fill("Oslo")
    page.get_by_label("Dress rehearsal").check()
    page.get_by_role("button", name="Start a project").click()
    page.wait_for_url(re.compile("/projects/.{36}$"))
    assert page.locator("h1").inner_text() == "City report"
