"""``wheelfarm serve``: serve a site's folder on this machine, with content negotiation."""

import argparse
import contextlib
import sys
from pathlib import Path

from wheelfarm.cli.output import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments."""
    parser.add_argument(
        "site",
        nargs="?",
        type=Path,
        default=Path("site"),
        metavar="SITE",
        help="the folder to serve (default: site)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--port", type=_port, default=8000, help="0 takes a free one")


def _port(text: str) -> int:
    """Return a port's number; argparse.ArgumentTypeError for what cannot be one."""
    if not text.isascii() or not text.isdigit() or int(text) >= 1 << 16:
        message = f"{text!r} is no port: a number below 65536"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from wheelfarm.errors import BadInputError, CouldNotLookError
    from wheelfarm.index.server import SiteServer

    if not (arguments.site / "simple" / "index.html").is_file():
        message = f"{arguments.site} is no site"
        raise BadInputError(message, hint="write one with wheelfarm index build --out DIR")

    def log(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        server = SiteServer(
            (arguments.host, arguments.port), arguments.site, log if arguments.verbose else None
        )
    except OSError as error:
        message = f"{arguments.host}:{arguments.port} cannot be listened at: {error.strerror}"
        raise CouldNotLookError(message, hint="take another --port; 0 takes a free one") from error
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    url = f"http://{host}:{server.server_address[1]}/"
    with server:
        if arguments.json:
            print_json("wheelfarm.serve/1", {"url": url, "index": f"{url}simple/"})
        else:
            print(f"{url}  pages for people\n{url}simple/  the index; Ctrl-C stops")
        sys.stdout.flush()
        # An interrupt is how serving ends, not something that was cut short.
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
