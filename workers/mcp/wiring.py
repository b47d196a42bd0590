"""The MCP servers as the settings want them; what they need is loaded with the first agent that names one."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.known import mcp_servers
from orchestrator.settings import Settings
from registry.packs.names import taken
from registry.skills.skill import Skill

if TYPE_CHECKING:
    from workers.mcp.servers import McpServers
    from workers.net.guard import Guard


class Lazily:
    """The servers of a process, made when they are asked for."""

    def __init__(
        self, settings: Settings, guard: "Guard | None" = None, catalogue: Sequence[Skill] | None = None
    ) -> None:
        """
        Args:
            guard: the way out; None: one is made when it is needed.
            catalogue: the skills whose names are taken; None: they are looked up then.
        """
        self._settings, self._guard, self._catalogue = settings, guard, catalogue
        self._lock = threading.Lock()
        self._made: McpServers | None = None

    def __call__(self, ids: Sequence[str], left_out: Callable[[str, str | None, str], None]) -> Sequence[Skill]:
        """See `Services.mcp`."""
        try:
            servers = self.made()
        except ImportError as error:
            for id_ in ids:
                left_out(id_, None, f"the client is not installed: {error} (pip install 'officina[skills]')")
            return ()
        return servers.skills(ids, left_out)

    def made(self) -> "McpServers":
        """The servers themselves.

        Raises:
            ImportError: the client is not installed.
        """
        from registry.skills import catalogue
        from workers.mcp.servers import McpServers, Timing
        from workers.net.wiring import guard_for

        with self._lock:
            if self._made is None:
                settings = self._settings
                timing = Timing(settings.mcp_start_s, settings.limits.tool_timeout_ms / 1000, settings.mcp_idle_s)
                names = taken(self._catalogue if self._catalogue is not None else catalogue.build())
                guard = self._guard or guard_for(settings)
                self._made = McpServers(lambda: mcp_servers(settings), guard, names, timing)
            return self._made

    def close(self) -> None:
        """Ends what was started."""
        if self._made is not None:
            self._made.close()
