"""image.generate against an endpoint with the rules of the real one, through the real guard (spec: skills 7.15)."""

import base64
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, PngImagePlugin
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from orchestrator.settings import Settings
from orchestrator.workspaces.jail import JailedWorkspace
from registry.errors import SkillError
from registry.skills.context import Caller, SkillContext
from registry.skills.image import SKILLS
from registry.skills.ports import Wanted
from registry.skills.registry import SkillRegistry, SkillResult
from workers.models.painting import PlainPainter
from workers.net.guard import Guard

REGISTRY = SkillRegistry(SKILLS)
SIZES = ("1024x1024", "1536x1024", "1024x1536", "512x512")


def picture(size: tuple[int, int] = (64, 48), kind: str = "PNG", mode: str = "RGB") -> bytes:
    made, target = Image.new(mode, size, 128), io.BytesIO()
    extra: dict[str, Any] = {}
    if kind == "PNG":
        extra["pnginfo"] = PngImagePlugin.PngInfo()
        extra["pnginfo"].add_text("Author", "a secret of the provider")
    if kind == "JPEG":
        extra["exif"] = Image.Exif()
        extra["exif"][0x010E] = "a secret of the provider"
    made.save(target, kind, **extra)
    return target.getvalue()


def b64(content: bytes) -> dict[str, str]:
    return {"b64_json": base64.b64encode(content).decode()}


class Provider:
    """An images endpoint: refuses what the real one refuses, answers with what a test sets."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.data: list[Any] = [b64(picture()) | {"revised_prompt": "a calm lake"}]
        self.answer: Response | None = None
        server.expect_request("/v1/images/generations", method="POST").respond_with_handler(self._generate)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/v1"

    def _generate(self, request: Request) -> Response:
        body = json.loads(request.data)
        self.bodies.append(body)
        self.keys.append(request.headers.get("Authorization"))
        if self.answer is not None:
            return self.answer
        known = {"model", "prompt", "n", "size", "seed"}
        if set(body) - known or body["size"] not in SIZES or not 1 <= body["n"] <= 10 or not body["prompt"]:
            return Response(json.dumps({"error": {"message": "bad request"}}), 400)
        return Response(json.dumps({"created": 1, "data": self.data}), content_type="application/json")


@pytest.fixture
def provider() -> Iterator[Provider]:
    with HTTPServer(host="127.0.0.1") as server:
        yield Provider(server)


class Desk:
    def __init__(self, folder: Path, provider: Provider | None, **changed: Any) -> None:
        images = (
            {"name": "painter-1", "base_url": provider.url, "key": "sk-secret", "price": "0.04"} if provider else None
        )
        if images is not None:
            images |= changed.pop("images", {})
        self.settings = Settings(home=folder / "home", images=images, _env_file=None, **changed)  # type: ignore[arg-type,call-arg]
        self.net = Guard(allow=[("127.0.0.1", provider.server.port)] if provider else [])
        self.folder, self.workspace = folder / "w", JailedWorkspace(folder / "w")
        self.events: list[Any] = []

    def call(self, *, rehearsal: bool = False, **arguments: Any) -> SkillResult:
        about = SkillContext(
            Caller("person"),
            workspace=self.workspace,
            net=self.net,
            images=PlainPainter(self.settings, self.net),
            rehearsal=rehearsal,
            emit=lambda kind, data: self.events.append((kind, data)),
        )
        return REGISTRY.invoke("image.generate", {"prompt": "A calm lake"} | arguments, about)

    def opened(self, path: str) -> Image.Image:
        with Image.open(self.folder / path) as image:
            image.load()
            return image

    def files(self) -> list[str]:
        return [e.path for e in self.workspace.entries(".", recursive=True) if e.type == "file"]


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider)


def test_a_picture_is_written_as_png_and_told(desk: Desk, provider: Provider) -> None:
    made = desk.call(style="photo").output

    (one,) = made["images"]
    assert one | {"sha256": "", "bytes": 0} == {
        "path": "images/a-calm-lake.png",
        "width": 64,
        "height": 48,
        "mime": "image/png",
        "bytes": 0,
        "sha256": "",
    }
    assert (made["provider"], made["model"], made["revisedPrompt"]) == ("127.0.0.1", "painter-1", "a calm lake")
    assert (made["placeholder"], made["wired"], made["costUsd"]) == (False, True, 0.04)
    assert desk.opened(one["path"]).format == "PNG"
    assert provider.bodies == [
        {
            "model": "painter-1",
            "prompt": "A calm lake\n\nThe picture is a photograph.",
            "n": 1,
            "size": "1024x1024",
        }
    ]
    assert provider.keys == ["Bearer sk-secret"]
    assert [kind for kind, _ in desk.events] == ["file.written"]


def test_several_pictures_are_numbered_and_each_is_paid(desk: Desk, provider: Provider) -> None:
    provider.data = [b64(picture()), b64(picture((8, 8))), b64(picture((9, 9)))]
    made = desk.call(count=2, path="art/lake", size="512x512").output

    assert [one["path"] for one in made["images"]] == ["art/lake-1.png", "art/lake-2.png"]
    assert made["costUsd"] == 0.08


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGBA"), ("PNG", "P"), ("PNG", "L"), ("JPEG", "RGB"), ("JPEG", "CMYK"), ("WEBP", "RGB"), ("GIF", "P")],
)
def test_whatever_kind_comes_is_written_as_bare_pixels(desk: Desk, provider: Provider, kind: str, mode: str) -> None:
    provider.data = [b64(picture(kind=kind, mode=mode))]
    (one,) = desk.call().output["images"]

    assert desk.opened(one["path"]).format == "PNG"
    assert b"secret" not in (desk.folder / one["path"]).read_bytes()
    assert not {"Author", "exif"} & set(desk.opened(one["path"]).info)


def test_an_address_in_the_answer_is_fetched_through_the_guard_and_without_the_key(
    desk: Desk, provider: Provider
) -> None:
    seen: list[Any] = []

    def give(request: Request) -> Response:
        seen.append(request.headers.get("Authorization"))
        return Response(picture(kind="JPEG"), content_type="image/jpeg")

    provider.server.expect_request("/made.jpg").respond_with_handler(give)
    provider.data = [{"url": f"http://127.0.0.1:{provider.server.port}/made.jpg"}]
    assert desk.call().ok
    assert seen == [None]


def test_the_models_key_goes_to_the_models_host_alone(tmp_path: Path, provider: Provider) -> None:
    for number, (base_url, sent) in enumerate(
        [(provider.url, "Bearer sk-models"), ("https://llm.example.com/v1", None)]
    ):
        desk = Desk(
            tmp_path / str(number), provider, images={"key": None}, model_api_key="sk-models", model_base_url=base_url
        )
        assert desk.call().ok
        assert provider.keys[-1] == sent


def test_all_pictures_of_an_answer_come_within_the_one_deadline(desk: Desk, provider: Provider) -> None:
    def drip(request: Request) -> Response:
        time.sleep(0.4)
        return Response(picture(), content_type="image/png")

    provider.server.expect_request("/made.png").respond_with_handler(drip)
    provider.data = [{"url": f"http://127.0.0.1:{provider.server.port}/made.png"}] * 4
    wanted = Wanted("A lake", "512x512", 4, None, timeout_s=0.7, cancelled=lambda: False)
    with pytest.raises(SkillError) as caught:
        PlainPainter(desk.settings, desk.net).paint(Caller("person"), wanted)
    assert caught.value.code == "timeout"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://169.254.169.254/latest", "network_blocked"),
        ("http://localhost/x.png", "network_blocked"),
        ("file:///etc/passwd", "invalid_output"),
        ("not a url", "invalid_output"),
    ],
)
def test_a_hostile_address_in_the_answer_is_refused(desk: Desk, provider: Provider, url: str, code: str) -> None:
    provider.data = [{"url": url}]

    assert desk.call().code == code
    assert desk.files() == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ([], "invalid_output"),
        (["x"], "invalid_output"),
        ([{}], "invalid_output"),
        ([{"b64_json": "no base64!"}], "invalid_output"),
        ([b64(b"<svg xmlns='http://www.w3.org/2000/svg'/>")], "invalid_output"),
        ([b64(picture()[:60])], "invalid_output"),
        ([b64(b"")], "invalid_output"),
        ([b64(picture((4097, 1)))], "too_large"),
    ],
)
def test_what_is_no_picture_is_refused_and_nothing_is_written(
    desk: Desk, provider: Provider, data: list[Any], code: str
) -> None:
    provider.data = data

    assert desk.call().code == code
    assert desk.files() == []


@pytest.mark.parametrize(
    ("status", "error", "code", "retryable", "word"),
    [
        (400, {"message": "rejected", "code": "content_policy_violation"}, "remote_error", False, "content_filter"),
        (400, {"message": "blocked by our moderation"}, "remote_error", False, "content_filter"),
        (400, {"message": "no such size"}, "remote_error", False, "no such size"),
        (401, {"message": "bad key sk-secret"}, "remote_error", False, "401"),
        (429, {"message": "slow down"}, "rate_limited", True, "slow down"),
        (503, {"message": "busy"}, "remote_error", True, "busy"),
    ],
)
def test_a_refusal_has_its_code(
    desk: Desk, provider: Provider, status: int, error: dict[str, str], code: str, retryable: bool, word: str
) -> None:
    provider.answer = Response(json.dumps({"error": error}), status)
    refused = desk.call()

    assert (refused.code, refused.retryable) == (code, retryable)
    assert word in str(refused.error) and "sk-secret" not in str(refused.to_json())
    assert desk.files() == [] and len(provider.bodies) == 1, "it is not asked twice"


def test_an_answer_that_is_no_json_and_a_redirect_are_remote_errors(desk: Desk, provider: Provider) -> None:
    for answer in (Response("<html>", 200), Response("", 302, {"Location": "http://127.0.0.1:1/"})):
        provider.answer = answer
        assert desk.call().code == "remote_error"
    assert len(provider.bodies) == 2


def test_a_number_is_passed_on_only_where_it_is_taken(tmp_path: Path, desk: Desk, provider: Provider) -> None:
    desk.call(variant=7)
    Desk(tmp_path / "b", provider, images={"takes_seed": True}).call(variant=7)

    assert [body.get("seed") for body in provider.bodies] == [None, 7]


def test_a_price_nobody_knows_is_not_free(tmp_path: Path, provider: Provider) -> None:
    assert Desk(tmp_path, provider, images={"price": None}).call().output["costUsd"] is None


def test_without_a_provider_nothing_is_claimed(tmp_path: Path) -> None:
    made = Desk(tmp_path, None).call()

    assert made.ok
    assert (made.output["wired"], made.output["images"], made.output["provider"]) == (False, [], "none")
    bare = REGISTRY.invoke("image.generate", {"prompt": "x"}, SkillContext(Caller("person")))
    assert bare.output["wired"] is False


def test_a_card_stands_in_only_where_the_settings_or_a_rehearsal_allow_it(tmp_path: Path, provider: Provider) -> None:
    allowed = Desk(tmp_path / "a", None, image_placeholder=True)
    made = allowed.call(size="1536x1024", count=2, prompt="A lake 湖 " + "word " * 200).output
    assert (made["placeholder"], made["wired"], made["costUsd"], made["model"]) == (True, True, 0, None)
    assert [allowed.opened(one["path"]).size for one in made["images"]] == [(1536, 1024)] * 2
    assert made["note"]

    rehearsed = Desk(tmp_path / "b", provider).call(rehearsal=True).output
    assert rehearsed["placeholder"] is True and provider.bodies == [], "not a cent is spent"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"prompt": ""}, "invalid_input"),
        ({"prompt": " "}, "invalid_input"),
        ({"prompt": "x" * 4001}, "invalid_input"),
        ({"size": "100x100"}, "invalid_input"),
        ({"count": 0}, "invalid_input"),
        ({"count": 5}, "invalid_input"),
        ({"style": "oil"}, "invalid_input"),
        ({"variant": -1}, "invalid_input"),
        ({"variant": 2**31}, "invalid_input"),
        ({"path": "a.png"}, "invalid_input"),
        ({"path": "../a"}, "path_escape"),
        ({"approved": True}, "invalid_input"),
    ],
)
def test_a_bad_wish_is_refused_before_anybody_is_asked(
    desk: Desk, provider: Provider, arguments: dict[str, Any], code: str
) -> None:
    assert desk.call(**arguments).code == code
    assert provider.bodies == []
