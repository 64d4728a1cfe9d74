"""A recipe's ``pre_build_script``: trusted shell text, run in the tree before the compile."""

from collections.abc import Mapping
from pathlib import Path

from wheelfarm.errors import BuildError
from wheelfarm.run import run


def run_prebuild_script(
    script: str, tree: Path, environment: Mapping[str, str], *, log: Path
) -> dict[str, str]:
    """Run the script with bash and return the variables it set.

    Variables are lines ``NAME=value``, or ``NAME<<END`` blocks, in the file named by
    ``GITHUB_ENV``, as GitHub's runners read them. Raises BuildError where the script fails.
    """
    variables = tree.parent / "github_env"
    variables.write_text("", encoding="utf-8")
    run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tree,
        env={**environment, "GITHUB_ENV": str(variables)},
        log=log,
        hint="correct pre_build_script in the recipe",
    )
    return parse_github_env(variables.read_text(encoding="utf-8"))


def parse_github_env(text: str) -> dict[str, str]:
    """Read the file of ``GITHUB_ENV``; BuildError for a line that sets nothing."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        block, heredoc, end = line.partition("<<")
        if heredoc and (not equals or len(block) < len(name)):
            body: list[str] = []
            for part in lines:
                if part == end:
                    break
                body.append(part)
            else:
                message = f"the block {block}<<{end} of GITHUB_ENV has no end"
                raise BuildError(message)
            found[block] = "\n".join(body)
        elif equals and name:
            found[name] = value
        elif line.strip():
            message = f"the line {line!r} of GITHUB_ENV sets no variable"
            raise BuildError(message, hint="write NAME=value")
    return found
