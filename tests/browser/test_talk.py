"""Conversations, generators and memory in a browser: begun, filled in, looked up, forgotten."""

import json
import re
from typing import Any, Final

import pytest
from playwright.sync_api import expect
from redis import Redis

from orchestrator import deltas, saved
from orchestrator.api.shared import skills
from orchestrator.records import Event
from orchestrator.settings import Settings
from orchestrator.store import events
from orchestrator.store.database import get_database
from tests.browser.conftest import Open
from tests.showroom import Showroom
from tests.support import eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

#: A file in which nothing is: a browser has no base64 of it.
EMPTY: Final[Any] = {"name": "a", "mimeType": "text/plain", "buffer": b""}


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
    expect(page.locator(".said .prose")).to_have_text("How much rain <b>fell</b> in May?")
    page.locator(".talked").first.wait_for()  # it came by itself
    page.get_by_label("Your message").fill("And in June?")
    page.get_by_label("Files", exact=True).set_input_files(
        [{"name": "june.csv", "mimeType": "text/csv", "buffer": b"day,mm\n1,4\n"}, {**EMPTY}, {**EMPTY, "name": "b"}]
    )
    page.get_by_role("button", name="Send").click()
    page.locator("#turn-2 .talked").first.wait_for()
    expect(page.get_by_label("Your message")).to_have_value("")
    assert page.get_by_label("Files", exact=True).evaluate("field => field.files.length") == 0
    page.get_by_text("3 files in this conversation").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="june.csv", exact=False).filter(has_text="download").click()
    assert download.value.path().read_bytes() == b"day,mm\n1,4\n"
    page.locator("#turn-2 .brought a", has_text="june.csv").click()
    expect(page.locator("table td").first).to_have_text("1")
    page.go_back()
    page.reload()
    expect(page.locator(".said")).to_have_count(2)

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("No conversation yet").wait_for()


def test_a_thread_at_work_refuses_a_message_and_keeps_its_words(open_desk: Open, studio_settings: Settings) -> None:
    room = Showroom(studio_settings)
    page = open_desk(f"/threads/{room.thread_id}")
    page.get_by_label("Your message").fill("Are you there?")

    page.get_by_role("button", name="Send").click()

    page.locator(".say.refused").wait_for()
    expect(page.locator(".say.refused")).to_contain_text("answer that first")
    expect(page.get_by_label("Your message")).to_have_value("Are you there?")
    page.goto(page.url.partition("/threads")[0] + f"/generators/{room.generator_id}")
    page.get_by_label("City").fill("Oslo")
    page.get_by_label("Dress rehearsal").check()
    page.get_by_role("button", name="Start a project").click()
    page.wait_for_url(re.compile("/projects/.{36}$"))
    expect(page.locator("h1")).to_have_text("City report")


def test_words_stand_on_the_page_while_they_are_said_and_make_room_for_the_message(
    open_desk: Open, studio_settings: Settings
) -> None:
    room = Showroom(studio_settings)
    page = open_desk(f"/threads/{room.thread_id}")
    box = page.locator(".live")
    run = str(box.get_attribute("id")).removeprefix("live-")
    redis = Redis.from_url(str(studio_settings.redis))

    def hear(text: str, at: int, kind: str = "message.delta") -> int:
        piece = {"kind": kind, "run_id": run, "at": at, "text": text}
        return int(redis.publish(deltas.channel(room.thread_id), json.dumps(piece)))

    expect(box).to_be_hidden()
    eventually(lambda: hear("well", 0, "think.delta"))  # the API listens once the page does
    expect(box).to_have_text("Thinks…")
    hear("It <b>rained</b> \u202e🌧 ", 0)
    hear("in May", 20)
    expect(box).to_have_text("It <b>rained</b> ⟦U+202E⟧🌧 in May")
    hear("in May", 20)  # twice
    hear("north", 40)  # after some that were lost
    expect(box).to_have_text("It <b>rained</b> ⟦U+202E⟧🌧 in May … north")

    said = Event("message", {"role": "assistant", "text": "It rained in May, in the north."}, run_id=run)
    get_database(studio_settings).write(lambda connection: events.append(connection, room.thread_id, [said]))

    expect(page.locator("#turn-3 .talked").first).to_have_text("It rained in May, in the north.")
    expect(box).to_be_hidden()
    redis.close()
