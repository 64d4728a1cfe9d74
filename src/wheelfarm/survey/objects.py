"""Members, elements and updates of abstract values: everything that is read or changed by name."""

from typing import TYPE_CHECKING, Any

from wheelfarm.survey import externals
from wheelfarm.survey.guards import Guards, merged
from wheelfarm.survey.logic import MAX_SIZE, assume, lift
from wheelfarm.survey.values import (
    Assumed,
    Bound,
    Built,
    Choice,
    Entry,
    External,
    Function,
    Instance,
    Items,
    Klass,
    Lazy,
    Module,
    PathValue,
    Scope,
    Table,
    Unknown,
    Value,
    causes,
    choice,
    options,
    origins,
    strip,
)

if TYPE_CHECKING:
    from wheelfarm.survey.engine import Engine, Frame

#: What a call that ends the script returns.
EXIT = Bound(None, "exit")

#: Keywords of an extension that are lists, made on first use.
LISTS = frozenset({
    "sources", "include_dirs", "define_macros", "undef_macros", "library_dirs", "libraries",
    "runtime_library_dirs", "extra_objects", "extra_compile_args", "extra_link_args", "depends",
})  # fmt: skip


def member(engine: "Engine", holder: Value, name: str, frame: "Frame") -> Value:  # noqa: PLR0911 - one return per kind
    """Return ``holder.name``."""
    match holder:
        case Choice():
            found = [(guards, member(engine, each, name, frame)) for guards, each in holder.options]
            return choice(found)
        case Assumed():
            return assume(member(engine, holder.value, name, frame), holder.causes)
        case Module():
            return _module_member(engine, holder, name, frame)
        case External():
            return externals.attribute(f"{holder.name}.{name}")
        case Instance() | Built() | Klass():
            return _object_member(engine, holder, name, frame)
        case PathValue():
            return externals.path_attribute(engine, holder, name)
        case Function() | None:
            return Unknown()
        case Unknown() if "spec" in holder.origins and name == "loader":
            return External("importlib.loader")
        case Unknown():
            return Bound(holder, name)
        case _:
            return Bound(holder, name)


def _module_member(engine: "Engine", module: Module, name: str, frame: "Frame") -> Value:
    own = module.scope.names.get(name, _ABSENT)
    if isinstance(own, Lazy) and own.name == name and _stands_for(own, module):
        # A package that imports a submodule from itself: the name is the submodule.
        own = _ABSENT
    if own is not _ABSENT:
        return engine.resolved(own, frame)
    if name == "__dict__":
        return Table(dict(module.scope.names))
    if module.file.endswith("__init__.py"):
        folder = module.file.removesuffix("/__init__.py")
        found = engine.local(f"{folder}/{name}", name)
        if found is not None:
            return found
        if name == "__path__":
            return _one(f"/tree/{folder}")
    dynamic = module.scope.names.get("__getattr__")
    if isinstance(dynamic, Function) and not name.startswith("__"):
        from wheelfarm.survey import calls  # noqa: PLC0415 - calls lean on members in turn

        return calls.invoke(engine, dynamic, [name], {}, frame)
    return Unknown()


_ABSENT = Bound(None, "absent")


def _stands_for(lazy: Lazy, module: Module) -> bool:
    return module.file in {f"{lazy.path}.py", f"{lazy.path}/__init__.py"}


def _one(value: Value) -> Items:
    result = Items()
    result.add(value)
    return result


def _object_member(
    engine: "Engine", holder: Instance | Built | Klass, name: str, frame: "Frame"
) -> Value:
    own = holder.keywords if isinstance(holder, Built) else getattr(holder, "attributes", {})
    if name in own:
        return own[name]
    klass = holder if isinstance(holder, Klass) else holder.klass
    if klass is not None:
        found = _inherited(engine, klass, holder, name, frame)
        if found is not None:
            return found
    if isinstance(holder, Built) and name in LISTS:
        holder.keywords[name] = Items()
        return holder.keywords[name]
    if name == "__class__" and klass is not None:
        return klass
    if name == "__name__" and isinstance(holder, Klass):
        return holder.name
    return Bound(holder, name)


def _inherited(
    engine: "Engine", klass: Klass, holder: Value, name: str, frame: "Frame"
) -> Value | None:
    for ancestor in klass.lineage():
        if isinstance(ancestor, External):
            continue
        if name in ancestor.scope.names:
            value = ancestor.scope.names[name]
            if not isinstance(value, Function):
                return value
            return _method(engine, value, holder, frame)
    return None


def _method(engine: "Engine", function: Function, holder: Value, frame: "Frame") -> Value:
    from wheelfarm.survey import calls  # noqa: PLC0415 - calls lean on members in turn

    names = {each.name for each in function.decorators if isinstance(each, External)}
    if "builtins.staticmethod" in names:
        return function
    if isinstance(holder, Klass) and "builtins.classmethod" not in names:
        return function
    bound = Function(
        function.node, function.scope, function.file, function.defaults, holder, function.owner,
        function.decorators,
    )  # fmt: skip
    if names & {"builtins.property", "functools.cached_property"}:
        return calls.invoke(engine, bound, [], {}, frame)
    return bound


def set_attribute(engine: "Engine", holder: Value, name: str, value: Value) -> None:
    """Follow ``holder.name = value``; under guards the old value stays an alternative."""
    for guards, each in options(holder):
        with engine.under(*guards):
            match each:
                case Instance():
                    _store(engine, each.attributes, name, value)
                case Built():
                    _store(engine, each.keywords, name, value)
                case Module():
                    _store(engine, each.scope.names, name, value)
                case Klass():
                    each.scope.names[name] = value
                case _:
                    pass


def _store(engine: "Engine", entries: dict[Any, Value], key: Value, value: Value) -> None:
    now = engine.now()
    if now and key in entries and entries[key] is not value:
        entries[key] = choice([(now, value), ((), entries[key])])
    else:
        entries[key] = value


def set_item(engine: "Engine", holder: Value, key: Value, value: Value) -> None:
    """Follow ``holder[key] = value``."""
    for guards, each in options(holder):
        with engine.under(*guards):
            told = strip(key)
            if isinstance(each, Table):
                if isinstance(told, (str, int)):
                    _store_guarded(engine, each, told, value)
                else:
                    each.open = True
            elif isinstance(each, External) and each.name == "os.environ" and isinstance(told, str):
                engine.environment[told] = assume(value, causes(value))
            elif isinstance(each, Items):
                each.add(value, engine.now())


def _store_guarded(engine: "Engine", table: Table, key: str | int, value: Value) -> None:
    now = tuple(guard for guard in engine.now() if guard not in table.born)
    if now:
        old = table.entries.get(key, Items())
        table.entries[key] = choice([(now, value), ((), old)])
    else:
        table.entries[key] = value


def item(engine: "Engine", holder: Value, key: Value) -> Value:
    """Return ``holder[key]``."""
    return lift(lambda one, other: _item(engine, one, other), holder, key)


def _item(engine: "Engine", holder: Value, key: Value) -> Value:  # noqa: PLR0911 - one return per kind
    match holder:
        case Table() if isinstance(key, (str, int)) and key in holder.entries:
            return holder.entries[key]
        case Items() if isinstance(key, int) and not holder.open:
            try:
                return holder.entries[key].value
            except IndexError:
                return Unknown()
        case Items() | Table():
            values = holder.plain_values() if isinstance(holder, Items) else holder.entries.values()
            found = [((), value) for value in values]
            return choice([*found, ((), Unknown())]) if found else Unknown(origins(holder))
        case str() if isinstance(key, int):
            return holder[key] if -len(holder) <= key < len(holder) else Unknown()
        case External(name="os.environ"):
            return externals.environment(engine, key, None, required=True)
        case External(name="sys.version_info"):
            return externals.attribute(
                "sys.version_info.major" if key == 0 else "sys.version_info.minor"
            )
        case _:
            return Unknown(origins(holder))


def sliced(holder: Value, lower: Value, upper: Value) -> Value:  # noqa: PLR0911 - one return per kind
    """Return ``holder[lower:upper]``."""
    bounds = [each if isinstance(each, int) else None for each in (lower, upper)]
    told = all(each is None or isinstance(each, int) for each in (lower, upper))
    match holder:
        case str() if told:
            return holder[bounds[0] : bounds[1]]
        case Items() if told and not holder.open:
            return Items(holder.entries[bounds[0] : bounds[1]], kind=holder.kind)
        case Items():
            return Items(list(holder.entries), open=True, kind=holder.kind, origins=holder.origins)
        case External(name="sys.version_info"):
            return externals.version_info()
        case Assumed():
            return assume(sliced(holder.value, lower, upper), holder.causes)
        case Choice():
            return choice([(g, sliced(each, lower, upper)) for g, each in holder.options])
        case _:
            return Unknown(origins(holder))


def unbounded(value: Value) -> bool:
    """Return whether a sequence may hold elements that cannot be told."""
    match value:
        case Items() | Table():
            return value.open
        case Assumed():
            return unbounded(value.value)
        case Choice():
            return any(unbounded(option) for _, option in value.options)
        case str():
            return False
        case _:
            return True


def elements(value: Value, limit: int) -> list[tuple[Guards, Value]]:
    """Return what a loop over ``value`` sees: at most ``limit`` elements, each under its guards.

    A sequence that cannot be told gives one Unknown element, so that the loop's body is followed.
    """
    found: list[tuple[Guards, Value]] = []
    for guards, each in options(value):
        each = strip(each)  # noqa: PLW2901 - what is assumed is looped over as it is
        match each:
            case Items():
                found += [(merged(guards, entry.guards), entry.value) for entry in each.entries]
            case Table():
                found += [(guards, key) for key in each.entries]
            case str():
                found += [(guards, char) for char in each[:limit]]
            case _:
                pass
        if unbounded(each) and not (isinstance(each, (Items, Table)) and each.entries):
            found.append((guards, Unknown(origins(each))))
    return found[:limit]


def unpacked(value: Value, count: int) -> list[Value]:
    """Return ``count`` values for the targets of an unpacking."""
    if isinstance(value, Choice):
        rows = [(guards, unpacked(option, count)) for guards, option in value.options]
        return [choice([(guards, row[index]) for guards, row in rows]) for index in range(count)]
    told = strip(value)
    if isinstance(told, Items) and not told.open and len(told.entries) >= count:
        return told.plain_values()[:count]
    return [Unknown(origins(value))] * count


def extend(engine: "Engine", target: Value, more: Value, *, guarded: bool = True) -> None:
    """Follow ``target.extend(more)``; new elements carry the guards in force."""
    if not isinstance(target, Items):
        return
    now = engine.now() if guarded else ()
    for guards, each in options(more):
        told = strip(each)
        if isinstance(told, (Items, Table)):
            room = MAX_SIZE - len(target.entries)
            for inner, value in elements(told, room):
                target.add(value, merged(merged(now, guards), inner))
            target.open = target.open or told.open
        elif isinstance(told, str):
            target.entries += [Entry(char, now) for char in told[:MAX_SIZE]]
        else:
            target.open = True
            target.origins |= origins(told)


def update(target: Table, more: Value) -> None:
    """Follow ``target.update(more)``."""
    for _, each in options(more):
        told = strip(each)
        if isinstance(told, Table):
            target.entries |= told.entries
            target.open = target.open or told.open
        else:
            target.open = True


def names_of(value: Value) -> Items:
    """Return what ``dir(value)`` gives for a module or class of the tree."""
    scope: Scope | None = value.scope if isinstance(value, (Module, Klass)) else None
    if scope is None:
        return Items(open=True)
    result = Items()
    for name in sorted(scope.names):
        result.add(name)
    return result
