"""Requirements and their markers (PEP 508), judged for the target and not for this process."""

from packaging.requirements import InvalidRequirement, Requirement

from wheelfarm.resolve.candidate import Target, Wanted


def read_requirement(text: str) -> Requirement | None:
    """Return a requirement; None where the text is none."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, wanted: Wanted, target: Target) -> bool:
    """Return whether a requirement's marker holds on the target's host with the extras asked."""
    if requirement.marker is None:
        return True
    environment = marker_environment(target)
    extras = wanted.extras or {""}
    return any(requirement.marker.evaluate({**environment, "extra": extra}) for extra in extras)


def marker_environment(target: Target) -> dict[str, str]:
    """Return the marker variables (PEP 508) of the target's host, where they are known."""
    host = target.host
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
