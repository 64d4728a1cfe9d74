"""What a migration tells the maintainer: every key that did not simply move."""

from dataclasses import dataclass, field
from typing import Literal

#: ``changed``: it says the same in another form; ``left out``: it has no meaning here;
#: ``to do``: somebody must decide.
NoteKind = Literal["changed", "left out", "to do"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """One remark: the old file, the key in it, and what became of it."""

    file: str
    key: str
    kind: NoteKind
    text: str


@dataclass(slots=True)
class Notes:
    """The remarks on one file, as they are made."""

    file: str
    all: list[Note] = field(default_factory=list)

    def of(self, file: str) -> "Notes":
        """Return the same list, for remarks on another file."""
        return Notes(file, self.all)

    def changed(self, key: str, text: str) -> None:
        """Note that a key says the same in another form."""
        self.all.append(Note(file=self.file, key=key, kind="changed", text=text))

    def left_out(self, key: str, text: str) -> None:
        """Note that a key has no meaning here."""
        self.all.append(Note(file=self.file, key=key, kind="left out", text=text))

    def to_do(self, key: str, text: str) -> None:
        """Note that somebody must decide."""
        self.all.append(Note(file=self.file, key=key, kind="to do", text=text))
