"""The filter, judged by a machine that runs its program as the kernel would."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.sandbox import seccomp
from workers.sandbox.landlock import Landlock
from workers.sandbox.seccomp import Refuse, When, filter_for
from workers.sandbox.syscalls import ARCHITECTURES

ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
MACHINES = sorted(ARCHITECTURES)

X86 = ARCHITECTURES["x86_64"].numbers
FORKS = 56, 435


def judge(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel does with a call: runs the program over the call's data."""
    data = struct.pack("=iIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    at = accumulator = 0
    while True:
        code, if_true, if_false, constant = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, constant)
            case 0x54:
                accumulator &= constant
            case 0x15:
                at += if_true if accumulator == constant else if_false
            case 0x35:
                at += if_true if accumulator >= constant else if_false
            case 0x45:
                at += if_true if accumulator & constant else if_false
            case 0x06:
                return constant
            case _:
                raise AssertionError(f"the kernel knows no such instruction: {code:#x}")


def verdict(rules: list[Refuse], call: str, *arguments: int, machine: str = "x86_64") -> int | None:
    """The error a call ends with; None when it goes through."""
    known = ARCHITECTURES[machine]
    action = judge(filter_for(rules, machine), known.audit, known.numbers[call], *arguments)
    return None if action == ALLOW else action & 0xFFFF


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("rules", [seccomp.NAMESPACED, [*seccomp.SHARED, *seccomp.SAME_USER]])
def test_every_unconditional_refusal_gives_its_error(machine: str, rules: list[Refuse]) -> None:
    known = ARCHITECTURES[machine]
    program = filter_for(rules, machine)
    for rule in rules:
        if not rule.when and (number := known.numbers.get(rule.call)) is not None:
            assert judge(program, known.audit, number) == ERROR | rule.error, rule


@given(st.sampled_from(MACHINES), st.integers(0, 600), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_calls_that_are_not_named_go_through(machine: str, number: int, arguments: list[int]) -> None:
    known = ARCHITECTURES[machine]
    rules = [*seccomp.SHARED, *seccomp.SAME_USER, *seccomp.SAME_USER_SIGNALS, *seccomp.TRUNCATION]
    if number not in {known.numbers.get(rule.call) for rule in rules}:
        assert judge(filter_for(rules, machine), known.audit, number, *arguments) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_end_the_program(machine: str) -> None:
    # i386 numbers its calls differently: a filter for one would wave through the other's.
    assert judge(filter_for(seccomp.NAMESPACED, machine), 0x40000003, 11) == KILL


def test_the_second_door_of_x86_is_shut() -> None:
    program = filter_for(seccomp.NAMESPACED, "x86_64")
    assert judge(program, ARCHITECTURES["x86_64"].audit, 0x40000000 | X86["ptrace"]) == ERROR | errno.EPERM


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(LookupError):
        filter_for(seccomp.NAMESPACED, "pdp11")


@pytest.mark.parametrize(("family", "expected"), [(1, None), (2, None), (10, None), (16, 97), (17, 97), (40, 97)])
def test_in_a_network_of_its_own_only_divided_families_have_sockets(family: int, expected: int | None) -> None:
    assert verdict(seccomp.NAMESPACED, "socket", family) == expected


@pytest.mark.parametrize("family", [1, 2, 10, 16, 40])
def test_without_a_network_of_its_own_no_family_has(family: int) -> None:
    assert verdict(seccomp.SHARED, "socket", family) == errno.EACCES


@pytest.mark.parametrize(("kind", "expected"), [(1, None), (5, None), (1 | 0o2004000, None), (2, 13), (2 | 0o4000, 13)])
def test_only_connected_pairs_of_sockets_are_made(kind: int, expected: int | None) -> None:
    assert verdict(seccomp.SHARED, "socketpair", 1, kind) == expected


@pytest.mark.parametrize("address", [1, 1 << 32, (1 << 47) - 4096])
def test_nothing_is_sent_to_an_address(address: int) -> None:
    assert verdict(seccomp.SHARED, "sendto", 3, 0, 10, 0, address, 16) == errno.EACCES
    assert verdict(seccomp.SHARED, "sendto", 3, 0, 10, 0, 0, 0) is None


@pytest.mark.parametrize("flag", [1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)])
def test_no_clone_makes_a_namespace(flag: int) -> None:
    assert verdict(seccomp.NAMESPACED, "clone", flag | 17) == errno.EPERM
    assert verdict(seccomp.NAMESPACED, "clone", 0x3D0F00) is None, "threads are made"


def test_threads_find_their_way_round_a_call_that_cannot_be_judged() -> None:
    assert verdict(seccomp.NAMESPACED, "clone3") == errno.ENOSYS


def test_a_program_limits_itself_and_nobody_else() -> None:
    assert verdict(seccomp.SAME_USER, "prlimit64", 0) is None
    assert verdict(seccomp.SAME_USER, "prlimit64", 4711) == errno.EPERM
    assert verdict(seccomp.SAME_USER, "setpriority", 0, 0, 5) is None
    assert verdict(seccomp.SAME_USER, "setpriority", 2, 0, 5) == errno.EPERM


def test_an_open_that_cuts_a_file_short_without_the_right_to_write_is_refused() -> None:
    assert verdict(seccomp.TRUNCATION, "openat", 0, 0, 0o1000) == errno.EPERM
    assert verdict(seccomp.TRUNCATION, "openat", 0, 0, 0o1001) is None, "writing is Landlock's to judge"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_conditions_hold_together_or_not_at_all(first: int, mask: int, value: int, second: int) -> None:
    rule = Refuse("ioctl", 1, (When(0, "eq", value & mask, mask), When(1, "any", 0xF0), When(2, "given")))
    holds = (first & mask & 0xFFFFFFFF) == (value & mask) and bool(second & 0xF0) and second != 0
    assert (verdict([rule], "ioctl", first, second, second) is not None) == holds


@pytest.mark.parametrize(
    ("abi", "same_user", "kill", "truncate"),
    [(1, True, True, True), (3, True, True, False), (6, True, False, False), (1, False, False, True)],
)
def test_the_filter_fills_the_gaps_of_older_landlocks(abi: int, same_user: bool, kill: bool, truncate: bool) -> None:
    rules = Landlock(abi).refusals(same_user=same_user)
    assert (verdict(rules, "kill", 4711, 9) is not None) == kill
    assert (verdict(rules, "truncate") is not None) == truncate
