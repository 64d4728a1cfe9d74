"""CMake's variables and conditions as the survey sees them: several values, each under guards."""

import re
from dataclasses import dataclass, field

from wheelfarm.survey.cmake_lexer import Argument
from wheelfarm.survey.guards import Guards, contradictory, merged
from wheelfarm.survey.logic import Truth, holds_plainly
from wheelfarm.survey.values import HOLE

#: Stands in a text where torch's C++ ABI flag came in.
ABI_MARK = "\0abi\0"

_REFERENCE = re.compile(r"\$\{([^${}]*)\}|\$ENV\{([^${}]*)\}|\$CACHE\{([^${}]*)\}")
_FALSE = frozenset({"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})
_TRUE = frozenset({"1", "ON", "YES", "TRUE", "Y"})

#: More alternatives of one value than this are cut.
MAX_ALTERNATIVES = 12
#: More elements appended under guards than this are cut.
MAX_ELEMENTS = 400
#: A value's text is cut here.
MAX_TEXT = 200_000


@dataclass(frozen=True, slots=True)
class Alternative:
    """One value that a variable may have, and when."""

    text: str
    guards: Guards = ()


#: What CMake itself sets on a farm's Linux machine.
PLATFORM = {
    "UNIX": "1", "LINUX": "1", "WIN32": "", "MSVC": "", "APPLE": "", "MINGW": "", "CYGWIN": "",
    "ANDROID": "", "IOS": "", "EMSCRIPTEN": "", "CMAKE_SYSTEM_NAME": "Linux",
    "CMAKE_HOST_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": "x86_64", "HIP_FOUND": "",
    "CMAKE_HOST_UNIX": "1", "CMAKE_HOST_WIN32": "", "CMAKE_HOST_APPLE": "",
    "CMAKE_CUDA_COMPILER": "/farm/cuda/bin/nvcc", "CMAKE_CXX_COMPILER_ID": "GNU",
}  # fmt: skip


@dataclass(slots=True)
class Variables:
    """The variables of one CMake scope; ``set`` under guards keeps what stood there before."""

    values: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    #: Elements that were appended to lists under guards.
    appended: dict[str, tuple[Alternative, ...]] = field(default_factory=dict)
    #: Names that a user may switch (options and the cache); tests of them are never certain.
    switches: set[str] = field(default_factory=set)

    def copy(self) -> "Variables":
        """Return a scope that starts with the same values."""
        return Variables(dict(self.values), dict(self.appended), self.switches)

    def set(self, name: str, text: str, guards: Guards) -> None:
        """Give a variable a value."""
        if guards:
            old = self.values.get(name, (Alternative(""),))
            kept = tuple(each for each in old if each.guards != guards)
            self.values[name] = (Alternative(text, guards), *kept)[:MAX_ALTERNATIVES]
        else:
            self.values[name] = (Alternative(text),)
            self.appended.pop(name, None)

    def assign(self, name: str, other: str, guards: Guards) -> None:
        """Give a variable all that another one may hold."""
        found = [
            Alternative(each.text, together)
            for each in self.alternatives(other)
            if not contradictory(together := merged(guards, each.guards))
        ]
        more = self.appended.get(other, ())
        old = self.values.get(name, (Alternative(""),)) if guards else ()
        kept = [each for each in old if each not in found]
        self.values[name] = (*found, *kept)[:MAX_ALTERNATIVES] or (Alternative(""),)
        before = self.appended.get(name, ()) if guards else ()
        extra = tuple(Alternative(each.text, merged(guards, each.guards)) for each in more)
        self.appended[name] = tuple(dict.fromkeys((*before, *extra)))[:MAX_ELEMENTS]

    def append(self, name: str, text: str, guards: Guards) -> None:
        """Add elements to a list; under guards the list without them stays an alternative."""
        if guards:
            before = self.appended.get(name, ())
            if len(before) < MAX_ELEMENTS:
                self.appended[name] = tuple(dict.fromkeys((*before, Alternative(text, guards))))
            return
        old = self.values.get(name, (Alternative(""),))
        self.values[name] = tuple(
            Alternative(f"{each.text};{text}"[:MAX_TEXT] if each.text else text, each.guards)
            for each in old
        )

    def alternatives(self, name: str) -> tuple[Alternative, ...]:
        """Return a variable's values; one empty text where nothing sets it."""
        return self.values.get(name, (Alternative(PLATFORM.get(name, "")),))

    def plain(self, name: str) -> str | None:
        """Return a variable's value in a plain build; None where it cannot be told."""
        for each in self.alternatives(name):
            held = holds_plainly(each.guards)
            if held is None:
                return None
            if held:
                return each.text or self._plain_elements(name)
        return self._plain_elements(name)

    def _plain_elements(self, name: str) -> str:
        more = self.appended.get(name, ())
        return ";".join(each.text for each in more if holds_plainly(each.guards))

    def expand(self, argument: Argument) -> list[Alternative]:
        """Return an argument's values, its references replaced."""
        if argument.literal or "$" not in argument.text:
            return [Alternative(argument.text)]
        alone = _REFERENCE.fullmatch(argument.text)
        if alone is not None and alone.group(1) is not None:
            return [*self.alternatives(alone.group(1)), *self.appended.get(alone.group(1), ())]
        found = [Alternative(argument.text)]
        for _ in range(12):
            if not any(_REFERENCE.search(each.text) for each in found):
                break
            found = [more for each in found for more in self._once(each)][:MAX_ALTERNATIVES]
        return found

    def _once(self, each: Alternative) -> list[Alternative]:
        match = _REFERENCE.search(each.text)
        if match is None:
            return [each]
        name = match.group(1)
        values = (Alternative(HOLE),) if name is None else self._whole(name)
        start, end = match.span()
        return [
            Alternative(
                each.text[:start] + value.text + each.text[end:],
                merged(each.guards, value.guards),
            )
            for value in values
            if not contradictory(merged(each.guards, value.guards))
        ]

    def _whole(self, name: str) -> tuple[Alternative, ...]:
        values = self.alternatives(name)
        more = self.appended.get(name)
        return (*values, *more[: MAX_ALTERNATIVES - len(values)]) if more else values

    def text(self, argument: Argument) -> str | None:
        """Return an argument's value in a plain build; None where it cannot be told."""
        for each in self.expand(argument):
            held = holds_plainly(each.guards)
            if held is None:
                return None
            if held:
                return None if HOLE in each.text else each.text
        return ""


def constant(text: str) -> bool | None:
    """Return the truth of a CMake constant, None where the text is none."""
    upper = text.upper()
    if upper in _FALSE or upper.endswith("-NOTFOUND"):
        return False
    if upper in _TRUE:
        return True
    return bool(float(text)) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None


class Condition:
    """Tells the arguments of ``if()``: in a plain build, and whether in every build."""

    def __init__(
        self, variables: Variables, arguments: tuple[Argument, ...], known: "Known"
    ) -> None:
        self._variables = variables
        self._words = list(arguments)
        self._known = known
        self._at = 0
        self._certain = True

    def truth(self) -> Truth:
        """Return the condition's truth."""
        plain = self._any()
        if self._at < len(self._words):
            plain = None
        return Truth(plain, certain=self._certain and plain is not None)

    def _peek(self) -> str:
        if self._at >= len(self._words):
            return ""
        word = self._words[self._at]
        return "" if word.quoted else word.text

    def _take(self) -> Argument:
        word = self._words[self._at] if self._at < len(self._words) else Argument(text="")
        self._at += 1
        return word

    def _any(self) -> bool | None:
        found = self._all()
        while self._peek().upper() == "OR":
            self._take()
            other = self._all()
            both = (found, other)
            found = True if True in both else None if None in both else False
        return found

    def _all(self) -> bool | None:
        found = self._not()
        while self._peek().upper() == "AND":
            self._take()
            other = self._not()
            both = (found, other)
            found = False if False in both else None if None in both else True
        return found

    def _not(self) -> bool | None:
        if self._peek().upper() == "NOT":
            self._take()
            found = self._not()
            return None if found is None else not found
        if self._peek() == "(":
            self._take()
            found = self._any()
            if self._peek() == ")":
                self._take()
            return found
        return self._test()

    def _test(self) -> bool | None:
        first = self._take()
        unary = "" if first.quoted else first.text.upper()
        if unary in {"DEFINED", "EXISTS", "TARGET", "COMMAND", "POLICY", "IS_DIRECTORY", "TEST",
                     "IS_ABSOLUTE", "IS_SYMLINK", "IS_READABLE"}:  # fmt: skip
            return self._unary(unary, self._take())
        binary = self._peek().upper()
        if binary in _BINARY:
            self._take()
            return self._binary(binary, first, self._take())
        return self._boolean(first)

    def _unary(self, name: str, argument: Argument) -> bool | None:
        text = self._variables.text(argument)
        if name == "DEFINED" and text is not None:
            if text.startswith("ENV{"):
                self._certain = False
                return False
            if text in self._variables.switches or text not in self._variables.values:
                self._certain = False
            return text in self._variables.values or bool(PLATFORM.get(text))
        if name == "TARGET" and text is not None:
            self._certain = False
            return text in self._known.targets
        if name in {"EXISTS", "IS_DIRECTORY"} and text is not None:
            found = self._known.exists(text)
            self._certain = self._certain and found is not None
            return found
        self._certain = False
        return None

    def _value(self, argument: Argument) -> str | None:
        """Return a comparison's side: a variable's value where the word names one."""
        text = self._variables.text(argument)
        if (
            text is not None
            and not argument.quoted
            and (text in self._variables.values or text in PLATFORM)
        ):
            if text in self._variables.switches or text in PLATFORM:
                self._certain = False
            return self._variables.plain(text)
        if any(name in self._variables.switches for name in _REFERENCE.findall(argument.text)):
            self._certain = False
        if "$" in argument.text:
            self._certain = False
        return text

    def _binary(self, name: str, left: Argument, right: Argument) -> bool | None:
        one, two = self._value(left), self._value(right)
        if one is None or two is None:
            self._certain = False
            return None
        if not one or not two:
            # An empty side may come from a command that is not followed.
            self._certain = False
        match name:
            case "STREQUAL" | "EQUAL" | "PATH_EQUAL":
                return one == two
            case "MATCHES":
                try:
                    return re.search(two, one) is not None if len(one) < 10_000 else None  # noqa: PLR2004 - far above any setting
                except re.error:
                    return None
            case "IN_LIST":
                return one in two.split(";")
            case _:
                self._certain = False
                return None

    def _boolean(self, argument: Argument) -> bool | None:
        text = self._variables.text(argument)
        if text is None:
            self._certain = False
            return None
        known = constant(text)
        if "$" in argument.text:
            self._certain = False
        if known is not None and (text or argument.quoted or "$" in argument.text):
            return known
        if argument.quoted and text not in self._variables.values:
            return False
        return self._variable(text)

    def _variable(self, name: str) -> bool | None:
        if name in self._variables.switches or name not in self._variables.values:
            # A name that nothing sets is false; a user may set it all the same.
            self._certain = False
        if name not in self._variables.values and name not in PLATFORM:
            return None if name.startswith(("CMAKE_", "ENV{")) else False
        value = self._variables.plain(name)
        if (
            value is None
            or len(self._variables.alternatives(name)) > 1
            or name in self._variables.appended
        ):
            self._certain = False
        if value is None or HOLE in value:
            self._certain = False
            return None if value is None else True
        known = constant(value)
        return True if known is None else known


_BINARY = frozenset({
    "STREQUAL", "EQUAL", "MATCHES", "IN_LIST", "LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL",
    "STRLESS", "STRGREATER", "STRLESS_EQUAL", "STRGREATER_EQUAL", "VERSION_LESS",
    "VERSION_GREATER", "VERSION_EQUAL", "VERSION_LESS_EQUAL", "VERSION_GREATER_EQUAL",
    "PATH_EQUAL", "IS_NEWER_THAN",
})  # fmt: skip


class Known:
    """What conditions may ask of the project: its targets so far, and files of the tree."""

    def __init__(self) -> None:
        self.targets: set[str] = set()

    def exists(self, path: str) -> bool | None:
        """Return whether a file exists; None where that cannot be told."""
        raise NotImplementedError
