import hypothesis
import pytest
from hypothesis import strategies as st

from tiro.errors import InvalidSessionIdError
from tiro.stores.names import check_id, file_stem, safe_id, with_suffixes


@pytest.mark.parametrize(
    "id", ["a", "project-NAME", "session-20260101-000000", "x_y.z-1", "A" * 200, "0"]
)
def test_safe_ids_are_accepted(id: str) -> None:
    """M7.3"""
    check_id(id)


@pytest.mark.parametrize(
    "id",
    ["", "../x", "..", "a..b", "a/b", "a\\b", "-a", ".a", "a b", "é", "a\n", "a\x00", "A" * 201],
)
def test_unsafe_ids_are_refused(id: str) -> None:
    """M7.3"""
    with pytest.raises(InvalidSessionIdError):
        check_id(id)


@pytest.mark.parametrize(
    ("key", "stem"),
    [
        ("session-20260101-000000", "session-20260101-000000"),
        ("a.b_c-d", "a.b_c-d"),
        ("telegram:123", "k-ehim8pr7d5gmsn9i64p36"[:2]),
        ("Upper", "k-"),
        ("con", "k-"),
        ("nul.txt", "k-"),
        ("trailing.", "k-"),
        ("k-abc", "k-"),
        ("h-abc", "k-"),
        ("x" * 300, "h-"),
        ("../../etc/passwd", "k-"),
    ],
)
def test_only_plain_keys_are_their_own_file_name(key: str, stem: str) -> None:
    """N6.4"""
    made = file_stem(key)
    assert made == stem or (stem in ("k-", "h-") and made.startswith(stem))
    assert len(made) <= 200
    assert made == made.lower()
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.")


@hypothesis.given(st.text(max_size=300))
def test_an_id_made_safe_is_safe_or_empty(id: str) -> None:
    """M7.3"""
    made = safe_id(id)
    assert safe_id(made) == made
    if made:
        check_id(made)


def test_a_safe_id_stays_and_another_can_be_recognised() -> None:
    assert safe_id("From-Afar_1.b_") == "From-Afar_1.b_"
    assert safe_id("telegram:123") == "telegram-123"
    assert safe_id("../../etc/passwd") == "etc-passwd"
    assert safe_id("\u00e9") == ""


KEYS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="aAbBkKhH-:._/\\", max_size=6),
    st.sampled_from(["a:b", "a_b", "A:b", "a;b", "aux", "AUX", "k-", "h-"]),
)


@hypothesis.given(KEYS, KEYS)
def test_different_keys_never_share_a_file(one: str, other: str) -> None:
    """N6.4, also where the file system ignores case."""
    if one != other:
        assert file_stem(one).casefold() != file_stem(other).casefold()


def test_suffixes_count_up_and_keep_ids_safe() -> None:
    """M2.8"""
    names = with_suffixes("session-1")
    assert [next(names) for _ in range(3)] == ["session-1", "session-1-01", "session-1-02"]
    long = with_suffixes("x" * 200)
    for id in (next(long), next(long)):
        check_id(id)
