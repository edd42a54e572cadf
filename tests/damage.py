"""Bytes as an accident or somebody's hand leaves them: a strategy that damages what is whole."""

from hypothesis import strategies as st

ODD = [
    b"", b"\x00" * 8, b"\xff", b'"', b"\\ud83d", b"\n", b"\r", b"null", b"-1", b"1e999", b"true",
    b"[" * 300, b"{}", b"[]", b'""', b": ", b"- ", b"\xe2\x80\xa8", b"9" * 400, b"&a *a", b"!!x ",
]  # fmt: skip
LENGTHS = [0, 1, 1, 4, 12, 40, 4000]


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes with one to three pieces lost, doubled or replaced."""
    data = whole
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(0, len(data)))
        last = min(len(data), first + draw(st.sampled_from(LENGTHS)))
        put_in = draw(st.sampled_from([*ODD, data[first:last] * 2]) | st.binary(max_size=6))
        cut_off = draw(st.integers(0, 9)) == 0
        data = data[:first] + put_in + (b"" if cut_off else data[last:])
    return data
