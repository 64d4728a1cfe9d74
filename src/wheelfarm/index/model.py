"""What the index says of a wheel, as clients read it: the manifest's entries. Light: both sides.

``/manifest/index.json`` names the packages, each with the address and hash of its part
``/manifest/packages/<package>.json``, which lists the wheels; so a client asks for what it needs.
"""

from collections.abc import Mapping
from typing import Any

from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.arch import Arch
from wheelfarm.model.axis import TORCH_AXES, CxxAbi, TorchAxis
from wheelfarm.model.versions import Minor
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.reading import Reader
from wheelfarm.values import value

MANIFEST_SCHEMA = "wheelfarm.manifest/1"
PACKAGE_SCHEMA = "wheelfarm.package/1"


@value
class Module:
    """One binary with device code: its path in the wheel, and the architectures it holds."""

    path: str
    sass: tuple[Arch, ...] = ()
    ptx: tuple[Arch, ...] = ()


@value
class WheelEntry:
    """One wheel of the manifest: everything a resolver needs, proven from the binary.

    ``url`` may be relative to the document that holds the entry. ``torch_axis`` None means that
    nobody proved it (an index that has names alone). ``toolkit`` is the CUDA that compiled it,
    which bounds the driver for PTX. ``libraries`` are the CUDA libraries (sonames) it needs of the
    environment.
    """

    name: WheelName
    url: str
    sha256: str | None
    size: int | None = None
    metadata_sha256: str | None = None
    requires_python: str = ""
    requires_dist: tuple[str, ...] | None = None
    yanked: str | None = None
    torch_axis: TorchAxis | None = None
    from_torch: Minor | None = None
    cxx_abi: CxxAbi | None = None
    glibc: Minor | None = None
    toolkit: Minor | None = None
    needs_driver: bool = False
    runtime_jit: bool = False
    libraries: tuple[str, ...] = ()
    modules: tuple[Module, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as the manifest writes it; empty fields are left out."""
        document: dict[str, Any] = {
            "filename": str(self.name),
            "url": self.url,
            "sha256": self.sha256,
            "size": self.size,
            "metadata_sha256": self.metadata_sha256,
            "requires_python": self.requires_python,
            "requires_dist": None if self.requires_dist is None else list(self.requires_dist),
            "yanked": self.yanked,
            "torch_axis": self.torch_axis,
            "from_torch": _text(self.from_torch),
            "cxx_abi": self.cxx_abi,
            "glibc": _text(self.glibc),
            "toolkit": _text(self.toolkit),
            "needs_driver": self.needs_driver or None,
            "runtime_jit": self.runtime_jit or None,
            "libraries": list(self.libraries) or None,
            "modules": None
            if self.modules is None
            else [
                {
                    "path": module.path,
                    "sass": [str(arch) for arch in module.sass],
                    "ptx": [str(arch) for arch in module.ptx],
                }
                for module in self.modules
            ],
        }
        kept = {key: value for key, value in document.items() if value not in (None, "")}
        if self.yanked is not None:
            # A yank without a reason is a yank still (PEP 592).
            kept["yanked"] = self.yanked
        return kept

    @classmethod
    def read(cls, reader: Reader) -> "WheelEntry | None":
        """Read an entry; faults go to the reader, keys of a newer index are passed over."""
        name = reader.parsed("filename", WheelName.parse)
        url = reader.string("url")
        axis = reader.choice("torch_axis", TORCH_AXES, "") if reader.has("torch_axis") else None
        abi = reader.raw("cxx_abi")
        if name is None:
            return None
        return cls(
            name=name,
            url=url,
            sha256=reader.optional_string("sha256"),
            size=reader.integer("size") if reader.has("size") else None,
            metadata_sha256=reader.optional_string("metadata_sha256"),
            requires_python=reader.string("requires_python", ""),
            requires_dist=reader.strings("requires_dist") if reader.has("requires_dist") else None,
            yanked=reader.optional_string("yanked"),
            torch_axis=next((known for known in TORCH_AXES if known == axis), None),
            from_torch=reader.parsed("from_torch", Minor.parse),
            cxx_abi=0 if abi == 0 else 1 if abi == 1 else None,
            glibc=reader.parsed("glibc", Minor.parse),
            toolkit=reader.parsed("toolkit", Minor.parse),
            needs_driver=reader.boolean("needs_driver", default=False),
            runtime_jit=reader.boolean("runtime_jit", default=False),
            libraries=reader.strings("libraries"),
            modules=tuple(map(_module, reader.tables("modules")))
            if reader.has("modules")
            else None,
        )


@value(kw_only=False, order=True)
class Combination:
    """One channel of the site: an accelerator and a torch minor, ``cu130/torch2.14``."""

    accelerator: Accelerator
    torch: Minor

    @property
    def path(self) -> str:
        """The channel's folder under the site's root."""
        return f"{self.accelerator}/torch{self.torch}"

    def to_dict(self) -> dict[str, str]:
        """Return the two words as the manifest writes them."""
        return {"accelerator": str(self.accelerator), "torch": str(self.torch)}

    @classmethod
    def read(cls, reader: Reader) -> "Combination | None":
        """Read a combination; faults go to the reader."""
        accelerator = reader.parsed("accelerator", Accelerator.parse)
        torch = reader.parsed("torch", Minor.parse)
        return None if accelerator is None or torch is None else cls(accelerator, torch)

    def __str__(self) -> str:
        return self.path


@value
class PackagePart:
    """Where a package's part of the manifest stands, and what is in it.

    ``url`` is relative to the document that names it, ``sha256`` that of the part's bytes;
    ``versions`` are public versions, oldest first.
    """

    name: str
    url: str
    sha256: str
    versions: tuple[str, ...] = ()
    wheels: int = 0


@value
class Manifest:
    """``/manifest/index.json``: packages by normalised name, and every channel of the site.

    ``fallback`` is the combination that serves most packages, for clients whose host decides
    nothing; None for an empty site. ``releases`` is the farm's GitHub repository (``owner/name``),
    whose releases answer when the site cannot be reached; empty where it has none.
    """

    packages: Mapping[str, PackagePart]
    combinations: tuple[Combination, ...] = ()
    fallback: Combination | None = None
    releases: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the document that ``/manifest/index.json`` holds."""
        return {
            "schema": MANIFEST_SCHEMA,
            "packages": {
                name: {
                    "url": part.url,
                    "sha256": part.sha256,
                    "versions": list(part.versions),
                    "wheels": part.wheels,
                }
                for name, part in sorted(self.packages.items())
            },
            "combinations": [combination.to_dict() for combination in self.combinations],
            "fallback": None if self.fallback is None else self.fallback.to_dict(),
            **({"releases": self.releases} if self.releases else {}),
        }

    @classmethod
    def read(cls, data: Mapping[str, Any], context: str) -> "Manifest":
        """Read the document; FaultsError lists everything that is wrong with it."""
        reader = manifest_reader(data, context, MANIFEST_SCHEMA)
        packages: dict[str, PackagePart] = {}
        table = reader.table("packages")
        for name in () if table is None else table.keys():
            part = None if table is None else table.table(name)
            if part is not None:
                packages[name] = PackagePart(
                    name=name,
                    url=part.string("url"),
                    sha256=part.string("sha256"),
                    versions=part.strings("versions"),
                    wheels=part.integer("wheels", 0, least=0),
                )
        combinations = tuple(map(Combination.read, reader.tables("combinations")))
        fallback = reader.table("fallback")
        manifest = cls(
            packages=packages,
            combinations=tuple(each for each in combinations if each is not None),
            fallback=None if fallback is None else Combination.read(fallback),
            releases=reader.string("releases", ""),
        )
        reader.finish()
        return manifest


def read_part(data: Mapping[str, Any], context: str) -> tuple[WheelEntry, ...]:
    """Read a package's part, ``/manifest/packages/<package>.json``; FaultsError lists faults."""
    reader = manifest_reader(data, context, PACKAGE_SCHEMA)
    entries = tuple(map(WheelEntry.read, reader.tables("wheels")))
    reader.finish()
    return tuple(entry for entry in entries if entry is not None)


def _module(reader: Reader) -> Module:
    return Module(
        path=reader.string("path"),
        sass=reader.each("sass", Arch.parse),
        ptx=reader.each("ptx", Arch.parse),
    )


def _text(value: Minor | None) -> str | None:
    return None if value is None else str(value)


def manifest_reader(data: Mapping[str, Any], context: str, schema: str) -> Reader:
    """Return a reader of a manifest document whose schema is the one that this code knows."""
    reader = Reader(data, context)
    found = reader.string("schema")
    if found != schema:
        reader.fault(f"expected {schema!r}, found {found!r}; is this wheelfarm too old?", "schema")
    reader.finish()
    return reader
