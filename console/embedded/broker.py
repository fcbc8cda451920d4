"""How is the embedded broker started, and which URL do its clients use?

Valkey on a socket of its own with an append-only file; where no such server is found, a folder (kombu's file
transport). Either may lose messages: rows hold the work and the broker only wakes.
"""

import time
from collections.abc import Callable
from pathlib import Path

from console.embedded.binaries import find_valkey
from console.embedded.errors import SetupError
from console.embedded.layout import Layout


class Valkey:
    """One Valkey (or Redis) server below a home."""

    def __init__(self, layout: Layout, program: Path) -> None:
        self.program = program
        self.socket = layout.run / "valkey.sock"
        self.folder = layout.home / "valkey"

    @property
    def url(self) -> str:
        """The URL for CELERY_BROKER_URL."""
        return f"redis+socket://{self.socket}"

    def prepare(self) -> None:
        """Makes the folder and removes the socket that a killed server left."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.socket.unlink(missing_ok=True)

    def command(self) -> list[str]:
        """The command that runs the server in the foreground."""
        return [
            *(str(self.program), "--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"),
            *("--dir", str(self.folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            *("--maxmemory-policy", "noeviction", "--loglevel", "notice", "--daemonize", "no"),
        ]

    def wait(self, is_running: Callable[[], bool], seconds: float = 20.0) -> None:
        """Returns when the server answers. Raises SetupError when it ended or stays silent."""
        import redis

        end = time.monotonic() + seconds
        while True:
            try:
                redis.Redis(unix_socket_path=str(self.socket)).ping()
                return
            except redis.RedisError as error:
                if not is_running() or time.monotonic() > end:
                    raise SetupError(f"the broker did not start: {error}; see valkey.log") from error
                time.sleep(0.02)


def embedded_valkey(layout: Layout) -> Valkey | None:
    """The Valkey of this home, or None where no server program is installed."""
    program = find_valkey()
    return Valkey(layout, program) if program else None


def folder_broker(layout: Layout) -> str:
    """Makes the folders of the file transport (console.settings names the same ones) and returns its URL."""
    for name in ("messages", "control"):
        (layout.home / "broker" / name).mkdir(parents=True, exist_ok=True)
    return "filesystem://"
