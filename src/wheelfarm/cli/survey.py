"""``wheelfarm survey``: does a source tree link libtorch? Evidence from its build files."""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from wheelfarm.cli.output import print_json
from wheelfarm.cli.survey_result import as_document, print_result


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument(
        "source",
        metavar="PATH|SDIST|GIT-URL@TAG|NAME==VERSION",
        help="the tree to read; with --check, the farm's folder",
    )
    parser.add_argument(
        "--subdir", type=str, default="", metavar="DIR", help="where the package's build files lie"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare a farm's recipes with their sources, before and after the patches",
    )
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="with --check: this one only"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the verdict; with ``--check`` the comparison of a farm's recipes."""
    if arguments.check:
        from wheelfarm.cli.survey_check import execute_check

        return execute_check(arguments)
    from wheelfarm.survey import survey_tree

    with _opened(arguments.source) as root:
        result = survey_tree(root, subdir=arguments.subdir)
    if arguments.json:
        document = {"source": arguments.source, "subdir": arguments.subdir, **as_document(result)}
        print_json("wheelfarm.survey/1", document)
    else:
        print_result(result)
    return 0


@contextlib.contextmanager
def _opened(text: str) -> Iterator[Path]:
    from wheelfarm.survey.source import opened

    if "==" not in text or Path(text).exists():
        with opened(text) as root:
            yield root
        return
    import tempfile

    from wheelfarm.http import Client
    from wheelfarm.recipes.pypi import find_sdist, index_url
    from wheelfarm.recipes.source import pypi_pin

    pin = pypi_pin(text)
    client = Client()
    sdist = find_sdist(pin.project, pin.version, client=client, index=index_url())
    with tempfile.TemporaryDirectory(prefix="wheelfarm-survey-") as name:
        archive = Path(name) / Path(sdist.file_name).name
        client.download(sdist.url, archive, sha256=sdist.sha256)
        with opened(str(archive)) as root:
            yield root
