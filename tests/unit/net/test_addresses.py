"""Which hosts may be reached (spec: skills 4 and 22)."""

import ipaddress

import pytest

from registry.skills.urls import parse_url
from workers.net.addresses import is_public, refusal

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1"),
    *("192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255"),
    *("240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1"),
    *("64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    *("2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1"),
    *("5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1"),
    "2606:4700::5efe:7f00:1",  # ISATAP
    "2606:4700::200:5efe:808:808",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.1",
    "223.255.255.1",
]
PUBLIC += ["2606:4700:4700::1111", "2a00:1450:4001::1", "2400:cb00::1", "2620:fe::fe"]


@pytest.mark.parametrize("text", PRIVATE)
def test_what_is_not_public_unicast_or_wraps_an_address_is_refused(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))
    host = f"[{text}]" if ":" in text else text
    assert refusal(parse_url(f"http://{host}/")) is not None


@pytest.mark.parametrize("text", PUBLIC)
def test_public_unicast_is_not(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))
    host = f"[{text}]" if ":" in text else text
    assert refusal(parse_url(f"http://{host}/")) is None


def test_a_zone_makes_an_address_local() -> None:
    assert not is_public(ipaddress.ip_address("2606:4700::1%eth0"))


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "127.0.1", "0x7f.1", "0x7f000001", "0X7F000001", "2130706433", "0177.0.0.1", "00.0.0.0"),
        *("127.0.0.01", "1.2.3.256", "1.2.3.4.5", "0", "0x", "example.0x7f", "１２７.1", "①②⑦.0.0.1", "localhost"),
        *("LOCALHOST", "localhost.", "a.localhost", "printer.local", "db.internal", "metadata.google.internal"),
        *("local", "internal", "ⓛocalhost"),
    ],
)
def test_spellings_and_names_of_machines_inside_are_refused_unasked(host: str) -> None:
    assert refusal(parse_url(f"http://{host}/")) is not None


@pytest.mark.parametrize(
    "host", ["local.example.com", "localhost.example.com", "internal.example", "1.2.3.example", "0x7f.example.com"]
)
def test_names_that_only_look_alike_are_not(host: str) -> None:
    assert refusal(parse_url(f"http://{host}/")) is None


@pytest.mark.parametrize("port", [1, 21, 22, 25, 79, 81, 442, 587, 993, 1023, 2049, 5060, 6000, 6667, 10080])
def test_ports_of_other_protocols_are_refused(port: int) -> None:
    assert refusal(parse_url(f"http://example.com:{port}/")) is not None


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8080, 8443, 65535])
def test_ports_of_the_web_are_not(port: int) -> None:
    assert refusal(parse_url(f"http://example.com:{port}/")) is None
