"""Which servers does a home need, and with which URLs are they reached?

What the environment names (DATABASE_URL, CELERY_BROKER_URL) is used as it is; what it does not name is embedded.
"""

import os
import signal
from pathlib import Path

from console.embedded import roles
from console.embedded.broker import embedded_valkey, folder_broker
from console.embedded.layout import Layout
from console.embedded.postgres import SUPERUSER, Postgres
from console.embedded.processes import ProcessTree, Server

SERVER_NAMES = ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL")
JOINED_NAMES = (*SERVER_NAMES, "BERTH_BASE_URL")  # what a command takes over from a running console


def schema_stamp(layout: Layout) -> Path:
    """The file that says which migrations the embedded database has."""
    return layout.database_home / "pg" / "schema"


def embedded_urls(postgres: Postgres) -> dict[str, str]:
    """The URLs of both roles of an embedded database."""
    return {"DATABASE_URL": postgres.url(roles.WEB), "DATABASE_OWNER_URL": postgres.url(roles.OWNER)}


def start_postgres(tree: ProcessTree) -> Postgres:
    """Starts the embedded database; it may not answer yet (see `finish_postgres`)."""
    postgres = Postgres(tree.layout)
    if postgres.prepare():
        schema_stamp(tree.layout).unlink(missing_ok=True)
    tree.start(
        Server(
            name="postgres",
            command=postgres.command(),
            stop_signal=signal.SIGINT,  # fast: sessions end, everything is written
            patience_seconds=60.0,
            options=postgres.start_options(),
        )
    )
    return postgres


def finish_postgres(tree: ProcessTree, postgres: Postgres) -> dict[str, str]:
    """Waits for the embedded database, makes its roles; the URLs to reach it by. Raises SetupError."""
    server = next(server for server in tree.servers if server.name == "postgres")
    postgres.wait(server.is_running)
    roles.make_roles(postgres.url(SUPERUSER, "postgres"))
    return embedded_urls(postgres)


def start_broker(tree: ProcessTree) -> str:
    """Starts the embedded broker and waits for it; its URL. A folder serves where no broker program is installed."""
    valkey = embedded_valkey(tree.layout)
    if not valkey:
        return folder_broker(tree.layout)
    valkey.prepare()
    server = tree.start(Server(name="valkey", command=valkey.command()))
    valkey.wait(server.is_running)
    return valkey.url


def given_urls() -> dict[str, str]:
    """The URLs that the environment names."""
    return {name: os.environ[name] for name in SERVER_NAMES if os.environ.get(name)}
