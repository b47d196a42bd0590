"""What `officina doctor` tests: each probe really does the thing once, and says in a line how it went."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy.exc import SQLAlchemyError

from orchestrator.settings import Settings

#: Seconds a connection may take.
PATIENCE_S = 3

Verdict = Literal["ok", "broken", "absent"]


@dataclass(frozen=True)
class Finding:
    """How one part fares. `absent` is no fault: the part is not there, and nothing asked for it."""

    part: str
    verdict: Verdict
    words: str
    #: What to do about it.
    remedy: str = ""


def run(settings: Settings) -> list[Finding]:
    """Every probe in order; one that breaks is a finding itself."""
    found: list[Finding] = []
    for part, probe in _PROBES.items():
        try:
            found += probe(settings)
        except Exception as error:  # a driver's own error: its first line says what is wrong
            first = next(iter(str(getattr(error, "orig", None) or error).splitlines()), type(error).__name__)
            found.append(Finding(part, "broken", first, _REMEDIES.get(part, "")))
    return found


def spelling(_: Settings) -> list[Finding]:
    """Names with our prefix that set nothing."""
    from orchestrator.settings import unknown_variables, variables
    from registry.graph.findings import nearest

    return [
        Finding("settings", "broken", f"{name} sets nothing{nearest(name, variables())}", "correct or unset it")
        for name in unknown_variables()
    ]


def secrecy(settings: Settings) -> list[Finding]:
    """Whether calls that hold a secret can be stored encrypted."""
    from orchestrator.store.database import shares_key
    from orchestrator.vault import Vault

    if not shares_key(settings):
        words = "no OFFICINA_SECRET_KEY is set: calls that hold a secret are stored as they are"
        remedy = "`officina connections new-key` makes one; every worker and command needs the same"
        return [Finding("secrets", "absent", words, remedy)]
    if settings.secret_key is None:
        return [Finding("secrets", "ok", f"encrypted with the key in {settings.home}, at their first use")]
    Vault(settings)
    return [Finding("secrets", "ok", "encrypted with OFFICINA_SECRET_KEY")]


def database(settings: Settings) -> list[Finding]:
    """Connects and compares the schema with this release."""
    from orchestrator.store import schema
    from orchestrator.store.database import get_database, revisions

    known = get_database(settings)
    name, shown = known.url.database, known.url.render_as_string(hide_password=True)
    if known.sqlite and name and not Path(name).exists():
        remedy = "`officina up` or `officina submit` makes it"
        return [Finding("database", "absent", f"{shown} is not there yet", remedy)]
    if wrong := schema.faults(known):
        words = f"{shown} does not fit this release: {schema.told(wrong)}"
        return [Finding("database", "broken", words, schema.remedy(known))]
    there, wanted = revisions(known)
    words = (
        f"schema {there}" if there == wanted else f"schema {there}, which this release can work on (it has {wanted})"
    )
    return [Finding("database", "ok", f"{shown}, {words}")]


def broker(settings: Settings) -> list[Finding]:
    """Connects as a sender of wake-ups does."""
    if settings.broker is None:
        return [Finding("broker", "absent", "none is set and no stack runs here", "`officina up` brings its own")]
    from orchestrator.queue import sender

    connection: Any = sender(settings).connection_for_write()  # typed too narrowly upstream
    with connection:
        connection.ensure_connection(max_retries=1, interval_start=0, timeout=PATIENCE_S)
        connection.default_channel.close()
        return [Finding("broker", "ok", connection.as_uri())]


def queues(settings: Settings) -> list[Finding]:
    """Whether every queue that a rule names, or runs wait in, has a living worker, and all go by the same rules."""
    from orchestrator.agreement import REMEDY, disagreement
    from orchestrator.store import schema, unserved, workers
    from orchestrator.store.database import get_database, is_new
    from registry.queues import names

    database = get_database(settings)
    if is_new(database) or schema.faults(database):
        return [Finding("queues", "absent", "no database says so", "see what is said of the database")]
    with database.read() as connection:
        served, waiting = workers.serving(connection), unserved.depths(connection)
    if not served:
        return [Finding("queues", "absent", "no worker was seen within a minute", "`officina worker` starts one")]
    known = [*names(settings.queues), *sorted(set(waiting) - set(names(settings.queues)))]
    bare = [name for name in known if name not in served]
    words = ", ".join(f"{name}: {served[name]} worker{'' if served[name] == 1 else 's'}" for name in sorted(served))
    found = [Finding("queues", "broken" if bare else "ok", words)]
    if (differ := disagreement(settings)) is not None:
        found.append(Finding("  rules", "broken", differ, REMEDY))
    for name in bare:
        words = f"no worker serves it; {waiting.get(name, 0)} runs wait there"
        found.append(Finding(f"  {name}", "broken", words, f"`officina worker --queues {name}` serves it"))
    return found


def redis(settings: Settings) -> list[Finding]:
    """Asks Redis for its version."""
    if settings.redis is None:
        words = "none: signals and live views read the database instead"
        return [Finding("redis", "absent", words, "set OFFICINA_REDIS_URL beside a RabbitMQ broker")]
    from orchestrator.redis_clients import connect, primary

    with connect(settings.redis, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S) as client:
        version = str(client.info("server").get("redis_version", "?"))
        where = primary(client)
    old = version.partition(".")[0].isdecimal() and _numbers(version) < (6, 2)
    words = f"{settings.redis}, {where}version {version}"
    return [Finding("redis", "broken" if old else "ok", words, "6.2 or later is needed" if old else "")]


def model(settings: Settings) -> list[Finding]:
    """Reads the settings only: a call would cost money."""
    if not settings.has_model:
        plays = "the stand-in plays it" if settings.stand_in else "only scripts and rehearsals run"
        remedy = "set OFFICINA_MODEL_API_KEY and OFFICINA_MODELS__STANDARD__NAME, or OFFICINA_STAND_IN=1"
        return [Finding("model", "absent", f"no model is set: {plays}", "" if settings.stand_in else remedy)]
    tiers = [f"{tier} {found.name}" for tier, found in sorted(settings.models.items())]
    missing = sorted({"fast", "standard", "deep"} - set(settings.models))
    words = ", ".join(tiers) + (f"; no model for {', '.join(missing)}" if missing else "")
    if "standard" in missing:
        return [Finding("model", "broken", words, "set OFFICINA_MODELS__STANDARD__NAME")]
    return [Finding("model", "ok", words)]


def sandbox(settings: Settings) -> list[Finding]:
    """Runs a program behind each link of the chain; the first that holds is used."""
    from workers.sandbox.process import REMEDY, describe

    reports = describe()
    first = next((report.name for report in reports if report.usable), None)
    if first is None:
        found = [Finding("sandbox", "broken", "no link of the chain works here: code.execute is refused", REMEDY)]
    else:
        found = [Finding("sandbox", "ok", f"{first} is used")]
    for report in reports:
        words = report.holds if report.usable else report.why_not
        found.append(Finding(f"  {report.name}", "ok" if report.usable else "absent", words))
    return found


def workspaces(settings: Settings) -> list[Finding]:
    """Whether the root is the one that all work in; then writes and renames a file there, as every write does."""
    from orchestrator import volume
    from registry.errors import OfficinaError

    root, shared = settings.workspaces, ""
    try:
        fault = volume.fault(settings)
        shared = ", and is the one that all hosts work in" if volume.is_elected(settings) else ""
    except (OfficinaError, SQLAlchemyError):
        fault = None  # what is wrong with the database stands under its own name
    if fault is not None:
        return [Finding("workspaces", "broken", fault, _REMEDIES["workspaces"])]
    if not root.exists():
        return [Finding("workspaces", "absent", f"{root} is not there yet", "it is made at the first submit")]
    trial = root / f".officina-doctor-{secrets.token_hex(4)}"
    renamed = trial.with_suffix(".renamed")
    try:
        trial.write_bytes(b"officina")
        trial.rename(renamed)
    finally:
        trial.unlink(missing_ok=True)
        renamed.unlink(missing_ok=True)
    return [Finding("workspaces", "ok", f"{root} can be written{shared}")]


def skills(settings: Settings) -> list[Finding]:
    """Builds the registry; a name given twice would stop every worker."""
    from registry.packs import names
    from registry.skills import catalogue

    found = catalogue.build()
    names.taken(found)
    return [Finding("skills", "ok", f"{len(found)} registered")]


def presets(settings: Settings) -> list[Finding]:
    """Reads them as a submit does; a file that was left out is a fault, a preset that waits for a pack is none."""
    from orchestrator.known import load_presets, registries

    found = load_presets(settings, registries(settings, stand_in=True))
    ready = sum(not preset.lacks for preset in found.values())
    remedy = "correct the file, or take it away"
    bad = [Finding("  left out", "broken", str(fault), remedy) for fault in found.faults]
    return [Finding("presets", "ok", f"{len(found)} found, {ready} can run with the packs of this release"), *bad]


def documents(settings: Settings) -> list[Finding]:
    """Reads the playbooks as a worker does; a file that was left out is a fault of that file alone."""
    from orchestrator.known import playbooks

    found = playbooks(settings)
    remedy = "correct the file, or take it away; docs/playbooks.md shows the form"
    bad = [Finding("  left out", "absent", str(fault), remedy) for fault in found.faults]
    own = sum(not book.shipped for book in found.values())
    return [Finding("documents", "ok", f"{len(found)} found, {own} of them yours"), *bad]


def servers(settings: Settings) -> list[Finding]:
    """Starts every configured MCP server and lists its tools, as the first agent that names it does."""
    from orchestrator.known import mcp_servers
    from workers.mcp.wiring import Lazily

    configured = mcp_servers(settings)
    bad = [Finding("  left out", "broken", str(fault), "docs/mcp.md shows the form") for fault in configured.faults]
    if not configured:
        return bad and [Finding("mcp", "broken", "no server can be used"), *bad]
    lazily = Lazily(settings)
    try:
        looked = lazily.made().look()
    finally:
        lazily.close()
    ready = sum(one.state == "ready" for one in looked)
    found = [Finding("mcp", "ok", f"{ready} of {len(looked)} servers are ready")]
    for one in looked:
        if one.state != "ready":
            verdict: Verdict = "absent" if one.state == "disabled" else "broken"
            found.append(Finding(f"  {one.server.id}", verdict, one.reason, f"look at {one.server.path}"))
        found += [Finding(f"  {one.server.id}", "absent", f"{tool}: {why}") for tool, why in one.left_out]
    return [*found, *bad]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


_PROBES: dict[str, Callable[[Settings], list[Finding]]] = {
    "settings": spelling,
    "database": database,
    "secrets": secrecy,
    "broker": broker,
    "queues": queues,
    "redis": redis,
    "model": model,
    "sandbox": sandbox,
    "workspaces": workspaces,
    "skills": skills,
    "presets": presets,
    "documents": documents,
    "mcp": servers,
}
_REMEDIES = {
    "database": "look at OFFICINA_DATABASE_URL",
    "broker": "look at OFFICINA_BROKER_URL; `officina up` brings a Redis of its own",
    "redis": "look at OFFICINA_REDIS_URL",
    "workspaces": "look at OFFICINA_WORKSPACE_ROOT: workers must be able to write and rename there",
}
