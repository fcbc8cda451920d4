"""Which text may come in at a door of the console? (one rule for pages and API)"""

import re

# NUL and half a surrogate pair have no place in PostgreSQL. The marks that turn the direction of what follows
# (Unicode TR 9: embeddings, overrides, isolates) let a text read otherwise than it is.
_UNKEPT = re.compile("[\x00\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
SENTENCE = "A text holds no NUL, no half of a surrogate pair, and no mark that turns its direction around."


def is_kept(text: str) -> bool:
    """Whether the text may be kept and shown."""
    return _UNKEPT.search(text) is None
