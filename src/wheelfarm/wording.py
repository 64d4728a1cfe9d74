"""Words for people: a number and a noun in, text that reads well out."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 binary``, ``3 binaries``."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
