"""Foreign calls that reach into the tree or change how it is read: imports, exec, super()."""

from typing import TYPE_CHECKING

from wheelfarm.survey import objects
from wheelfarm.survey.values import (
    Built,
    Instance,
    Klass,
    Partial,
    PathValue,
    Scope,
    Table,
    Unknown,
    Value,
    strip,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wheelfarm.survey.engine import Engine, Site


def _super(site: "Site") -> Value:
    """Return an object whose members are those of the bases of the running method's class."""
    function = site.frame.function
    owner = function.owner if function is not None else None
    if owner is None:
        return Unknown()
    receiver = (
        next(iter(site.frame.scope.names.values()), None)
        if not site.arguments
        else site.arguments[-1]
    )
    proxy = Klass(owner.name, owner.bases, Scope(), owner.file, owner.line)
    if isinstance(receiver, Built):
        return _BuiltProxy(receiver, proxy)
    made = Instance(proxy)
    if isinstance(receiver, Instance):
        made.attributes = receiver.attributes
    return made


def _BuiltProxy(receiver: Built, proxy: Klass) -> Built:  # noqa: N802 - reads as a type
    return Built(
        receiver.factory, receiver.keywords, receiver.file, receiver.line, receiver.guards, proxy
    )


def _getattr(engine: "Engine", site: "Site") -> Value:
    name = strip(site.arguments[1]) if len(site.arguments) > 1 else None
    if isinstance(name, str):
        return objects.member(engine, site.arguments[0], name, site.frame)
    return Unknown()


def _load_by_location(site: "Site") -> Value:
    location = site.arguments[1] if len(site.arguments) > 1 else site.keywords.get("location")
    told = strip(location)
    text = told.text if isinstance(told, PathValue) else told
    return Unknown(frozenset({"spec"}), text if isinstance(text, str) else "")


def _module_from(engine: "Engine", site: "Site") -> Value:
    spec = site.arguments[0] if site.arguments else None
    if isinstance(spec, Unknown) and spec.text:
        relative = engine.paths.relative(spec.text)
        found = engine.load(relative, name=relative) if relative else None
        return found if found is not None else Unknown()
    return Unknown()


def _import_module(engine: "Engine", site: "Site") -> Value:
    name = strip(site.arguments[0]) if site.arguments else None
    if not isinstance(name, str) or not name:
        return Unknown()
    package = strip(site.arguments[1]) if len(site.arguments) > 1 else None
    if name.startswith(".") and isinstance(package, str):
        name = f"{package}{name}"
    level = len(name) - len(name.lstrip("."))
    return engine.module_of(name.lstrip("."), level=level, file=site.frame.file)


def _run_text(engine: "Engine", site: "Site") -> Value:
    """Follow ``exec(text, names)``."""
    text = strip(site.arguments[0]) if site.arguments else None
    if not isinstance(text, str):
        return None
    body = engine.parse(text, site.frame.file)
    target = strip(site.arguments[1]) if len(site.arguments) > 1 else None
    scope = Scope() if isinstance(target, Table) else site.frame.scope
    if body is not None:
        with engine.deeper():
            engine.block(body, type(site.frame)(scope, site.frame.file, len(engine.guards)))
    if isinstance(target, Table):
        target.entries |= scope.names
    return None


def _run_path(engine: "Engine", site: "Site") -> Value:
    told = strip(site.arguments[0]) if site.arguments else None
    text = told.text if isinstance(told, PathValue) else told
    relative = engine.paths.relative(text) if isinstance(text, str) else None
    module = engine.load(relative, name="<run_path>") if relative else None
    return Table(dict(module.scope.names)) if module is not None else Table(open=True)


def _open(engine: "Engine", site: "Site") -> Value:
    return engine.paths.text(strip(site.arguments[0])) if site.arguments else Unknown()


def _partial(site: "Site") -> Value:
    if not site.arguments:
        return Unknown()
    return Partial(site.arguments[0], site.arguments[1:], dict(site.keywords))


def _first_argument(site: "Site") -> Value:
    return site.arguments[0] if site.arguments else Unknown()


def _names(site: "Site") -> Value:
    scope = site.frame.scope
    while scope.parent is not None:
        scope = scope.parent
    return Table(scope.names)


def _runtime_load(engine: "Engine", site: "Site") -> Value:
    engine.loads.append((site.frame.file, site.line, "compiles at run time with torch's load()"))
    return Unknown()


def _search_path(engine: "Engine", site: "Site") -> Value:
    """Follow ``sys.path.insert`` and ``append``: more folders whose modules can be imported."""
    told = strip(site.arguments[-1]) if site.arguments else None
    text = told.text if isinstance(told, PathValue) else told
    relative = engine.paths.relative(text) if isinstance(text, str) else None
    if relative is not None and relative not in engine.search:
        engine.search.insert(0, relative)
    return None


#: Foreign name -> what follows a call of it.
SPECIAL: "dict[str, Callable[[Engine, Site], Value]]" = {
    "sys.path.insert": _search_path,
    "sys.path.append": _search_path,
    "functools.partial": lambda _engine, site: _partial(site),
    "builtins.super": lambda _engine, site: _super(site),
    "builtins.getattr": _getattr,
    "builtins.open": _open,
    "io.open": _open,
    "codecs.open": _open,
    "builtins.exec": _run_text,
    "builtins.compile": lambda _engine, site: _first_argument(site),
    "builtins.globals": lambda _engine, site: _names(site),
    "builtins.locals": lambda _engine, site: _names(site),
    "builtins.vars": lambda _engine, site: _names(site),
    "builtins.__import__": _import_module,
    "importlib.import_module": _import_module,
    "importlib.util.spec_from_file_location": lambda _engine, site: _load_by_location(site),
    "importlib.util.module_from_spec": _module_from,
    "runpy.run_path": _run_path,
    "torch.utils.cpp_extension.load": _runtime_load,
    "torch.utils.cpp_extension.load_inline": _runtime_load,
}
