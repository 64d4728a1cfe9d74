"""Calls of the Python reader: functions and classes of the tree, and what setup scripts call."""

import ast
from typing import TYPE_CHECKING

from wheelfarm.survey import containers, externals, objects, programs
from wheelfarm.survey.extensions import SETUP_FUNCTIONS, factory_of, is_extension
from wheelfarm.survey.specials import SPECIAL
from wheelfarm.survey.values import (
    Assumed,
    Bound,
    Built,
    External,
    Function,
    Instance,
    Items,
    Klass,
    Partial,
    Scope,
    Table,
    Unknown,
    Value,
    choice,
    options,
    origins,
    strip,
    union,
)

if TYPE_CHECKING:
    from wheelfarm.survey.engine import Engine, Frame, Site

#: Positional parameters of setuptools' and torch's extension classes.
_POSITIONAL = ("name", "sources", "include_dirs", "define_macros", "undef_macros", "library_dirs",
               "libraries")  # fmt: skip

#: A function that runs inside itself this often is followed no further.
MAX_RECURSION = 4

_ENDS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit", "os.abort"})

_PROGRAMS = frozenset({
    "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
    "subprocess.Popen", "subprocess.getoutput", "subprocess.getstatusoutput", "os.system",
    "os.popen", "distutils.spawn.spawn", "self.spawn",
})  # fmt: skip

#: Calls that give back their first argument, as far as the survey is concerned.
_TRANSPARENT = frozenset({
    "builtins.list", "builtins.tuple", "builtins.sorted", "builtins.set", "builtins.reversed",
    "builtins.frozenset", "builtins.iter", "Cython.Build.cythonize", "copy.copy", "copy.deepcopy",
    "builtins.dict.fromkeys", "Cython.Build.Dependencies.cythonize", "mypyc.build.mypycify",
    "functools.lru_cache", "functools.cache", "functools.wraps", "contextlib.contextmanager",
    "typing.cast", "operator.itemgetter",
})  # fmt: skip


def call(engine: "Engine", node: ast.Call, frame: "Frame") -> Value:
    """Follow one call and return what it gives."""
    callee = engine.value(node.func, frame)
    site = engine.site(
        arguments=_positional(engine, node, frame),
        keywords=_keywords(engine, node, frame),
        line=node.lineno,
        frame=frame,
    )
    results = []
    for guards, each in options(callee):
        with engine.under(*guards):
            results.append((guards, _call_one(engine, each, site)))
    return choice(results)


def _positional(engine: "Engine", node: ast.Call, frame: "Frame") -> list[Value]:
    found: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = strip(engine.value(argument.value, frame))
            if isinstance(value, Items) and not value.open:
                found += value.plain_values()
            else:
                found.append(Unknown(origins(value)))
        else:
            found.append(engine.value(argument, frame))
    return found


def _keywords(engine: "Engine", node: ast.Call, frame: "Frame") -> dict[str, Value]:
    found: dict[str, Value] = {}
    for keyword in node.keywords:
        value = engine.value(keyword.value, frame)
        if keyword.arg is not None:
            found[keyword.arg] = value
            continue
        for _, each in options(value):
            told = strip(each)
            if isinstance(told, Table):
                found |= {str(key): item for key, item in told.entries.items()}
            if not isinstance(told, Table) or told.open:
                found["**"] = Unknown(origins(value))
    return found


def _call_one(  # noqa: PLR0911 - one line per kind of callee
    engine: "Engine", callee: Value, site: "Site"
) -> Value:
    match callee:
        case Assumed():
            return _call_one(engine, callee.value, site)
        case Partial():
            inner = engine.site(
                arguments=[*callee.arguments, *site.arguments],
                keywords={**callee.keywords, **site.keywords},
                line=site.line,
                frame=site.frame,
            )
            return _call_one(engine, callee.callee, inner)
        case Function():
            return invoke(engine, callee, site.arguments, site.keywords, site.frame)
        case Klass():
            return construct(engine, callee, site)
        case External():
            return _call_external(engine, callee.name, site)
        case Bound(receiver=Instance() | Built() | Klass() | Unknown() | None):
            return _call_foreign_method(engine, callee, site)
        case Bound():
            return containers.method(
                engine, callee.receiver, callee.name, site.arguments, site.keywords
            )
        case Instance():
            method = objects.member(engine, callee, "__call__", site.frame)
            known = isinstance(method, Function)
            return (
                invoke(engine, method, site.arguments, site.keywords, site.frame)
                if known
                else Unknown()
            )
        case _:
            return Unknown(union([origins(callee), *(origins(each) for each in site.arguments)]))


def invoke(
    engine: "Engine",
    function: Function,
    arguments: list[Value],
    keywords: dict[str, Value],
    frame: "Frame",
) -> Value:
    """Follow a function of the tree and return its value; Unknown where it calls itself on."""
    active = engine.active.get(id(function.node), 0)
    if active >= MAX_RECURSION or engine.too_deep:
        return Unknown()
    engine.active[id(function.node)] = active + 1
    try:
        return _invoke(engine, function, arguments, keywords, frame)
    finally:
        engine.active[id(function.node)] = active


def _invoke(
    engine: "Engine",
    function: Function,
    arguments: list[Value],
    keywords: dict[str, Value],
    frame: "Frame",
) -> Value:
    scope = Scope(parent=function.scope)
    given = ([function.receiver] if function.receiver is not None else []) + arguments
    _bind_parameters(function, given, keywords, scope)
    if isinstance(function.node, ast.Lambda):
        inner = type(frame)(scope, function.file, len(engine.guards), function=function)
        with engine.deeper():
            return engine.value(function.node.body, inner)
    with engine.deeper():
        inner = type(frame)(scope, function.file, len(engine.guards), function=function)
        flow = engine.block(function.node.body, inner)
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function.node)):
            return Items(open=True)
        if flow == "raise" and not inner.returns:
            return objects.EXIT
        if not flow:
            inner.returns.append((tuple(engine.guards[inner.base :]), None))
    return choice(inner.returns) if inner.returns else None


def _bind_parameters(
    function: Function, given: list[Value], keywords: dict[str, Value], scope: Scope
) -> None:
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    scope.names |= {name: function.defaults.get(name, Unknown()) for name in names}
    scope.names |= {
        each.arg: function.defaults.get(each.arg, Unknown()) for each in parameters.kwonlyargs
    }
    scope.names |= dict(zip(names, given, strict=False))
    known = {*names, *(each.arg for each in parameters.kwonlyargs)}
    spare = Table(open="**" in keywords)
    for name, value in keywords.items():
        if name in known:
            scope.names[name] = value
        elif name != "**":
            spare.entries[name] = value
    if parameters.vararg is not None:
        rest = Items(kind="tuple")
        for value in given[len(names) :]:
            rest.add(value)
        scope.names[parameters.vararg.arg] = rest
    if parameters.kwarg is not None:
        scope.names[parameters.kwarg.arg] = spare


def construct(engine: "Engine", klass: Klass, site: "Site") -> Value:
    """Return a new object of a class of the tree; its ``__init__`` is followed."""
    made: Built | Instance
    factory = factory_of(klass)
    if factory:
        made = Built(factory, {}, site.frame.file, site.line, engine.now(), klass)
        engine.built.append(made)
    else:
        made = Instance(klass)
    start = objects.member(engine, made, "__init__", site.frame)
    if isinstance(start, Function):
        invoke(engine, start, site.arguments, site.keywords, site.frame)
    elif isinstance(made, Built):
        _fill(made, site.arguments, site.keywords)
    else:
        made.attributes |= site.keywords
    return made


def _fill(built: Built, arguments: list[Value], keywords: dict[str, Value]) -> None:
    built.keywords |= dict(zip(_POSITIONAL, arguments, strict=False))
    built.keywords |= keywords


def _call_foreign_method(engine: "Engine", bound: Bound, site: "Site") -> Value:
    """Follow a method that a foreign base class owns, such as ``super().__init__``."""
    receiver = bound.receiver
    if isinstance(receiver, Built) and bound.name == "__init__":
        _fill(receiver, site.arguments, site.keywords)
        return None
    if bound.name == "spawn" and site.arguments:
        engine.note_command("self.spawn", site.arguments[0], None, site.line, site.frame)
        return Unknown()
    if bound.name == "with_options" and isinstance(receiver, Klass):
        return receiver
    return Unknown(union([origins(receiver), *(origins(each) for each in site.arguments)]))


def _call_external(engine: "Engine", name: str, site: "Site") -> Value:  # noqa: PLR0911 - one return per kind
    if name.endswith(".with_options"):
        return External(name.removesuffix(".with_options"))
    special = SPECIAL.get(name)
    if special is not None:
        return special(engine, site)
    if name in SETUP_FUNCTIONS:
        engine.note_setup(name, site.arguments, site.keywords, site.line, site.frame)
        return Unknown()
    if name in _PROGRAMS:
        return _start_program(engine, name, site)
    if name in _ENDS:
        return objects.EXIT
    if is_extension(name):
        return _build_extension(engine, name, site)
    if name in _TRANSPARENT and site.arguments:
        return containers.copied(site.arguments[0])
    if name.startswith("builtins."):
        return containers.builtin(
            engine, name.partition(".")[2], site.arguments, site.keywords, frame=site.frame
        )
    found = externals.known(engine, name, site.arguments, site.keywords)
    if found is not externals.NOT_KNOWN:
        return found
    return externals.foreign_result(name, [*site.arguments, *site.keywords.values()])


def _start_program(engine: "Engine", name: str, site: "Site") -> Value:
    """Note a program that the script would start; one that a farm lacks raises."""
    argv = site.arguments[0] if site.arguments else site.keywords.get("args")
    if programs.absent(argv):
        return objects.EXIT
    if programs.lists_hardware(argv):
        return Assumed("0", frozenset({"hardware"}))
    reads = bool({"capture_output", "stdout"} & site.keywords.keys())
    function = f"{name} (read)" if reads else name
    engine.note_command(function, argv, site.keywords.get("cwd"), site.line, site.frame)
    return Unknown(frozenset({"command"}) | origins(argv))


def _build_extension(engine: "Engine", name: str, site: "Site") -> Value:
    if name.endswith(".__init__") and site.arguments and isinstance(site.arguments[0], Built):
        _fill(site.arguments[0], site.arguments[1:], site.keywords)
        return None
    built = Built(name, {}, site.frame.file, site.line, engine.now())
    _fill(built, site.arguments, site.keywords)
    engine.built.append(built)
    return built
