"""``wheelfarm completion SHELL``: print what a shell needs to complete verbs and options."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")


def execute(arguments: argparse.Namespace) -> int:
    """Print the completion script; with --json as the value ``script``."""
    import shtab

    from wheelfarm.cli import whole_parser
    from wheelfarm.cli.output import print_json

    script = shtab.complete(whole_parser(), arguments.shell)
    if arguments.json:
        print_json("wheelfarm.completion/1", {"shell": arguments.shell, "script": script})
    else:
        print(script)
    return 0
