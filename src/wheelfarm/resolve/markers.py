"""Requirements and their markers (PEP 508), judged for the target and not for this process."""

from typing import TYPE_CHECKING

from wheelfarm.resolve.candidate import Target, Wanted
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.needs import Need

if TYPE_CHECKING:
    from packaging.markers import Marker


def applies(requirement: Need, wanted: Wanted, target: Target) -> bool:
    """Return whether a requirement's marker holds on the target's host with the extras asked."""
    return marker_holds(requirement.marker, wanted.extras, target.host)


def marker_holds(marker: "Marker | None", asked: frozenset[str], host: Host) -> bool:
    """Return whether a marker holds on a host with the extras that are asked for."""
    if marker is None:
        return True
    environment = marker_environment(host)
    extras = asked or {""}
    return any(marker.evaluate({**environment, "extra": extra}) for extra in extras)


def marker_environment(host: Host) -> dict[str, str]:
    """Return the marker variables (PEP 508) of a host, where they are known."""
    environment: dict[str, str] = {"implementation_name": "cpython"}
    if host.python_version.value is not None:
        version = host.python_version.value
        environment["python_full_version"] = version.base_version
        environment["python_version"] = f"{version.major}.{version.minor}"
    system, _, machine = (host.platform.value or "").partition("_")
    names = {
        "linux": ("linux", "Linux", "posix"),
        "windows": ("win32", "Windows", "nt"),
        "macosx": ("darwin", "Darwin", "posix"),
    }
    if system in names:
        sys_platform, platform_system, os_name = names[system]
        environment |= {
            "sys_platform": sys_platform,
            "platform_system": platform_system,
            "os_name": os_name,
            "platform_machine": machine.upper() if system == "windows" else machine,
        }
    return environment
