"""A user's own file that is edited: what it looks like besides its text stays as it was."""

from pathlib import Path

from wheelfarm import files
from wheelfarm.reading import BYTE_ORDER_MARK, read_exact_text
from wheelfarm.values import value


@value
class UserFile:
    """A file's text, and the byte order mark and line ends that it has.

    A file with line ends of both kinds keeps each line's own.
    """

    path: Path
    text: str = ""
    marked: bool = False
    carriage_returns: bool = False

    @classmethod
    def read(cls, path: Path) -> "UserFile":
        """Read a file; an empty one where there is none. Raises BadInputError as reading does."""
        if not path.exists():
            return cls(path=path)
        exact = read_exact_text(path)
        text = exact.removeprefix(BYTE_ORDER_MARK)
        ends = text.count("\n")
        return cls(
            path=path,
            text=text,
            marked=text != exact,
            carriage_returns=ends > 0 and text.count("\r\n") == ends,
        )

    def write(self, text: str) -> None:
        """Put another text into its place, whole or not at all."""
        if self.carriage_returns:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        files.rewrite_text(self.path, BYTE_ORDER_MARK + text if self.marked else text)
