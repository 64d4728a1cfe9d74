"""Frozen values: made, compared, hashed, ordered, pickled and copied as dataclasses are."""

import copy
import dataclasses
import functools
import pickle
from collections import deque
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheelfarm.values import NOTHING, replace, value

T = TypeVar("T")


@value(kw_only=False, order=True)
class Point:
    """Two numbers."""

    x: int
    y: int = 0

    @property
    def total(self) -> int:
        """Their sum."""
        return self.x + self.y


@dataclasses.dataclass(frozen=True, order=True)
class Twin:
    """The same, by dataclasses."""

    x: int
    y: int = 0


@value
class Named:
    """A name, and what it is of."""

    name: str
    of: Point | None = None


@value(unseen=("source",))
class Lazy(Generic[T]):
    """A value with something that is worked out once."""

    name: str
    source: object

    @cached_property
    def upper(self) -> str:
        """The name in capitals."""
        return self.name.upper()


#: The same classes for calls that a type checker refuses.
point: Any = Point
named: Any = Named

numbers = st.tuples(st.integers(-3, 3), st.integers(-3, 3))


@given(numbers, numbers)
def test_values_compare_as_dataclasses_do(one: tuple[int, int], other: tuple[int, int]) -> None:
    ours, theirs = (Point(*one), Point(*other)), (Twin(*one), Twin(*other))
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    assert (ours[0] < ours[1]) == (theirs[0] < theirs[1])
    assert (ours[0] <= ours[1]) == (theirs[0] <= theirs[1])
    assert (ours[0] > ours[1]) == (theirs[0] > theirs[1])
    assert (ours[0] >= ours[1]) == (theirs[0] >= theirs[1])
    assert ours[0] != ours[1] or hash(ours[0]) == hash(ours[1])


@given(numbers)
def test_values_are_copied_and_pickled_whole(numbers: tuple[int, int]) -> None:
    made = Named(name="a", of=Point(*numbers))
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own bytes
    assert copy.deepcopy(made) == made
    assert copy.copy(made) == made


def test_a_value_is_another_than_a_tuple_or_a_value_of_another_class() -> None:
    others: tuple[Any, ...] = ((1, 2), Twin(1, 2))
    assert Point(1, 2) not in others
    with pytest.raises(TypeError):
        assert Point(1, 2) < (1, 3)  # type: ignore[operator]


def test_fields_cannot_be_set_added_or_deleted() -> None:
    made: Any = Point(1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(made, name, 2)
    with pytest.raises(AttributeError, match="frozen"):
        del made.x
    assert made == Point(1, 0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (point, "not given: x"),
        (lambda: point(1, z=2), "unknown: z"),
        (lambda: point(1, 2, 3), "by position"),
        (lambda: point(1, x=1), "by position"),
        (lambda: named("a"), "by position"),
        (lambda: named(nam="a", of=None), "unknown: nam; not given: name"),
        (lambda: named(name="a", of=None, more=1), "unknown: more"),
        (lambda: replace(named(name="a"), more=1), "unknown: more"),
    ],
)
def test_what_is_wrong_with_a_making_is_said(make: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()


@pytest.mark.parametrize("default", [[], {}, set(), bytearray(b"x"), deque()])
def test_a_default_that_could_be_changed_is_refused(default: Any) -> None:
    with pytest.raises(TypeError, match="could be changed"):

        @value
        class Shared:
            names: Any = default


def test_a_default_that_nobody_can_change_is_taken() -> None:
    @value
    class Unshared:
        names: Any = NOTHING
        data: bytes = b""
        more: tuple[int, ...] = (1, 2)

    assert Unshared().names == {}


class Base:
    """What a value may be made from: a class without fields."""

    __slots__ = ()

    def word(self) -> str:
        """One word."""
        return "base"

    @classmethod
    def kind(cls) -> str:
        """The class's name."""
        return cls.__name__


@value
class Upper(Base):
    """Methods that ask for the class that they stand in."""

    name: str

    def word(self) -> str:
        """Two words."""
        return f"{self.name} {super().word()}"

    @classmethod
    def kind(cls) -> str:
        """The class's name, louder."""
        return super().kind().upper()

    @property
    def same(self) -> bool:
        """Whether this is no class made from another."""
        return type(self) is __class__  # type: ignore[name-defined]

    @cached_property
    def once(self) -> str:
        """The word, worked out once."""
        return super().word()

    @functools.lru_cache  # noqa: B019 - a wrapped method
    def wrapped(self) -> str:
        """The word, behind a wrapper."""
        return super().word()


def test_methods_know_the_class_that_they_stand_in() -> None:
    made = Upper(name="a")
    assert made.word() == "a base"
    assert Upper.kind() == "UPPER"
    assert made.same
    assert made.once == made.wrapped() == "base"


def test_another_classs_method_stays_that_of_its_class() -> None:
    class Other(Base):
        __slots__ = ()

        def word(self) -> str:
            return f"other {super().word()}"

    @value
    class Borrower(Base):
        name: str
        borrowed = Other.word

    assert Borrower(name="a").word() == "base"
    assert Other().word() == "other base"


def test_a_field_may_be_named_self() -> None:
    @value(kw_only=False)
    class Link:
        self: str
        kind: str = ""

    made: Any = Link
    assert made(self="a", kind="b") == made("a", "b") == made("a", kind="b")
    assert replace(made("a"), self="b") == made("b")
    assert copy.deepcopy(made("a")) == made("a")


def test_replace_takes_values_and_dataclasses() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert replace(Twin(1, 2), y=3) == Twin(1, 3)


def test_methods_and_what_is_worked_out_once_stay() -> None:
    made = Lazy[int](name="a", source=object())
    assert made.upper == made.upper == "A"
    assert made == Lazy(name="a", source=None)
    assert repr(made) == "Lazy(name='a')"
    assert Point(1, 2).total == 3
    assert Point.__doc__ == "Two numbers."


def test_a_match_statement_takes_fields_by_position() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("it did not match")


def test_a_value_without_fields() -> None:
    @value
    class Empty:
        pass

    assert Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    assert repr(Empty()).endswith("Empty()")


def test_what_a_value_cannot_have_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="is no field"):

        @value
        class Constant:
            limit: ClassVar[int] = 3

    with pytest.raises(TypeError, match="would never be called"):

        @value
        class Checked:
            size: int

            def __post_init__(self) -> None:
                raise AssertionError

    with pytest.raises(TypeError, match=r"Taken\.field_names can be no field"):

        @value
        class Taken:
            field_names: str

    with pytest.raises(TypeError, match=r"Misspelt\.sise can be no field"):

        @value(unseen=("sise",))
        class Misspelt:
            size: int

    @value
    class First:
        size: int

    with pytest.raises(TypeError, match="their fields are not joined"):

        @value
        class Second(First):
            colour: str
