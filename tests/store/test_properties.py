"""Rules that hold for every input: merging catalogues, reading pages, keys, negotiation."""

import json
from html import escape

from hypothesis import given, settings
from hypothesis import strategies as some

from wheelfarm.build.costs import Costs, Measured
from wheelfarm.errors import BadInputError
from wheelfarm.index.listing import links_of_html
from wheelfarm.index.model import WheelEntry
from wheelfarm.index.pages import safe_address
from wheelfarm.index.rows import rows_of
from wheelfarm.index.server import JSON_TYPE, preferred
from wheelfarm.model.wheel_name import WheelName
from wheelfarm.store.model import Record, catalogue_bytes, merge, parse_catalogue
from wheelfarm.store.protocol import wheel_key

versions = some.integers(0, 3).map(lambda number: f"1.{number}")
reasons = some.none() | some.text(max_size=20)


@some.composite
def records(draw: some.DrawFn) -> dict[str, Record]:
    found = {}
    for version in draw(some.lists(versions, max_size=4, unique=True)):
        name = f"demo-{version}+cu130torch2.14-cp311-cp311-linux_x86_64.whl"
        digest = "a" * 64
        record = Record(
            entry=WheelEntry(
                name=WheelName.parse(name),
                url=f"files/demo/{digest}/{name}",
                sha256=digest,
                size=1,
                yanked=draw(reasons),
            ),
            report="b" * 64,
            uploaded="2026-01-01T00:00:00Z",
            warnings=tuple(draw(some.lists(some.text(max_size=9), max_size=2))),
            revision=draw(some.integers(1, 4)),
            removed=draw(some.booleans()),
        )
        found[name] = record
    return found


@given(records())
def test_a_catalogue_is_read_back_as_it_was(found: dict[str, Record]) -> None:
    data = catalogue_bytes("demo", found)
    assert parse_catalogue(data, "catalogue") == found
    assert catalogue_bytes("demo", parse_catalogue(data, "catalogue")) == data
    rows = rows_of("demo", json.loads(data)["wheels"])
    assert {row.filename for row in rows} == {n for n, r in found.items() if not r.removed}


@given(records(), records(), records())
def test_merging_loses_nothing_and_knows_no_order(
    one: dict[str, Record], two: dict[str, Record], three: dict[str, Record]
) -> None:
    whole = merge([one, two, three])
    assert whole == merge([three, one, two]) == merge([merge([two, three]), one])
    assert set(whole) == {*one, *two, *three}
    for name, record in whole.items():
        states = [state[name] for state in (one, two, three) if name in state]
        assert record in states
        assert record.revision == max(state.revision for state in states)
    assert merge([whole, whole]) == whole


@some.composite
def costs(draw: some.DrawFn) -> Costs:
    values = some.builds(
        Measured,
        archs=some.integers(0, 2),
        seconds=some.sampled_from([1.0, 2.5]),
        peak=some.integers(0, 3),
        at=some.sampled_from(["", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
    )
    keys = some.sampled_from(["a.cu", "b c.cpp"])
    found = draw(some.lists(some.tuples(keys, values), max_size=5))
    merged = Costs()
    for key, value in found:
        merged = merged.merged(Costs({key: {value.archs: value}}))
    return merged


@given(costs(), costs(), costs())
def test_merging_costs_keeps_the_newest_and_knows_no_order(
    one: Costs, two: Costs, three: Costs
) -> None:
    whole = one.merged(two).merged(three).measured
    assert whole == three.merged(one.merged(two)).measured == two.merged(three.merged(one)).measured
    for key, values in whole.items():
        for archs, value in values.items():
            given = [m[key][archs] for m in (one.measured, two.measured, three.measured)
                     if archs in m.get(key, {})]  # fmt: skip
            assert value in given
            assert value.at == max(each.at for each in given)
    assert Costs.of_bytes(Costs(whole).to_bytes(), "costs").measured == whole


@given(some.text(), some.text(min_size=1))
@settings(max_examples=200)
def test_no_text_breaks_the_reading_of_a_page(href: str, text: str) -> None:
    page = f'<a href="{escape(href)}">{escape(text)}</a><a href="x.whl#sha256={"0" * 64}">x</a>'
    links = links_of_html(page, "https://host/simple/x/")
    assert links[-1].url == "https://host/simple/x/x.whl"
    assert all(link.url.startswith(("http://", "https://")) for link in links)


@given(some.text())
def test_an_address_never_leaves_its_attribute(text: str) -> None:
    address = safe_address(f"https://host/{text}".encode("utf-8", "replace").decode())
    assert not set(address) & set("\"'<>&\\ \n\t`")
    assert escape(address) == address


@given(some.text())
def test_any_accept_header_is_answered(accept: str) -> None:
    assert preferred(accept) in {JSON_TYPE, "text/html"}


@given(some.text(max_size=30), some.text(max_size=30))
def test_keys_are_made_of_checked_words(package: str, filename: str) -> None:
    try:
        key = wheel_key(package, "0" * 64, filename)
    except BadInputError:
        return
    assert key.count("/") == 3
    assert ".." not in key.split("/")
