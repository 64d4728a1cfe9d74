"""What a setup.py ships: its setup() call, extension objects and build commands, as findings."""

import posixpath
from collections.abc import Iterator

from wheelfarm.survey import objects, torch_names
from wheelfarm.survey.calls import invoke
from wheelfarm.survey.engine import Engine, ExhaustedError, Frame, SetupCall
from wheelfarm.survey.extensions import PLAIN_EXTENSIONS, TORCH_BUILD, TORCH_EXTENSIONS
from wheelfarm.survey.findings import Finding
from wheelfarm.survey.guards import Guards, merged
from wheelfarm.survey.logic import holds_plainly
from wheelfarm.survey.programs import command_findings, words_of
from wheelfarm.survey.tree import Tree
from wheelfarm.survey.values import (
    HOLE,
    Assumed,
    Built,
    External,
    Function,
    Instance,
    Items,
    Klass,
    Scope,
    Table,
    Unknown,
    Value,
    is_open,
    options,
    origins,
    strip,
    texts,
)

#: Methods of a build command that setuptools calls, in its order.
_HOOKS = ("initialize_options", "finalize_options", "run", "build_extensions")

#: Commands that a wheel's build runs.
_RUNNING = frozenset({
    "build", "build_ext", "build_py", "build_clib", "bdist_wheel", "install", "install_lib",
    "egg_info", "build_rust", "editable_wheel", "build_scripts",
})  # fmt: skip


def survey_script(
    tree: Tree, project: str, file: str, *, text: str | None = None, label: str = ""
) -> list[Finding]:
    """Return what the setup script ``file`` of the folder ``project`` ships."""
    engine = Engine(tree, project)
    shown = label or file
    exhausted = False
    try:
        engine.read_script(file, text)
    except (ExhaustedError, RecursionError):
        exhausted = True
    found = [
        Finding(shows="unknown" if where == file else "none", file=where, line=line, sentence=why)
        for where, line, why in engine.faults
    ]
    if exhausted:
        found.append(_unknown(shown, 0, "the script is too long to follow to its end"))
        found += _stray(engine, [])
        return found
    shipped: list[Built] = []
    for call in engine.setups:
        found += _call_findings(engine, call, shipped)
    if not engine.setups and not engine.faults:
        found.append(_unknown(shown, 0, "no call of a setup function could be found"))
    if any(each.shows == "unknown" for each in found):
        found += _stray(engine, shipped)
    found += [
        Finding(shows="none", file=where, line=line, sentence=why)
        for where, line, why in engine.loads
    ]
    return found


def _unknown(file: str, line: int, why: str, guards: Guards = ()) -> Finding:
    return Finding(shows="unknown", file=file, line=line, sentence=why, guards=guards)


def _stray(engine: Engine, shipped: list[Built]) -> list[Finding]:
    """Return torch extensions that were made, where it could not be told what setup() gets."""
    return [
        _torch_extension(built, built.guards)
        for built in engine.built
        if built.factory in TORCH_EXTENSIONS and all(built is not each for each in shipped)
    ]


def _call_findings(engine: Engine, call: SetupCall, shipped: list[Built]) -> Iterator[Finding]:
    keywords = call.keywords
    spread = keywords.get("**")
    if spread is not None and "ext_modules" not in keywords:
        yield _unknown(
            call.file, call.line, "setup() takes keywords that cannot be told", call.guards
        )
    if "cffi_modules" in keywords:
        sentence = "cffi modules are built by scripts of their own"
        yield _unknown(call.file, call.line, sentence, call.guards)
    build_class = _commands(keywords.get("cmdclass"))
    extensions = list(_extensions(keywords.get("ext_modules"), call.guards))
    builts = [(guards, each) for guards, each in extensions if isinstance(each, Built)]
    shipped += [each for _, each in builts]
    opaque = list(_follow_commands(engine, build_class, builts))
    torch_build = any(
        isinstance(each, External) and each.name in TORCH_BUILD
        for name, _, value in build_class
        if name == "build_ext"
        for each in (value.lineage() if isinstance(value, Klass) else (value,))
    )
    for guards, each in extensions:
        yield from _extension(call, guards, each, torch_build=torch_build)
    yield from opaque
    yield from command_findings(engine)
    if call.function == "skbuild.setup":
        yield from _skbuild(engine, call)
    plain = not any(holds_plainly(guards) is not False for guards, _ in extensions)
    sentence = "setup() gets no extension modules" if plain else "the Python part of the package"
    yield Finding(
        shows="free", file=call.file, line=call.line, sentence=sentence, guards=call.guards
    )


def _skbuild(engine: Engine, call: SetupCall) -> Iterator[Finding]:
    from wheelfarm.survey.cmake_build import survey_cmake  # noqa: PLC0415 - only where needed

    source = strip(call.keywords.get("cmake_source_dir", "."))
    relative = engine.paths.relative(source) if isinstance(source, str) else None
    words = words_of(call.keywords.get("cmake_args"))
    defined = [(word, guards) for word, guards in words if word.startswith("-D")]
    yield from survey_cmake(engine.tree, relative or engine.project, defined)


def _extensions(value: Value, guards: Guards, depth: int = 6) -> Iterator[tuple[Guards, Value]]:
    """Yield each extension that reaches setup(), with what it hangs on."""
    if depth == 0:
        yield guards, Unknown()
        return
    for more, each in options(value):
        together = merged(guards, more)
        match each:
            case None:
                continue
            case Assumed():
                yield from _extensions(each.value, together, depth - 1)
            case Items():
                for entry in each.entries:
                    yield from _extensions(entry.value, merged(together, entry.guards), depth - 1)
                if each.open:
                    yield together, Unknown(each.origins)
            case _:
                yield together, each


def _commands(value: Value) -> list[tuple[str, Guards, Value]]:
    """Return the command classes of a setup() call: name, guards, class."""
    found: list[tuple[str, Guards, Value]] = []
    for guards, each in options(value):
        table = strip(each)
        if isinstance(table, Table):
            for name, classes in table.entries.items():
                found += [
                    (str(name), merged(guards, more), strip(option))
                    for more, option in options(classes)
                ]
            if table.open:
                found.append(("build_ext", guards, Unknown()))
        elif table is not None:
            found.append(("build_ext", guards, Unknown()))
    return found


def _follow_commands(
    engine: Engine,
    classes: list[tuple[str, Guards, Value]],
    builts: list[tuple[Guards, Built]],
) -> Iterator[Finding]:
    """Follow the methods of the tree's own build commands, for what they start or change."""
    for name, guards, klass in classes:
        if name not in _RUNNING or not isinstance(klass, Klass):
            continue
        try:
            with engine.under(*guards):
                _run_hooks(engine, klass, builts)
        except (ExhaustedError, RecursionError):
            yield _unknown(klass.file, klass.line, f"the command {name} is too long to follow")


def _run_hooks(engine: Engine, klass: Klass, builts: list[tuple[Guards, Built]]) -> None:
    frame = Frame(Scope(), klass.file)
    modules = Items()
    for guards, each in builts:
        modules.add(each, guards)
    command = Instance(klass, {"extensions": modules})
    command.attributes["distribution"] = Instance(
        Klass("Distribution", (), Scope(), klass.file, klass.line), {"ext_modules": modules}
    )
    for hook in _HOOKS:
        method = objects.member(engine, command, hook, frame)
        if isinstance(method, Function):
            invoke(engine, method, [], {}, frame)
    method = objects.member(engine, command, "build_extension", frame)
    if isinstance(method, Function):
        for guards, each in builts:
            with engine.under(*guards):
                invoke(engine, method, [each], {}, frame)


def _extension(
    call: SetupCall, guards: Guards, each: Value, *, torch_build: bool
) -> Iterator[Finding]:
    if isinstance(each, Built):
        if each.factory in TORCH_EXTENSIONS:
            yield _torch_extension(each, guards)
        elif each.klass is None or texts(each.keywords.get("sources")):
            yield _plain_extension(each, guards, torch_build=torch_build)
        elif each.factory in PLAIN_EXTENSIONS:
            # An extension without sources is a name for what the build command makes.
            yield Finding(
                shows="none",
                file=each.file,
                line=each.line,
                sentence="an extension without sources: the build command makes it",
                guards=guards,
            )
    elif isinstance(each, str):
        yield Finding(
            shows="free", file=call.file, line=call.line, guards=guards,
            sentence=f"{each} is compiled as a plain extension",
        )  # fmt: skip
    else:
        yield _unknown(
            call.file, call.line, "setup() gets an extension module that cannot be told", guards
        )


def _torch_extension(built: Built, guards: Guards) -> Finding:
    kind = built.factory.rpartition(".")[2]
    flags = texts(built.keywords.get("extra_compile_args"))
    macros = texts(built.keywords.get("define_macros"))
    sources = built.keywords.get("sources")
    if isinstance(sources, Items) and not sources.entries and not sources.open:
        why = f"{kind} gets no source file that is in this tree"
        return _unknown(built.file, built.line, why, guards)
    if "absent" in origins(sources) and not any(HOLE not in text for text in texts(sources)):
        why = f"the sources of {kind} lie in a git submodule that is absent"
        return _unknown(built.file, built.line, why, guards)
    stable = torch_names.stable([*flags, *macros])
    if stable:
        return Finding(
            shows="stable_abi", file=built.file, line=built.line, guards=guards,
            sentence=f"{kind} is compiled with {_shown(stable)}: only torch's stable ABI",
        )  # fmt: skip
    return Finding(
        shows="linked", file=built.file, line=built.line, guards=guards,
        sentence=f"{kind} links torch's libraries",
    )  # fmt: skip


def _plain_extension(built: Built, guards: Guards, *, torch_build: bool) -> Finding:  # noqa: PLR0911 - one return per kind
    kind = (built.klass.name if built.klass else built.factory).rpartition(".")[2]
    linking = {
        key: built.keywords.get(key) for key in ("libraries", "extra_link_args", "extra_objects")
    }
    named = torch_names.torch_library(text for value in linking.values() for text in texts(value))
    compiling = [built.keywords.get(key) for key in ("extra_compile_args", "define_macros")]
    place = {"file": built.file, "line": built.line}
    if named:
        return _finding("linked", place, f"{kind} links {_shown(named)}", guards)
    vague = [key for key, value in linking.items() if value is not None and is_open(value)]
    if any("torch" in origins(linking[key]) for key in vague):
        return _unknown(built.file, built.line, f"{kind} takes {vague[0]} from torch", guards)
    if "**" in built.keywords:
        return _unknown(
            built.file, built.line, f"{kind} takes keywords that cannot be told", guards
        )
    if any("abi" in origins(value) for value in compiling):
        return _finding("abi_flag", place, f"{kind} is compiled with torch's C++ ABI flag", guards)
    if torch_build:
        why = f"{kind} links no torch, but torch's BuildExtension compiles it with its ABI flag"
        return _finding("abi_flag", place, why, guards)
    if vague and "libraries" in vague:
        return _unknown(built.file, built.line, f"the libraries of {kind} cannot be told", guards)
    names = [text for text in texts(linking["libraries"]) if HOLE not in text]
    links = ", ".join(names[:6]) or "no library of torch"
    return _finding("free", place, f"{kind} links {links}", guards)


def _finding(shows: str, place: dict[str, object], sentence: str, guards: Guards) -> Finding:
    return Finding(shows=shows, sentence=sentence, guards=guards, **place)  # type: ignore[arg-type] # three fixed keys


def _shown(text: str) -> str:
    return posixpath.basename(text.replace(HOLE, "…"))[:80]
