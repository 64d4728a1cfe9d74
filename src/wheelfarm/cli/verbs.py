"""The register of verbs: their names and one line about each; nothing is imported from here."""

#: Verb -> what it does, in the order in which a farm's maintainer and then a user meets them.
VERBS: dict[str, str] = {
    "init": "make a recipe from a project's name on PyPI, in a new or existing farm",
    "upstream": "show what PyTorch published, and bring it up to date",
    "lint": "check a farm for what its files alone can't show",
    "migrate": "bring an existing farm's packages and policy into this form",
    "survey": "tell whether a source tree links torch, with evidence from its build files",
    "grid": "show which cells exist, and why every other one does not",
    "plan": "show which jobs are missing, in batches; never build",
    "lock": "record the hash or commit of each recipe's source; refuse one that changed",
    "build": "build one cell of a farm, or an author's project, and pass it through the gate",
    "cache": "prove the compiler cache of this machine, or hold all caches in a budget",
    "run": "run a plan's jobs on this machine or a cluster, and record what became of each",
    "status": "show how far a plan's run is",
    "logs": "show what a cell's jobs wrote",
    "watch": "tell what is new upstream, as a difference of the farm's files and an issue",
    "audit": "hold the store and the index against the farm that declares them",
    "ci": "write and check workflows that run the farm on GitHub",
    "verify": "prove what a wheel says of itself, and whether it may be published",
    "repair": "mend what can be mended of a wheel without lying, and judge the result",
    "diff": "show what differs between two wheels, and whether their binaries are the same",
    "publish": "put wheels with a passing report into the store",
    "yank": "keep wheels for full pins alone, with a reason",
    "unyank": "take a yank back",
    "prune": "propose superseded wheels; take them out only with --apply",
    "rollback": "return the site to an earlier build",
    "serve": "serve a site's folder on this machine",
    "index": "write the static site of a store's wheels, check a live one, take another in",
    "host": "show the facts of this machine and environment that wheels are chosen by",
    "resolve": "choose the exact wheels for this machine, with reasons",
    "bundle": "write an air-gapped folder: index, wheels and locks for one or more hosts",
    "doctor": "tell which compiled packages can load here, and what mends the others",
    "toolkit": "find CUDA in wheels or a system, and make it usable for any build",
    "completion": "print the completion script of a shell",
}

#: Verbs whose module has another name, as the verb's own is taken or not a good one.
_MODULES: dict[str, str] = {}


def module_of(verb: str) -> str:
    """Return the name of a verb's module under ``wheelfarm.cli``."""
    return _MODULES.get(verb, verb.replace("-", "_"))
