"""The reference page of the command line: every verb with its arguments, from the parsers."""

import argparse
from collections.abc import Iterator

_HEAD = """\
<!-- Written by bin/generate-reference from the parsers: change those, then run it again. -->

# Every verb and option

Every verb takes `--json` (one document on stdout, with the schema that it names), `--verbose` and
`--quiet` (more or less of the log on stderr), and `--help`.
"""
_COMMON = frozenset({"help", "json", "verbose", "quiet"})


def reference_page(parser: argparse.ArgumentParser) -> str:
    """Return the page, in Markdown; ``parser`` is that of all verbs."""
    return "\n".join([_HEAD, *_sections(parser, "wheelfarm", "")])


def _sections(parser: argparse.ArgumentParser, name: str, summary: str) -> Iterator[str]:
    rows = [_row(action) for action in parser._actions if _is_shown(action)]  # noqa: SLF001 - no other way
    if summary and (rows or parser.get_default("verb") is not None):
        yield f"## {name}\n\n{_sentence(summary)}\n"
    if summary and rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])
    for action in parser._actions:  # noqa: SLF001 - no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no other way
            summaries = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            for verb, deeper in action.choices.items():
                yield from _sections(deeper, f"{name} {verb}", summaries.get(verb, ""))


def _is_shown(action: argparse.Action) -> bool:
    hidden = action.dest in _COMMON or action.help == argparse.SUPPRESS
    return not hidden and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001


def _row(action: argparse.Action) -> str:
    value = action.metavar or action.dest.upper()
    shown = " ".join(value) if isinstance(value, tuple) else value
    if action.choices is not None:
        shown = "|".join(map(str, action.choices))
    names = ", ".join(action.option_strings) or shown
    words = names if action.nargs == 0 or not action.option_strings else f"{names} {shown}"
    meaning = (action.help or "").replace("%%", "%")
    return f"| `{_cell(words)}` | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
