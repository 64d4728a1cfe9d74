"""The way from names to an answer: pages are fetched as they are needed, and read once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheelfarm.errors import BadInputError, NegativeVerdictError
from wheelfarm.http import Client, redacted
from wheelfarm.model.accelerator import Accelerator
from wheelfarm.model.decision import Decision
from wheelfarm.resolve.candidate import Target, Wanted
from wheelfarm.resolve.choose import Answer, Choice, choose
from wheelfarm.resolve.host import Host
from wheelfarm.resolve.markers import marker_holds
from wheelfarm.resolve.page_book import PageBook
from wheelfarm.resolve.sources import Index
from wheelfarm.resolve.torch_files import official_cxx_abi
from wheelfarm.resolve.torch_pin import FAMILY, TorchPin, chosen_pin, installed_pin
from wheelfarm.values import replace, value

if TYPE_CHECKING:
    from wheelfarm.resolve.combinations import TorchOption
    from wheelfarm.upstream.model import UpstreamFacts

#: After so many rounds of reading chosen wheels' metadata an answer stands as it is.
_ROUNDS = 8


@value
class Resolution:
    """An answer with what it was asked, of which index, and what should be said of it.

    ``torch`` is how a lock names torch; ``refused`` are the combinations that were looked at and
    not taken; ``served`` the names of which nothing may be built from source.
    """

    host: Host
    wanted: tuple[Wanted, ...]
    index: str
    answer: Answer
    torch: TorchPin | None = None
    refused: "tuple[Decision[TorchOption], ...]" = ()
    served: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    pages: PageBook | None = None

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The chosen wheels, by name."""
        return self.answer.choices


@value
class Settings:
    """How to choose: whether torch may be chosen anew, and whether pre-releases count."""

    choose_torch: bool = False
    prereleases: bool = False
    preferred: frozenset[str] = frozenset()


def resolve(
    wanted: tuple[Wanted, ...],
    host: Host,
    index: Index,
    client: Client,
    settings: Settings | None = None,
) -> Resolution:
    """Return the answer: for the installed torch, or for one that is chosen with the packages.

    Raises BadInputError where nothing is asked for, NegativeVerdictError where what is asked of
    torch itself cannot be.
    """
    if not wanted:
        message = "no package is asked for"
        raise BadInputError(message, hint="name one: wheelfarm resolve diso")
    pages = PageBook(index, host, client)
    here = tuple(each for each in wanted if marker_holds(each.marker, each.extras, host))
    asked = Asked.of(here)
    pages.prefetch(each.name for each in asked.packages)
    left = tuple(each for each in asked.packages if each.optional and _absent(pages, each.name))
    run = _Run(
        asked=replace(asked, packages=tuple(each for each in asked.packages if each not in left)),
        host=host,
        index=index,
        pages=pages,
        settings=settings or Settings(),
        left=left,
        elsewhere=tuple(sorted({each.name for each in wanted} - {each.name for each in here})),
    )
    if host.torch.value is None or run.settings.choose_torch:
        return run.chosen()
    return run.fixed(host.torch.value)


def _absent(pages: PageBook, name: str) -> bool:
    page = pages(name)
    return page is None or page.missing


@value
class Asked:
    """What was asked for, sorted out: the index's packages, torch, and torch's family."""

    packages: tuple[Wanted, ...]
    torch: SpecifierSet
    family: Mapping[str, SpecifierSet]

    @classmethod
    def of(cls, wanted: tuple[Wanted, ...]) -> "Asked":
        """Sort out a list of what a user asks for."""
        torch = SpecifierSet()
        family: dict[str, SpecifierSet] = {}
        for each in wanted:
            if each.name == "torch":
                torch &= each.specifier
            elif each.name in FAMILY:
                family[each.name] = family.get(each.name, SpecifierSet()) & each.specifier
        return cls(
            packages=tuple(each for each in wanted if each.name not in {"torch", *FAMILY}),
            torch=torch,
            family=family,
        )


@value
class _Run:
    asked: Asked
    host: Host
    index: Index
    pages: PageBook
    settings: Settings
    left: tuple[Wanted, ...] = ()
    elsewhere: tuple[str, ...] = ()

    def fixed(self, torch: Version) -> Resolution:
        """Answer for the torch that is there: only its combination serves."""
        if not self.asked.torch.contains(torch, prereleases=True):
            message = f"torch{self.asked.torch} is asked for, and torch {torch} is installed"
            raise NegativeVerdictError(
                message,
                hint="--choose-torch lets another torch be chosen; nothing replaces it here",
            )
        answer = self.answer(torch, self.host.accelerator.value)
        family = self.family(answer)
        return self.resolution(answer, installed_pin(self.host, family))

    def chosen(self) -> Resolution:
        """Answer with the newest published torch that serves all, or a known-good one, or none."""
        from wheelfarm.resolve.combinations import fallbacks, machine_decides, options
        from wheelfarm.upstream.facts import committed_facts

        facts = committed_facts()
        decided = options(self.host, facts)
        suitable = [
            each.candidate
            for each in decided
            if each.accepted and self.asked.torch.contains(each.candidate.torch)
        ]
        notes: tuple[str, ...] = ()
        if not machine_decides(self.host):
            suitable = [
                each
                for each in fallbacks(self.host, self.index.fallback(), decided)
                if each in suitable
            ]
            notes = (_fallback_note(self.host),)
        refused = [each for each in decided if not each.accepted]
        for option, exact in [(each, True) for each in suitable] + [
            (each, False) for each in suitable
        ]:
            answer = self.answer(option.torch, option.accelerator, exact=exact)
            if answer.ok:
                pin = self.pin(option, facts, self.family(answer))
                said = f"{option} is chosen: the newest that serves all packages and this machine"
                return self.resolution(answer, pin, notes or (said,))
            if not exact:
                missed = ", ".join(miss.wanted.name for miss in answer.misses)
                refused.append(Decision(option, f"no wheel of {missed} serves it"))
        answer = self.nearest(suitable)
        return self.resolution(answer, None, notes, tuple(refused))

    def pin(
        self, option: "TorchOption", facts: "UpstreamFacts", family: Mapping[str, SpecifierSet]
    ) -> TorchPin | None:
        """Return the chosen torch's pin; the installed one's where it is that very torch."""
        host = self.host
        same = host.torch.value is not None and host.torch.value.public == option.torch.public
        if same and host.accelerator.value == option.accelerator:
            return installed_pin(host, family)
        return chosen_pin(option.torch, option.accelerator, host, facts, family)

    def nearest(self, suitable: "list[TorchOption]") -> Answer:
        """Return the no of the combination that serves the most, for the report."""
        if not suitable:
            target = self.target(self.host.torch.value, self.host.accelerator.value)
            return choose(self.asked.packages, target, self.pages)
        answers = [self.answer(each.torch, each.accelerator) for each in suitable]
        return min(answers, key=lambda each: len(each.misses))

    def answer(
        self, torch: Version | None, accelerator: Accelerator | None, *, exact: bool = False
    ) -> Answer:
        """Return the choice for one torch; metadata of plain indexes is read as it is needed."""
        target = replace(self.target(torch, accelerator), exact=exact)
        answer = choose(self.asked.packages, target, self.pages)
        for _ in range(_ROUNDS):
            if not self.pages.learn(choice.candidate for choice in answer.choices):
                break
            answer = choose(self.asked.packages, target, self.pages)
        return answer

    def target(self, torch: Version | None, accelerator: Accelerator | None) -> Target:
        host = self.host
        if torch != host.torch.value and torch is not None:
            platform = host.platform.value or ""
            host = host.with_facts(cxx_abi=official_cxx_abi(torch, accelerator, platform))
        return Target(
            host=host,
            torch=torch,
            accelerator=accelerator,
            prereleases=self.settings.prereleases,
            preferred=self.settings.preferred,
        )

    def family(self, answer: Answer) -> Mapping[str, SpecifierSet]:
        """Return the torch family members that are asked for, with what the user asks of them."""
        required = {requirement.name for choice in answer.choices for requirement in choice.outside}
        return {**{name: SpecifierSet() for name in required & set(FAMILY)}, **self.asked.family}

    def resolution(
        self,
        answer: Answer,
        pin: TorchPin | None,
        notes: tuple[str, ...] = (),
        refused: "tuple[Decision[TorchOption], ...]" = (),
    ) -> Resolution:
        said = [note for note in (self.index.transport, *notes, *_machine(self.host)) if note]
        if pin is not None and (missing := pin.missing(self.host.installed)):
            said.append(
                f"{', '.join(missing)} goes with this torch and is not installed: --install brings"
                " it, and a pylock or requirements that leave torch as it is do not hold it"
            )
        if self.elsewhere:
            said.append(f"not asked for on this host, by its marker: {', '.join(self.elsewhere)}")
        if self.left:
            said.append(f"left to the installer: {', '.join(map(str, self.left))}")
        return Resolution(
            host=self.host,
            wanted=(*self.asked.packages,),
            index=redacted(self.index.address),
            answer=answer,
            torch=pin,
            refused=refused,
            served=self.index.packages() or frozenset(),
            pages=self.pages,
            notes=tuple(said),
        )


def _fallback_note(host: Host) -> str:
    state = host.devices.value
    why = {
        "none": "there is no GPU here",
        "broken": f"the GPU's driver does not answer ({host.devices.problem})",
        "present": "the GPU's capability or its driver's CUDA is not known",
    }.get(state or "unknown", "the GPUs could not be looked at")
    return (
        f"{why}, so nothing of this machine decides: a known-good combination is taken;"
        " give --gpu and --driver to choose by them"
    )


def _machine(host: Host) -> tuple[str, ...]:
    """Return what of the machine limits the answer."""
    notes = []
    if host.visible_devices.problem:
        notes.append(host.visible_devices.problem)
    if host.backend.value == "cuda" and host.devices.value != "present":
        why = host.devices.problem or "no GPU is here"
        notes.append(f"GPU coverage was not checked: {why}")
    elif host.gpus.problem:
        notes.append(f"GPU coverage was not checked for all: {host.gpus.problem}")
    return tuple(notes)
