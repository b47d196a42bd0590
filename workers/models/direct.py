"""One whole answer over the connections, the head and the errors of the SDK, without a call's way through it.

That way makes the same head anew for every call and looks through options and body for what none of ours has: three
quarters of a call's processor time, while hundreds of runs want the interpreter. Here the head is made once for each
server. Where somebody listens the SDK itself is asked, because it reads what comes in pieces.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from registry.base import Json

if TYPE_CHECKING:
    import openai

#: Where chat completions are, below the base URL.
PATH = b"chat/completions"
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)


@dataclass(frozen=True)
class Head:
    """What is the same in every request to one server with one key."""

    url: httpx2.URL
    headers: tuple[tuple[bytes, bytes], ...]


def head(sdk: "openai.OpenAI", client: httpx2.Client) -> Head:
    """The address and the headers that the SDK would send by this client.

    Raises:
        UnicodeError: the key is no ASCII text.
    """
    url = sdk.base_url.copy_with(raw_path=sdk.base_url.raw_path + PATH)
    said = {**sdk.auth_headers, **sdk.default_headers}
    given = {name: value for name, value in said.items() if isinstance(value, str)}
    plain = client.build_request("POST", url, headers=given)
    return Head(url, tuple(one for one in plain.headers.raw if one[0].lower() != b"content-length"))


def post(
    sdk: "openai.OpenAI", http: httpx2.BaseTransport, head: Head, body: Mapping[str, Json], timeout: httpx2.Timeout
) -> httpx2.Response:
    """The answer, read to its end.

    Raises:
        openai.APIError: what the SDK would raise: there is no answer, it came too late, or it is a refusal.
    """
    import openai

    content = _encoder.encode(body).encode()
    request = httpx2.Request(
        "POST",
        head.url,
        headers=[*head.headers, (b"Content-Length", str(len(content)).encode())],
        stream=httpx2.ByteStream(content),
        extensions={"timeout": timeout.as_dict()},
    )
    try:
        response = http.handle_request(request)
        try:
            response.read()
        finally:
            response.close()
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=request) from error
    except httpx2.HTTPError as error:
        raise openai.APIConnectionError(request=request) from error
    response.request = request
    if not response.is_success:
        raise sdk._make_status_error_from_response(response)
    return response
