"""Evaluates the expressions of GitHub's workflows; what it does not know is an error."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(?:(&&|\|\||==|!=|[()!,])|'((?:[^']|'')*)'|([A-Za-z_][\w.-]*)|(\d+))")


class Expression:
    """One expression over contexts, read by recursive descent."""

    def __init__(self, text: str, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> None:
        self.contexts = contexts
        self.functions: dict[str, Callable[..., Any]] = {
            "fromJSON": json.loads,
            **{name: (lambda value=value: value) for name, value in status.items()},
        }
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            assert match, f"no expression: {text!r} at {position}"
            position = match.end()
            kinds = ("operator", "string", "name", "number")
            index = next(number for number in range(4) if match[number + 1] is not None)
            self.tokens.append((kinds[index], match[index + 1]))

    def value(self) -> Any:
        found = self._either()
        assert not self.tokens, f"left over: {self.tokens}"
        return found

    def _take(self, *operators: str) -> str:
        if self.tokens and self.tokens[0][0] == "operator" and self.tokens[0][1] in operators:
            return self.tokens.pop(0)[1]
        return ""

    def _either(self) -> Any:
        left = self._both()
        while self._take("||"):
            right = self._both()
            left = left or right
        return left

    def _both(self) -> Any:
        left = self._compared()
        while self._take("&&"):
            right = self._compared()
            left = left and right
        return left

    def _compared(self) -> Any:
        left = self._unary()
        operator = self._take("==", "!=")
        if not operator:
            return left
        same = str(left) == str(self._unary())
        return same if operator == "==" else not same

    def _unary(self) -> Any:
        if self._take("!"):
            return not self._unary()
        if self._take("("):
            inner = self._either()
            assert self._take(")")
            return inner
        kind, text = self.tokens.pop(0)
        if kind == "string":
            return text.replace("''", "'")
        if kind == "number":
            return int(text)
        assert kind == "name", text
        return self._called(text) if self._take("(") else self._looked_up(text)

    def _called(self, name: str) -> Any:
        assert name in self.functions, f"unknown function {name}"
        arguments = []
        while not self._take(")"):
            arguments.append(self._either())
            self._take(",")
        return self.functions[name](*arguments)

    def _looked_up(self, path: str) -> Any:
        first, *rest = path.split(".")
        assert first in self.contexts, f"unknown context {first}"
        value: Any = self.contexts[first]
        for part in rest:
            # As on GitHub, what is not there is empty.
            value = value.get(part, "") if isinstance(value, Mapping) else ""
        return value


_PLACE = re.compile(r"\$\{\{(.*?)\}\}")


def filled(value: Any, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> Any:
    """Return a value of a workflow with its expressions evaluated."""
    if isinstance(value, Mapping):
        return {key: filled(item, contexts, status) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, contexts, status) for item in value]
    if not isinstance(value, str):
        return value
    whole = _PLACE.fullmatch(value.strip())
    if whole:
        return Expression(whole[1], contexts, status).value()
    return _PLACE.sub(lambda match: str(Expression(match[1], contexts, status).value()), value)
