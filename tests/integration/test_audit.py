"""`make audit` where there is no list of known holes says so, and never that all is well."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from orchestrator.stack.redis_server import free_port
from tests.deployed import ROOT

#: What every list knows.
KNOWN = "jinja2==2.4.1"
HOLE = {"id": "OSV-of-the-tests", "summary": "a hole", "affected": []}


def audit(url: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "OSV_URL": url}
    return subprocess.run([ROOT / "deploy" / "audit"], env=environment, capture_output=True, text=True, timeout=110)


@pytest.fixture
def osv(httpserver: HTTPServer) -> Iterator[tuple[str, set[str], list[str]]]:
    """A list: its address, the pins that have a hole, and those it was asked for."""
    holed, asked = set[str](), list[str]()

    def answer(request: Request) -> Response:
        question = json.loads(request.data)
        asked.append(f"{question['package']['name']}=={question['version']}")
        found: dict[str, Any] = {"vulns": [HOLE]} if asked[-1] in holed else {}
        return Response(json.dumps(found), content_type="application/json")

    httpserver.expect_request("/v1/query").respond_with_handler(answer)
    yield httpserver.url_for("/v1/query"), holed, asked


def test_without_a_list_nothing_is_said_to_be_sound() -> None:
    done = audit(f"http://127.0.0.1:{free_port()}/v1/query")

    assert done.returncode == 3
    assert "SKIPPED, nothing was looked up" in done.stderr
    assert done.stdout == ""


def test_a_list_that_knows_nothing_is_none(osv: tuple[str, set[str], list[str]]) -> None:
    done = audit(osv[0])

    assert (done.returncode, osv[2]) == (3, [KNOWN])
    assert "knows no hole of jinja2 2.4.1" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("hole", [True, False])
def test_each_pin_is_looked_up_and_a_hole_is_a_failure(osv: tuple[str, set[str], list[str]], *, hole: bool) -> None:
    if not (ROOT / ".pip-audit" / "bin" / "pip-audit").exists():
        pytest.skip("`make audit` has not put pip-audit here")
    url, holed, asked = osv
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = set(re.findall(r"^([a-z0-9-]+==[^ ;]+)", lock, re.M))
    holed |= {KNOWN} | ({pin for pin in pins if pin.startswith("celery==")} if hole else set())

    done = audit(url)

    assert done.returncode == (1 if hole else 0), done.stdout + done.stderr
    assert ("was looked up in" in done.stdout) is not hole
    assert (HOLE["id"] in done.stdout) is hole
    left_out = pins - set(asked)
    markers = {pin for pin in pins if re.search(rf"^{re.escape(pin)} ;", lock, re.M)}
    assert len(pins) > 100 and left_out <= markers, "what is for other systems may be left out, and nothing else"
