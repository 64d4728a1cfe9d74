"""What meson, bazel and kernel-builder projects link: their files come in, findings go out."""

import re
from typing import Any

from wheelfarm.errors import BadInputError
from wheelfarm.reading import parse_toml
from wheelfarm.survey import torch_names
from wheelfarm.survey.findings import Finding
from wheelfarm.survey.guards import Guard, Guards, guard_of
from wheelfarm.survey.tree import Tree, normal

_DEFINITION = re.compile(r"^\s*(\w+)\s*\+?=\s*(.*)$", re.DOTALL)
_TARGET = re.compile(
    r"(?:\b|\.)(extension_module|shared_library|shared_module|library|both_libraries)\s*\("
)
_TORCH_DEPENDENCY = re.compile(
    r"dependency\(\s*'(?:[Tt]orch|libtorch)'|find_library\(\s*'(?:torch\w*|c10\w*)'"
    r"|declare_dependency\([^)]*'-l(?:torch|c10)"
)
_MAX_FILES = 200


def survey_meson(tree: Tree, project: str) -> list[Finding]:
    """Return what the meson project in a folder ships."""
    top = f"{project}/meson.build".lstrip("/")
    if not tree.is_file(top):
        return [Finding(shows="unknown", file=top, line=0, sentence="there is no meson.build")]
    reader = _Meson(tree, project)
    reader.file(top)
    return reader.findings(top)


class _Meson:
    """Follows meson.build files: which names hold a torch dependency, which targets use them."""

    def __init__(self, tree: Tree, project: str) -> None:
        self.tree = tree
        self.project = project
        self.torch: dict[str, Guards] = {}
        self.found: list[Finding] = []
        self.guards: list[Guard] = []
        self.options = self._defaults()
        self._files = 0

    def findings(self, top: str) -> list[Finding]:
        if not self.found:
            sentence = "no extension module or library is built"
            return [Finding(shows="unknown", file=top, line=0, sentence=sentence)]
        return self.found

    def file(self, file: str) -> None:
        text = self.tree.text(file)
        self._files += 1
        if text is None or self._files > _MAX_FILES:
            return
        for line, statement in _meson_statements(text):
            self._statement(file, line, statement)

    def _statement(self, file: str, line: int, text: str) -> None:
        word = text.split(" ", 1)[0].split("(", maxsplit=1)[0]
        if word in {"if", "elif", "else", "endif"}:
            self._branch(file, line, word, text)
            return
        subdir = re.match(r"subdir\(\s*'([^']+)'", text)
        if subdir:
            folder = file.rpartition("/")[0]
            self.file(normal(f"{folder}/{subdir.group(1)}/meson.build"))
        uses = self._torch_in(text)
        name = _DEFINITION.match(text)
        if name and uses is not None:
            self.torch[name.group(1)] = uses
        if _TARGET.search(text):
            self._target(file, line, text, uses)

    def _target(self, file: str, line: int, text: str, uses: Guards | None) -> None:
        title = re.search(r"\(\s*'([^']*)'", text)
        shown = title.group(1) if title else "a target"
        if uses is None:
            self._add("free", file, line, f"{shown} depends on no library of torch", ())
            return
        stable = torch_names.stable([text])
        suffix = " only through the stable ABI" if stable else ""
        shows = "stable_abi" if stable else "linked"
        self._add(shows, file, line, f"{shown} links torch{suffix}", uses)

    def _add(self, shows: Any, file: str, line: int, sentence: str, more: Guards) -> None:
        guards = tuple(dict.fromkeys((*self.guards, *more)))
        self.found.append(
            Finding(shows=shows, file=file, line=line, sentence=sentence, guards=guards)
        )

    def _torch_in(self, text: str) -> Guards | None:
        """Return the guards under which a statement brings in torch; None where it does not."""
        if _TORCH_DEPENDENCY.search(text) or torch_names.torch_library(
            re.findall(r"'(-l[^']+|[^']*lib(?:torch|c10)[^']*)'", text)
        ):
            return tuple(self.guards)
        for name in re.findall(r"\b[A-Za-z_]\w*\b", re.sub(r"'[^']*'", "''", text)):
            if name in self.torch:
                return self.torch[name]
        return None

    def _branch(self, file: str, line: int, word: str, text: str) -> None:
        if word == "endif":
            if self.guards:
                self.guards.pop()
            return
        if word == "if":
            self.guards.append(self._guard(file, line, text[2:].strip()))
        elif self.guards:
            last = self.guards.pop()
            if word == "elif":
                self.guards.append(self._guard(file, line, text[4:].strip()))
            else:
                opposite = None if last.plain is None else not last.plain
                self.guards.append(
                    guard_of(last.text, last.file, last.line, opposite, False)  # noqa: FBT003 - a branch
                )

    def _guard(self, file: str, line: int, text: str) -> Guard:
        return guard_of(text, file, line, self._plain(text))

    def _plain(self, text: str) -> bool | None:
        negated = text.startswith("not ")
        body = text.removeprefix("not ").strip()
        option = re.fullmatch(
            r"get_option\(\s*'([^']+)'\s*\)(?:\.(enabled|allowed|disabled)\(\))?", body
        )
        value: bool | None = None
        if option is not None:
            value = self.options.get(option.group(1))
            if option.group(2) == "disabled" and value is not None:
                value = not value
        elif re.fullmatch(r"\w+\.found\(\)", body):
            value = True
        elif "host_machine.system()" in body and "==" in body:
            value = "'linux'" in body
        return None if value is None else value != negated

    def _defaults(self) -> dict[str, bool | None]:
        found: dict[str, bool | None] = {}
        for name in ("meson.options", "meson_options.txt"):
            text = self.tree.text(f"{self.project}/{name}".lstrip("/")) or ""
            for _, statement in _meson_statements(text):
                match = re.match(r"option\(\s*'([^']+)'", statement)
                value = re.search(r"value\s*:\s*'?(\w+)'?", statement)
                if match and value:
                    word = value.group(1)
                    known = {"true": True, "enabled": True, "false": False, "disabled": False}
                    found[match.group(1)] = known.get(word)
        return found


def _meson_statements(text: str) -> list[tuple[int, str]]:
    """Return meson statements with their lines; comments gone, brackets joined."""
    found: list[tuple[int, str]] = []
    current, start, depth = "", 0, 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"('(?:[^'\\]|\\.)*')|#.*", lambda match: match.group(1) or "", raw).strip()
        if not current:
            start = number
        current = f"{current} {line}".strip()
        bare = re.sub(r"'[^']*'", "", line)
        depth += sum(bare.count(char) for char in "([{") - sum(bare.count(char) for char in ")]}")
        if depth <= 0 and current:
            found.append((start, current))
            current, depth = "", 0
    return found


_BAZEL_TORCH = re.compile(
    r"@(?:\w*pytorch\w*|\w*torch\w*)//|\"[^\"]*:(?:libtorch|torch|torch_cpu|torch_cuda)\"|\"-l(?:torch|c10)\w*\""
)
_BAZEL_BUILDS = re.compile(
    r"^\s*(?:cc_binary|cc_library|cc_shared_library|cuda_library|pybind_extension|pybind_library"
    r"|nanobind_extension|py_extension)\s*\(", re.MULTILINE
)  # fmt: skip


def survey_bazel(tree: Tree, project: str) -> list[Finding]:
    """Return what the BUILD files of a bazel workspace show.

    Torch among a rule's dependencies is linked; a workspace whose rules name no torch is unknown,
    as macros of other repositories may add what they like.
    """
    found = []
    top = project or "."
    for file in tree.walk(project):
        if file.rpartition("/")[2] not in {"BUILD", "BUILD.bazel"}:
            continue
        text = tree.text(file) or ""
        if not _BAZEL_BUILDS.search(text):
            continue
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#", 1)[0]
            if _BAZEL_TORCH.search(line) and not re.search(r"\b(?:load|exports_files)\(", line):
                sentence = "a rule depends on torch's libraries"
                found.append(Finding(shows="linked", file=file, line=number, sentence=sentence))
    if found:
        return found
    sentence = "no bazel rule here names torch, and macros of other repositories are not followed"
    return [Finding(shows="unknown", file=top, line=0, sentence=sentence)]


def survey_build_toml(tree: Tree, file: str) -> list[Finding]:  # noqa: PLR0911 - one return per kind
    """Return what kernel-builder ships for a build.toml (kernel-builder's configuration)."""
    text = tree.text(file) or ""
    try:
        document = parse_toml(text, file)
    except BadInputError as error:
        return [Finding(shows="unknown", file=file, line=0, sentence=error.what)]
    kernels = document.get("kernel")
    torch = document.get("torch")
    general = document.get("general")
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    if not kernels:
        place = lines.get("[torch]", lines.get("[general]", 0))
        universal = [each.get("universal") for each in (torch, general) if isinstance(each, dict)]
        if True in universal or "torch-noarch" in document:
            sentence = "a universal kernel: Python only"
            return [Finding(shows="free", file=file, line=place, sentence=sentence)]
        sentence = "names no kernel to compile"
        return [Finding(shows="unknown", file=file, line=place, sentence=sentence)]
    if isinstance(torch, dict):
        line = lines.get("[torch]", 0)
        if torch.get("stable-abi"):
            sentence = "kernel-builder links the torch extension through the stable ABI"
            return [Finding(shows="stable_abi", file=file, line=line, sentence=sentence)]
        sentence = "kernel-builder compiles a torch extension"
        return [Finding(shows="linked", file=file, line=line, sentence=sentence)]
    if "tvm-ffi" in document:
        line = lines.get("[tvm-ffi]", 0)
        sentence = "the kernel links TVM's FFI, no torch"
        return [Finding(shows="free", file=file, line=line, sentence=sentence)]
    return [Finding(shows="unknown", file=file, line=0, sentence="names no framework to link")]
