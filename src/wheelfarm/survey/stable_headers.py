"""Do a target's sources keep to torch's stable headers? Its source files in, yes or no out.

A build may use the stable ABI without saying so in a flag: every header of torch that its sources
include, in any branch of their conditionals, is then one of the stable set.
"""

import posixpath
import re
from collections.abc import Iterable

from wheelfarm.survey.tree import Tree, normal

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)

#: Headers of torch at all, by how their paths start.
_TORCH = ("torch/", "ATen/", "c10/", "caffe2/")

#: Headers that only a build for ROCm or XPU can include.
_OTHER_DEVICE = re.compile(r"/(?:hip|xpu)/")

#: Headers of the stable ABI (torch's notes on LibTorch's stable ABI).
_STABLE = ("torch/csrc/stable/", "torch/headeronly/", "torch/csrc/inductor/aoti_torch/c/")

#: At most this many files are read for one target.
MAX_FILES = 300


def only_stable_headers(tree: Tree, sources: Iterable[str]) -> bool:
    """Return whether the sources include torch's stable headers, and none of its others.

    ``sources`` are relative paths. A source or a local header that is not in the tree makes the
    answer no: it may include anything.
    """
    queue = [normal(source) for source in sources if _compiled(source)]
    seen = set(queue)
    stable = False
    while queue:
        file = queue.pop()
        text = tree.text(file)
        if text is None or len(seen) > MAX_FILES:
            return False
        for quote, name in _INCLUDE.findall(text):
            if name.startswith(_TORCH) and _OTHER_DEVICE.search(name) is None:
                if not name.startswith(_STABLE):
                    return False
                stable = True
            elif quote == '"':
                found = _local(tree, file, name)
                if found and found not in seen:
                    seen.add(found)
                    queue.append(found)
    return stable


def _compiled(source: str) -> bool:
    return source.endswith((".cpp", ".cc", ".cxx", ".c", ".cu", ".mm", ".hip"))


def _local(tree: Tree, file: str, name: str) -> str:
    """Return the tree's file that an include names, empty where it is of another project."""
    folder = posixpath.dirname(file)
    near = normal(posixpath.join(folder, name))
    if tree.is_file(near):
        return near
    ending = f"/{name}"
    return next((each for each in tree.files() if each.endswith(ending)), "")
