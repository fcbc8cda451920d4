"""What did the files of a cluster say before? (a git repository in the cluster's folder, through dulwich)

Only Berth's own files are committed. A history that cannot be written never stops a push: it says why, and the next
write catches up.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dulwich.errors import NotGitRepository
from dulwich.file import FileLocked
from dulwich.objects import Commit
from dulwich.repo import Repo

_AUTHOR = b"Berth <berth@localhost>"
_STALE_SECONDS = 10
_LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock")


class History:
    """Commits of some files of one folder. Whoever calls holds the folder's lock."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, tuple(names)

    def keep(self, message: str) -> str:
        """Commit our files if they differ from the last commit; one line on what was done, "" for nothing."""
        self._drop_stale_locks()
        try:
            with self._open() as repo:
                return self._commit(repo, message)
        except (FileLocked, OSError, KeyError, ValueError, AssertionError, NotGitRepository) as error:
            return f"the history was not written: {type(error).__name__}"

    def _open(self) -> Repo:
        try:
            return Repo(str(self._folder))
        except NotGitRepository:
            return Repo.init(str(self._folder), default_branch=b"main")

    def _commit(self, repo: Repo, message: str) -> str:
        worktree = repo.get_worktree()
        known = repo.open_index()
        names = [n for n in self._names if (self._folder / n).is_file() or n.encode() in known]
        if not names:
            return ""
        worktree.stage(names)
        tree = repo.open_index().commit(repo.object_store)
        with suppress(KeyError):  # the first commit has none before it
            last = repo[repo.head()]
            if isinstance(last, Commit) and last.tree == tree:
                return ""
        commit = worktree.commit(
            message=message.encode(), author=_AUTHOR, committer=_AUTHOR, no_verify=True, sign=False, encoding=b"utf-8"
        )
        return f"commit {commit.decode()[:12]}"

    def _drop_stale_locks(self) -> None:
        """A git that was killed leaves its lock files; a living one holds them for moments only."""
        for name in _LOCKS:
            lock = self._folder / ".git" / name
            with suppress(OSError):
                if time.time() - lock.stat().st_mtime > _STALE_SECONDS:
                    lock.unlink()
