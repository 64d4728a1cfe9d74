"""What PyTorch and NVIDIA published, as typed values. Light: both sides read it.

Everything here was observed and is committed; nothing is guessed. A release that is not listed is
"not published, as far as is known".
"""

from collections.abc import Mapping

from packaging.version import Version

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch, ArchList
from wheelfarm.model.platform import Platform
from wheelfarm.model.python import PythonTag
from wheelfarm.model.versions import Minor
from wheelfarm.values import value


@value
class Release:
    """One torch release of one accelerator: the Pythons it has wheels for, per platform."""

    accelerator: Accelerator
    torch: Version
    pythons: Mapping[Platform, tuple[PythonTag, ...]]

    @property
    def minor(self) -> Minor:
        """The torch minor."""
        return Minor.of(self.torch)

    def ships(self, python: PythonTag, platform: Platform) -> bool:
        """Return whether there is a wheel for an exact Python on a platform."""
        return python in self.pythons.get(platform, ())


@value
class TorchArchs:
    """The architectures that torch's own libraries hold, from a torch minor upward."""

    accelerator: Accelerator
    platform: Platform
    from_torch: Minor
    archs: ArchList


@value
class UpstreamFacts:
    """All facts of one file.

    ``pypi`` says which accelerator PyPI's wheel of a release is built for, per platform.
    ``extension_archs`` are the words that torch's extension builder takes in
    TORCH_CUDA_ARCH_LIST, and ``compiler_archs`` what nvcc compiles for; each from the version at
    its key upward (for nvcc, within the major).
    """

    observed: str
    releases: tuple[Release, ...]
    pypi: Mapping[Version, Mapping[Platform, Accelerator]]
    torch_archs: tuple[TorchArchs, ...]
    extension_archs: Mapping[Minor, frozenset[Arch]]
    compiler_archs: Mapping[Minor, frozenset[Arch]]

    @property
    def accelerators(self) -> tuple[Accelerator, ...]:
        """The accelerators that have any release, sorted."""
        return tuple(sorted({release.accelerator for release in self.releases}))

    def releases_of(self, accelerator: Accelerator) -> tuple[Release, ...]:
        """Return the releases of one accelerator, oldest first."""
        found = (release for release in self.releases if release.accelerator == accelerator)
        return tuple(sorted(found, key=lambda release: release.torch))

    def release(self, accelerator: Accelerator, torch: Version) -> Release | None:
        """Return one release; None where it is not published."""
        for release in self.releases:
            if release.accelerator == accelerator and release.torch == torch:
                return release
        return None

    def pypi_accelerator(self, torch: Version, platform: Platform) -> Accelerator | None:
        """Return what PyPI's wheel of a release is built for; None where it is not known."""
        return self.pypi.get(torch, {}).get(platform)

    def torch_arch_list(
        self, accelerator: Accelerator, torch: Minor, platform: Platform
    ) -> ArchList | None:
        """Return the architectures of torch's own libraries; None where they are not known.

        Where these miss a GPU, no wheel of ours can serve it with that torch.
        """
        found = [
            entry
            for entry in self.torch_archs
            if entry.accelerator == accelerator
            and entry.platform == platform
            and entry.from_torch <= torch
        ]
        return max(found, key=lambda entry: entry.from_torch).archs if found else None

    def known_to_torch(self, torch: Minor) -> frozenset[Arch] | None:
        """Return what torch's extension builder takes; None for a torch older than any known."""
        keys = [key for key in self.extension_archs if key <= torch]
        return self.extension_archs[max(keys)] if keys else None

    def known_to_compiler(self, cuda: Minor) -> frozenset[Arch] | None:
        """Return what nvcc of a CUDA version compiles for; None where that is not known."""
        keys = [key for key in self.compiler_archs if key.major == cuda.major and key <= cuda]
        return self.compiler_archs[max(keys)] if keys else None

    def compilers_with(self, arch: Arch) -> tuple[Minor, ...]:
        """Return the CUDA versions, of those with facts, whose nvcc compiles for ``arch``."""
        return tuple(cuda for cuda, archs in sorted(self.compiler_archs.items()) if arch in archs)
