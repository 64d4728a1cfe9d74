"""Rooms stay small: a module of at most 400 lines, a function of at most 60."""

import ast
from pathlib import Path

MODULE, FUNCTION = 400, 60


def test_no_module_and_no_function_is_too_long(repository: Path) -> None:
    seen, long = 0, []
    for path in sorted((repository / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        seen += 1
        if lines > MODULE:
            long.append(f"{path.name}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION:
                    long.append(f"{path.name}: {node.name} has {lines} lines")
    assert long == []
    assert seen > 300
