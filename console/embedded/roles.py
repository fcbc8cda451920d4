"""Who may do what in the database?

Two roles: the owner makes and changes tables (migrations alone), the web role reads and writes rows and owns nothing.
What is append-only stays so for the web role: it may neither change nor delete it. Trigger functions refuse the same
for everyone; the missing right is the second lock.
"""

from typing import LiteralString
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import sql

OWNER = "berth_owner"
WEB = "berth_web"
DATABASE = "berth"
APPEND_ONLY_TABLES = ("allocations_event", "allocations_eventseal")

_GRANTS: tuple[LiteralString, ...] = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}",
)


def make_roles(superuser_url: str) -> None:
    """Makes both roles and the database in a cluster of our own; what exists already is left as it is."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        for role in (OWNER, WEB):
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
            names = {"database": sql.Identifier(DATABASE), "owner": sql.Identifier(OWNER)}
            connection.execute(sql.SQL("CREATE DATABASE {database} OWNER {owner}").format(**names))


def role_of(url: str) -> str:
    """The role that a connection URL signs in as; empty when it names none."""
    return unquote(urlsplit(url).username or "")


def grant_web(owner_url: str, web_url: str) -> None:
    """Gives the role of `web_url` its rights, as the role of `owner_url`; nothing to do where both are the same."""
    web_role = role_of(web_url)
    if not web_role or web_role == role_of(owner_url):
        return
    with psycopg.connect(owner_url) as connection:
        for statement in _GRANTS:
            connection.execute(sql.SQL(statement).format(role=sql.Identifier(web_role)))
        for table in APPEND_ONLY_TABLES:
            if connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,):
                revoke = sql.SQL("REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON {table} FROM {role}")
                connection.execute(revoke.format(table=sql.Identifier(table), role=sql.Identifier(web_role)))


def has_people(url: str) -> bool:
    """Whether anybody is known to this database: an empty one gets the demo."""
    return _exists(url, "SELECT EXISTS (SELECT 1 FROM allocations_user)")


def has_demo_people(url: str) -> bool:
    """Whether demo sign-ins exist: while they do, the web server listens on this machine alone."""
    return _exists(url, "SELECT EXISTS (SELECT 1 FROM allocations_user WHERE is_demo)")


def _exists(url: str, question: LiteralString) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute(question).fetchone() == (True,)
