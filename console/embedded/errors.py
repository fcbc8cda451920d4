"""What went wrong in a way that the person at the terminal can mend?"""


class SetupError(RuntimeError):
    """A fault to show as one sentence, without a traceback: it says what is missing and how to get it."""
