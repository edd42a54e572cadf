"""Pieces of a stream's text, put together without breaking a character in two."""


class JoinedText:
    """Pieces of text to be yielded as one; half of a surrogate pair waits for its other half."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._pieces)

    def add(self, piece: str) -> None:
        """Take one more piece."""
        self._pieces.append(piece)

    def take(self, *, is_last: bool = False) -> str:
        """All that came since the last time; the last time without waiting for another half."""
        text = "".join(self._pieces)
        self._pieces = []
        if not text:
            return ""
        if not is_last and "\ud800" <= text[-1] <= "\udbff":
            self._pieces = [text[-1]]
            text = text[:-1]
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text
