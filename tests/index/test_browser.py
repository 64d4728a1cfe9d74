"""The pages for people in a real Chromium: from a disk, from a sub-path, with hostile strings."""

import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.index.conftest import Farm, shipped
from tests.many_wheels import fill_store
from tests.store_wheels import make_wheel
from wheelfarm.index.build import build_site
from wheelfarm.index.grid import SCHEMA, read_grid
from wheelfarm.index.render import SiteConfig
from wheelfarm.index.shipped import ShippedTorch
from wheelfarm.store.publish import publish, yank
from wheelfarm.upstream.facts import committed_facts
from wheelfarm.values import replace

X86 = "manylinux_2_28_x86_64"
HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(2)</script>'
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium, or a skip with the reason."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium on PATH (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open an address; at the end no page may have said anything on its console."""
    said: list[str] = []
    contexts = []

    def opened(url: str, **settings: Any) -> Any:
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    # Chromium's own folder listing, were a link to lead to one, would speak here as well.
    assert said == []


def name_of(
    package: str, torch: str, python: str, version: str = "1.0", cuda: str = "cu130"
) -> str:
    return f"{package}-{version}+{cuda}torch{torch}-{python}-{python}-{X86}.whl"


@pytest.fixture
def farm_site(farm: Farm) -> Farm:
    farm.world = shipped({"cu128": "2.9 2.10", "cu130": "2.9 2.10"}, "3.10 3.11 3.12")
    farm.config = SiteConfig(title=f"Farm {HOSTILE}")
    for python in ("cp311", "cp312"):
        farm.publish(name_of("diso", "2.10", python))
    farm.publish(name_of("diso", "2.9", "cp312"))
    farm.publish(name_of("spconv", "2.9", "cp311"), axis="free")
    farm.publish(name_of("spconv", "2.10", "cp312", cuda="cu128"), axis="free")
    farm.publish(name_of("constructor", "2.9", "cp310"))
    bad = farm.publish(name_of("hostile.name", "2.10", "cp311"))
    farm.publish(name_of("hostile.name", "2.10", "cp312"))
    yank(farm.store, [bad.name], HOSTILE)
    warned = make_wheel(
        farm.folder / "wheels", name_of("hostile.name", "2.10", "cp310"), torch="linked"
    )
    publish(farm.store, warned.path, replace(warned.proof, warnings=(HOSTILE,)))
    cell = {"cell": "diso-1.0-cu130-torch2.10-cp310-linux_x86_64", "status": "failed"}
    refused = {"cell": "spconv-1.0-cu128-torch2.9-cp311-linux_x86_64", "status": "refused"}
    grid = read_grid(
        {
            "schema": SCHEMA,
            "cells": [{**cell, "reason": HOSTILE}, {**refused, "reason": "too old"}],
        },
        "grid",
    )
    build_site(farm.store, farm.tree, farm.config, farm.world, grid=grid)
    return farm


def choose(page: Any, **words: str) -> None:
    for key, value in words.items():
        page.select_option(f"#{key}", value)


def command(page: Any, tool: str) -> str:
    return str(page.text_content(f"pre[data-tool={tool}]"))


def test_find_a_wheel_from_a_disk(farm_site: Farm, open_page: Open) -> None:
    page = open_page((farm_site.site / "index.html").as_uri())
    choose(page, cuda="cu130", torch="2.10", python="3.11")
    page.check("input[value=diso]")
    page.check("input[value=spconv]")
    page.wait_for_selector("pre[data-tool=pip]")
    index = (farm_site.site / "cu130/torch2.10/simple").as_uri() + "/"
    assert command(page, "pip") == (
        f"pip install --only-binary diso,spconv --extra-index-url {index}"
        ' "diso==1.0+cu130torch2.10" "spconv==1.0+cu130torch2.9"'
    )
    assert "--no-build-package diso" in command(page, "uv")
    assert 'pixi add --pypi "diso @ file://' in command(page, "pixi")
    assert "%2Bcu130torch2.10" in command(page, "pixi")
    target = page.get_attribute("#result li a", "href")
    wheel = Path(target.removeprefix("file://").replace("%2B", "+"))
    assert wheel.read_bytes().startswith(b"PK")


def test_no_match_names_the_one_change_that_helps(farm_site: Farm, open_page: Open) -> None:
    page = open_page((farm_site.site / "index.html").as_uri() + "?package=diso")
    choose(page, cuda="cu130", torch="2.10", python="3.10")
    page.wait_for_selector("#result .note ul")
    advice = page.text_content("#result")
    assert "No wheel of diso fits" in advice
    assert "Python 3.11 instead of 3.10" in advice
    choose(page, torch="2.9", python="3.11")
    page.wait_for_function("document.querySelector('#result').textContent.includes('torch 2.10')")
    choose(page, torch="2.10", gpu="7.5")
    page.wait_for_function("document.querySelector('#result').textContent.includes('another GPU')")
    choose(page, gpu="8.6")
    page.wait_for_selector("pre[data-tool=pip]")
    choose(page, platform="linux_aarch64")
    page.wait_for_function("document.querySelector('#result').textContent.includes('x86-64')")


def test_copying(farm_site: Farm, open_page: Open) -> None:
    with sub_path(farm_site.site) as url:
        page = open_page(url, permissions=["clipboard-read", "clipboard-write"])
        page.check("input[value=diso]")
        choose(page, cuda="cu130", torch="2.10", python="3.12")
        page.click("button[aria-label='Copy the uv command']")
        page.wait_for_selector("text=Copied")
        assert page.evaluate("navigator.clipboard.readText()") == command(page, "uv")
        assert f"{url}cu130/torch2.10/simple/" in command(page, "uv")


@contextmanager
def sub_path(site: Path) -> Iterator[str]:
    """Serve the site under /some/where/ of a plain static server."""
    root = site.parent / "served"
    (root / "some").mkdir(parents=True)
    (root / "some" / "where").symlink_to(site)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/some/where/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            json.dumps(
                {
                    "schema": "wheelfarm.host/1",
                    "platform": {"value": "linux_x86_64", "source": "uname"},
                    "python": {"value": "3.11", "source": "x"},
                    "torch": {"value": "2.9.1+cu128", "source": "x"},
                    "accelerator": {"value": "cu128", "source": "x"},
                    "driver": {"value": None, "source": "x"},
                    "gpus": {"value": [{"name": "L4", "capability": "8.9"}], "source": "nvml"},
                }
            ),
            {"cuda": "cu128", "torch": "2.9", "python": "3.11", "gpu": "8.9"},
        ),
        (
            (
                "| NVIDIA-SMI 570.00  Driver Version: 570.00  CUDA Version: 12.9 |\n"
                "|   0  NVIDIA GeForce RTX 4090        Off |"
            ),
            {"cuda": "cu128", "gpu": "8.9"},
        ),
        ("| CUDA Version: 13.2 |\n NVIDIA H200 ", {"cuda": "cu130", "gpu": "9.0"}),
        ("<b>nonsense</b>", {}),
    ],
)
def test_pasting_what_a_machine_says(
    farm_site: Farm, open_page: Open, text: str, expected: dict[str, str]
) -> None:
    page = open_page((farm_site.site / "index.html").as_uri())
    page.click("summary")
    page.fill("#paste", text)
    for key, value in expected.items():
        assert page.input_value(f"#{key}") == value
    said = page.text_content("#pasted")
    assert said.startswith("Read:" if expected else "Nothing known")


def test_hostile_strings_are_text(farm_site: Farm, open_page: Open) -> None:
    page = open_page((farm_site.site / "packages/hostile-name/index.html").as_uri())
    page.wait_for_selector("#wheels tbody tr")
    text = page.text_content("#wheels")
    assert f"yanked: {HOSTILE}" in text
    assert text.count(HOSTILE) == 2
    assert page.text_content(".brand") == f"Farm {HOSTILE}"
    assert page.query_selector("main img") is None
    assert "3 of 3 wheels" in page.text_content("#status")
    assert "2026-03-04" in page.text_content("#history")
    href = page.get_attribute("#wheels tbody tr td:last-child a", "href")
    report = (farm_site.site / "packages/hostile-name" / href).resolve()
    assert json.loads(report.read_text())["schema"] == "wheelfarm.report/1"


def test_coverage_archs_torch_and_list(farm_site: Farm, open_page: Open) -> None:
    page = open_page((farm_site.site / "coverage/index.html").as_uri())
    page.wait_for_selector("#heat td")
    titles = page.eval_on_selector_all("#heat td", "cells => cells.map(c => c.title)")
    failed = next(title for title in titles if title.startswith("diso cu130/torch2.10"))
    assert f"3.10: failed, {HOSTILE}" in failed
    assert "3.11: built" in failed
    assert any("3.11: refused, too old" in title for title in titles)
    page.fill("#filter", "no such package")
    assert page.query_selector("#heat td") is None
    page = open_page((farm_site.site / "archs/index.html").as_uri())
    page.wait_for_selector("#archs td")
    assert "code + PTX" in page.text_content("#archs")
    page = open_page((farm_site.site / "torch/index.html").as_uri())
    assert "Linux x86-64: 3.10, 3.11, 3.12" in page.text_content("#shipped")
    page = open_page((farm_site.site / "packages/index.html").as_uri())
    page.click("text=constructor")
    page.wait_for_selector("#wheels tbody tr")
    assert "constructor" in page.text_content("h1")


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_runs_off_the_page(
    farm_site: Farm, open_page: Open, scheme: str
) -> None:
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme}
    for path in ("", "packages/", "coverage/", "archs/", "torch/", "packages/diso/"):
        page = open_page((farm_site.site / path / "index.html").as_uri(), **phone)
        if not path:
            page.check("input[value=diso]")
            page.wait_for_selector("#result > *")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, path


def test_by_keyboard_and_for_screen_readers(farm_site: Farm, open_page: Open) -> None:
    page = open_page((farm_site.site / "index.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, select, textarea, button')]
            .filter(e => !(e.labels && e.labels.length) && !e.getAttribute('aria-label'))
            .map(e => e.outerHTML)"""
    )
    assert unnamed == []
    page.focus("input[value=diso]")
    page.keyboard.press("Space")
    page.wait_for_selector("#result > *")
    assert page.get_attribute("#result", "aria-live") == "polite"
    assert page.get_attribute("html", "lang") == "en"
    assert page.get_attribute("nav a[aria-current]", "aria-current") == "page"


@pytest.mark.full
def test_an_index_of_thirty_thousand_wheels(farm: Farm, open_page: Open) -> None:
    farm.world = ShippedTorch.of(committed_facts())
    count = fill_store(farm.store, farm.world, 30_000)
    farm.build()
    page = open_page((farm.site / "index.html").as_uri())
    loaded = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    assert not [name for name in loaded if "/data/" in name]
    choose(page, cuda="cu130", torch="2.10", python="3.11")
    page.fill("#filter", "package-00")
    page.check("input[value=package-00]")
    page.wait_for_selector("pre[data-tool=pip]")
    assert "package-00==" in command(page, "pip")
    page = open_page((farm.site / "packages/index.html").as_uri())
    page.wait_for_selector("#packages tbody tr")
    wheels = page.eval_on_selector_all(
        "#packages tbody td:nth-child(3)", "cells => cells.map(c => Number(c.textContent))"
    )
    assert sum(wheels) == count == 30_000
