"""What can go wrong between our words and a scheduler's? (coded errors of every dialect)"""


class DialectError(ValueError):
    """A coded error: `code` for programs, `sentence` for people, `missing` names what is wrong or absent."""

    def __init__(self, code: str, sentence: str, missing: str = "") -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.missing = code, sentence, missing


class UnknownDialect(DialectError):
    """No dialect speaks this kind of scheduler."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        sentence = f"no dialect speaks {kind!r}; known kinds: {', '.join(known)}"
        super().__init__("unknown_dialect", sentence, kind)


class NameNotAllowed(DialectError):
    """A name that must never reach a scheduler: refused before anything is sent."""

    def __init__(self, what: str, name: str, rule: str) -> None:
        super().__init__("name_not_allowed", f"the {what} {name[:80]!r} is not allowed on a cluster: {rule}", what)


class NameClash(DialectError):
    """Two things of ours would carry the same name on the cluster."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__("name_clash", f"two things would both be the {what} {name!r} on the cluster", name)


class UnreadableAnswer(DialectError):
    """What a driver read is empty or not in the form that the dialect knows; nothing is derived from it."""

    def __init__(self, part: str, sentence: str) -> None:
        super().__init__("unreadable_answer", f"{part}: {sentence}", part)


class UnknownReference(DialectError):
    """A desired state that names a flavor or a team which it does not hold."""

    def __init__(self, what: str, name: str, by: str) -> None:
        super().__init__("unknown_reference", f"{by} names the {what} {name!r}, which this state does not hold", name)
