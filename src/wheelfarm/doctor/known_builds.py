"""The error lines of installers, compilers and linkers that are known."""

from wheelfarm.doctor.known_lines import LOADING, entry, fixed

_EXPLAIN = "wheelfarm resolve PACKAGE --explain"
_SHOW = "wheelfarm toolkit show --need device"
_ENV = "wheelfarm toolkit env"

_INSTALLING = (
    entry(
        r"(?:No matching distribution found for|satisfies the requirement) [\w.-]+",
        fixed(
            "python",
            "the index that was asked has no wheel of that name and version for this Python and"
            " platform",
            _EXPLAIN,
        ),
    ),
    entry(
        r"has no wheels with a matching (Python(?: \w+)?|platform) tag",
        fixed("python", "its wheels there are for another {part1} than this one", _EXPLAIN),
    ),
    entry(
        r"externally-managed-environment",
        fixed(
            "other",
            "this Python belongs to the system's package manager, and installers leave it alone",
            "python -m venv .venv, and give --python .venv",
        ),
    ),
)
_BUILDING = (
    entry(
        r"(?:nvcc: (?:command )?not found|No such file or directory: '[^']*nvcc'"
        r"|Failed to find nvcc|nvcc was not found|No CMAKE_CUDA_COMPILER could be found)",
        fixed("toolkit", "a source build needs nvcc, and finds none", _ENV),
    ),
    entry(
        r"fatal error: '?((?:cu|crt/|nv/|thrust/|nvrtc|device_|driver_types)[\w./]*)"
        r"(?:: No such file|' file not found)",
        fixed("toolkit", "the CUDA header {part1} is not on the compiler's path", _ENV),
    ),
    entry(
        r"(?:cannot find|unable to find library) -l(:?(?:lib)?(?:cu|nvrtc|nvJitLink)[\w.]*)",
        fixed(
            "toolkit",
            "the linker finds no {part1}: NVIDIA's wheels have no unversioned names",
            _ENV,
        ),
    ),
    entry(
        r"unsupported GNU version! gcc versions later than (\d+) are not supported",
        fixed(
            "toolkit",
            "this nvcc takes no gcc newer than {part1}",
            "give it an older one: NVCC_CCBIN=g++-{part1}",
        ),
    ),
    entry(
        r"command '[^']*nvcc' failed with exit (?:code|status) \d+",
        fixed(
            "source-build",
            "a source build's nvcc failed; its own message stands above that line",
            _SHOW,
        ),
    ),
    entry(
        r"Ninja is required to load C\+\+ extensions",
        fixed("source-build", "a source build needs ninja", "pip install ninja"),
    ),
)
#: Every line that is known.
PATTERNS = (*LOADING, *_INSTALLING, *_BUILDING)
