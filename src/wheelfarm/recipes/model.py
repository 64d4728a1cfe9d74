"""The values of this room: recipes, a farm's policy, the farm. The docstrings are the reference."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.version import Version

from wheelfarm.model.arch import ArchList
from wheelfarm.model.axis import TorchAxis
from wheelfarm.model.cell import cell_name
from wheelfarm.model.libstdcxx import LibstdcxxChoice
from wheelfarm.model.platform import PLATFORMS, Platform
from wheelfarm.model.python import PythonAxis, PythonTag
from wheelfarm.model.versions import Minor

Requirements = Literal["pinned", "blank", "upstream"]
ShardFilter = Literal["seat", "source"]

#: The glibc of the manylinux images that PyTorch's own wheels are built in.
GLIBC_FLOOR = Minor(2, 28)

#: The fields of a recipe that override farm policy; each needs its reason in ``reasons``, unless it
#: says what holds anyway.
OVERRIDES = (
    "arch_list",
    "arch_list_by_cuda",
    "arch_list_aarch64",
    "arch_list_by_cuda_aarch64",
    "arch_list_by_combination",
    "min_pytorch",
    "build_matrix",
    "requirements",
    "floor",
    "libstdcxx",
)

#: The options of ``verify`` that make the gate look away; each needs its reason, under this name.
#: (``skip_arch`` and ``skip_import`` are their own reasons.)
EXEMPTIONS = (
    "verify.no_direct_import",
    "verify.allowed_needed",
    "verify.allowed_archives",
    "verify.expect_device_error",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PyPISource:
    """A release's sdist on PyPI."""

    project: str
    version: Version

    def __str__(self) -> str:
        return f"pypi {self.project}=={self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GitSource:
    """A tag or a whole commit (40 digits) of a git repository."""

    url: str
    ref: str
    submodules: bool = False

    @property
    def is_commit(self) -> bool:
        """Whether ``ref`` is a commit and not a tag."""
        return len(self.ref) == 40 and all(char in "0123456789abcdef" for char in self.ref)  # noqa: PLR2004 - SHA-1

    def __str__(self) -> str:
        return f"git {self.url} {self.ref}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PathSource:
    """A folder or an archive on this machine; ``written`` is the path as the recipe has it."""

    path: Path
    written: str

    def __str__(self) -> str:
        return f"path {self.written}"


Source = PyPISource | GitSource | PathSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Combination:
    """One row of a build matrix: a CUDA line, a torch, and the Pythons (empty: all of the row).

    ``release`` is set where the row names a patch (``2.9.0``): its cells are built against exactly
    that release.
    """

    cuda: Minor
    torch: Minor
    release: Version | None = None
    pythons: tuple[PythonTag, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildMatrix:
    """What a package narrows the farm's grid to; an empty part narrows nothing."""

    combinations: tuple[Combination, ...] = ()
    """The rows: ``{cuda: "12.8", pytorch: "2.9", python_versions: [...]}``."""
    platforms: tuple[Platform, ...] = ()
    """The platforms, such as ``linux_x86_64`` (or ``linux``, ``windows``, ``linux_aarch64``)."""
    python_versions: tuple[PythonTag, ...] = ()
    """The Pythons of every row, such as ``"3.12"`` or ``"3.13t"``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharding:
    """How one build is split over jobs."""

    shards: int
    platforms: tuple[Platform, ...] = ()
    """Where it is split; empty: everywhere."""
    filter: ShardFilter = "seat"


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyOptions:
    """What the gate has to know of a package that its binaries do not tell."""

    import_name: str = ""
    """The module to import; by default the package's name, or what the wheel's files show."""
    extra_imports: tuple[str, ...] = ()
    """Modules to import besides."""
    no_direct_import: tuple[str, ...] = ()
    """Patterns of binaries that are loaded by others and not imported by themselves."""
    allowed_needed: tuple[str, ...] = ()
    """Patterns of libraries that may be needed though nothing explains them."""
    allowed_archives: tuple[str, ...] = ()
    """Patterns of archives in the wheel, by their path, whose compiled code no check looks at."""
    needs_driver: bool = False
    """Whether importing needs the driver's library (a stub stands in for it)."""
    expect_ops: tuple[str, ...] = ()
    """Operators (``namespace::name``) that must be registered after the import."""
    expect_device_error: bool = False
    """Whether the import may end in an error that there is no GPU."""
    skip_arch: str = ""
    """The reason why the architectures are not compared, such as kernels made at run time."""
    skip_import: str = ""
    """The reason why the wheel is not imported."""
    max_size_mb: int = 0
    """The largest size of the wheel in MiB; 0 is the farm's limit."""
    smoke_test: Path | None = None
    """A Python script beside the recipe that `wheelfarm verify --gpu` runs with the wheel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How one package is built."""

    name: str
    """The package's name on PyPI or, where it is not there, its distribution's name."""
    source: Source
    """Where the source comes from: `{pypi: diso==0.1.4}`, `{git: https://…, tag: v1.2}` or
    `{path: ../checkout}`. Floating refs (`main`, `HEAD`) are refused."""
    version: Version | None = None
    """The version; it may be left out where the source's pin or tag says it."""
    torch_axis: TorchAxis = "linked"
    """What the binaries take of torch: `linked` (one wheel per torch minor), `stable_abi` (its
    stable ABI alone: one wheel per CUDA, from `from_torch` upward), `abi_flag` (not torch, but its
    C++ ABI flag: one per CUDA and ABI) or `free`. `links_torch: true | false` is the short form."""
    torch_axis_stated: bool = False
    """Whether the recipe states the axis, or has the default."""
    from_torch: Minor | None = None
    """The lowest torch minor of a `stable_abi` package, such as `"2.10"`."""
    python_axis: PythonAxis = "exact"
    """`exact` (one wheel per Python), `abi3` (one from `from_python` upward) or `none` (one
    `py3-none` wheel)."""
    from_python: Minor | None = None
    """The lowest Python of an `abi3` package, such as `"3.10"`."""
    build_subdir: str = ""
    """The folder of the source in which `setup.py` or `pyproject.toml` lies."""
    patches: tuple[Path, ...] = ()
    """Patch files beside the recipe (patterns), applied in order with `git apply`."""
    patch_script: Path | None = None
    """A trusted Python script beside the recipe, run in the source tree after the patches."""
    pre_build_script: str = ""
    """Trusted shell text, run in the source tree before the build. Lines that it writes to the
    file named by `GITHUB_ENV` become environment variables of the build."""
    extra_deps: tuple[str, ...] = ()
    """Build requirements besides torch and setuptools; build isolation is off."""
    extra_cuda_components: tuple[str, ...] = ()
    """Parts of the CUDA toolkit besides the compiler and runtime: extras of PyPI's
    `cuda-toolkit`, such as `cublas`, `cusparse`, `nvtx`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the build."""
    pure: bool = False
    """Whether the wheel holds no compiled code at all."""
    arch_list: ArchList | None = None
    """The GPU architectures, in place of the farm's policy: `"8.0;9.0+PTX"`."""
    arch_list_by_cuda: Mapping[Minor, ArchList] = field(default_factory=dict)
    """The same per CUDA line: `{"12.8": "8.0;9.0;12.0+PTX"}`."""
    arch_list_aarch64: ArchList | None = None
    """`arch_list` of `linux_aarch64`."""
    arch_list_by_cuda_aarch64: Mapping[Minor, ArchList] = field(default_factory=dict)
    """`arch_list_by_cuda` of `linux_aarch64`."""
    arch_list_by_combination: Mapping[str, ArchList] = field(default_factory=dict)
    """The same per CUDA and torch minor, and platform where it is named:
    `{"12.8/2.9": "8.0;9.0+PTX", "12.8/2.9/linux_aarch64": "9.0+PTX"}`."""
    min_pytorch: Minor | None = None
    """The lowest torch minor (a string: `"2.10"`; of `"2.11.0"` the minor counts)."""
    build_matrix: BuildMatrix | None = None
    """What the package narrows the grid to, where upstream supports less."""
    max_jobs: int | None = None
    """The most compile jobs at once; memory may allow fewer."""
    nvcc_threads: int | None = None
    """`nvcc --threads`."""
    nvcc_flags: str = ""
    """Flags for every nvcc call."""
    sharding: Sharding | None = None
    """`sharding: 8` splits the build over that many jobs; `sharding_platforms` says where, and
    `shard_filter` how: `seat` (per compiled unit) or `source` (the build's own source list)."""
    objects_behind_seat: Mapping[str, str] = field(default_factory=dict)
    """Objects of a sharded build that its own compilers make, as patterns of paths in the source
    tree, each with the reason: `{"vendor/*.o": "Fortran, compiled in every job"}`."""
    requires_dist: tuple[str, ...] | None = None
    """The wheel's requirements, in place of upstream's list. `{VER:package}` is the version of
    another recipe, `{LOCAL}` the wheel's own local tag."""
    requirements: Requirements | None = None
    """What becomes of upstream's requirements: `pinned` (kept, and torch pinned as the axis asks),
    `blank` (none) or `upstream` (as they are)."""
    floor: Minor | None = None
    """The oldest glibc that the Linux wheels must run on."""
    libstdcxx: LibstdcxxChoice = "shared"
    """Where a wheel takes the symbols of libstdc++ from that the floor's systems lack: `shared`
    (nowhere: they stop the build) or `static` (from libstdc++.a, hidden in the module)."""
    runtime_jit: bool = False
    """Whether the package compiles kernels on the user's machine at run time."""
    verify: VerifyOptions = field(default_factory=VerifyOptions)
    """What the gate has to know."""
    priority: int = 0
    """Higher is built first."""
    cost_minutes: float | None = None
    """The estimated minutes of a whole build, until a measured time is known."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why the recipe departs from the farm's policy, by the overriding field's name, and why the
    gate looks away: `verify.no_direct_import`, `verify.allowed_needed`,
    `verify.allowed_archives`, `verify.expect_device_error`."""
    folder: Path = Path()
    """The folder of the recipe's file."""

    @property
    def package(self) -> str:
        """The name as cells and wheels write it."""
        return cell_name(self.name)

    @property
    def shards_on(self) -> "Mapping[Platform, int]":
        """How many shards a build has on each platform (1: it is not split)."""
        if self.sharding is None:
            return dict.fromkeys(PLATFORMS, 1)
        where = self.sharding.platforms or PLATFORMS
        return {item: self.sharding.shards if item in where else 1 for item in PLATFORMS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Defaults:
    """What holds for every recipe that says nothing else."""

    max_jobs: int = 3
    """The most compile jobs at once; memory may allow fewer."""
    nvcc_threads: int = 1
    """`nvcc --threads`."""
    clone_recursive: bool = False
    """Whether git sources come with their submodules."""
    requirements: Requirements = "pinned"
    """What becomes of upstream's requirements."""
    cost_minutes: float = 20.0
    """The estimated minutes of a whole build of a package without a measured time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FarmPolicy:
    """What a farm builds, for all of its packages."""

    platforms: tuple[Platform, ...]
    """The platforms: `linux_x86_64`, `linux_aarch64`, `windows_amd64`."""
    python_min: Minor
    """The lowest Python. There is no highest: PyTorch's own coverage is the ceiling."""
    supported_cudas: tuple[Minor, ...]
    """The CUDA lines, such as `"12.8"`."""
    arch_policy: Mapping[Minor, ArchList]
    """The GPU architectures per CUDA line."""
    arch_policy_aarch64: Mapping[Minor, ArchList] = field(default_factory=dict)
    """The same for `linux_aarch64`; a CUDA line absent here is deliberately not built there."""
    arch_exceptions: Mapping[tuple[Minor, Minor], ArchList] = field(default_factory=dict)
    """Architectures of single (CUDA, torch minor) pairs: `{"12.8/2.9": "7.0;8.0;9.0+PTX"}`."""
    arch_exceptions_aarch64: Mapping[tuple[Minor, Minor], ArchList] = field(default_factory=dict)
    """The same for `linux_aarch64`."""
    free_threaded: bool = False
    """Whether free-threaded Pythons (`3.14t`) are built."""
    min_pytorch: Minor | None = None
    """The lowest torch minor of the whole farm."""
    floor: Minor | None = GLIBC_FLOOR
    """The oldest glibc that the Linux wheels must run on, such as `"2.28"`: all links are made
    against it, on whatever machine. The word `native` asks for none: a wheel is tagged with what
    the building machine's glibc makes true."""
    defaults: Defaults = field(default_factory=Defaults)
    """What holds for every recipe that says nothing else."""
    store: str = "store"
    """Where the wheels are kept: a folder below the farm, or an address."""
    upstream: str = ""
    """A file of upstream facts in place of those that wheelfarm brings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Farm:
    """A farm: its folder, its policy and its recipes by package name (as cells write it)."""

    root: Path
    policy: FarmPolicy
    recipes: Mapping[str, Recipe]

    @property
    def lock_path(self) -> Path:
        """The path of the farm's lock."""
        return self.root / "farm.lock"
