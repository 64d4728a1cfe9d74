"""C++20's string streams at a floor below them: linked by the seat, and what they do there."""

import subprocess
import sys

import pytest

from tests.build.floor.conftest import FLOOR, Root, glibc_of

#: Each use goes through another function of GLIBCXX_3.4.29; run at the floor and natively.
SOURCE = """\
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
template <typename Char> static void show(const std::basic_string<Char> &text)
{
    for (Char letter : text) std::putchar(static_cast<char>(letter));
    std::putchar('|');
}
template <typename Char, typename Output, typename Input, typename Both, typename Buffer>
static void use(const std::basic_string<Char> &some, const std::basic_string<Char> &more)
{
    using Text = std::basic_string<Char>;
    Output output;
    output << some << 12 << more;
    show<Char>(output.str());
    show<Char>(Text(output.view()));
    show<Char>(std::move(output).str());
    show<Char>(output.str());
    output << more;
    show<Char>(output.str());
    output.str(Text(some) + more);
    show<Char>(output.str());
    Input input(Text(some) + Char(' ') + more);
    Text word;
    input >> word;
    show<Char>(word);
    show<Char>(Text(input.view()));
    show<Char>(input.str());
    input.str(Text(more));
    input >> word;
    show<Char>(word);
    show<Char>(std::move(input).str());
    Both both(Text(some), std::ios_base::in | std::ios_base::out | std::ios_base::ate);
    both << more;
    both >> word;
    show<Char>(word);
    show<Char>(Text(both.view()));
    both.str(Text(more));
    show<Char>(std::move(both).str());
    Buffer buffer(Text(some), std::ios_base::out);
    show<Char>(buffer.str());
    buffer.sputn(more.data(), 1);
    show<Char>(Text(buffer.view()));
    buffer.str(Text(more));
    show<Char>(std::move(buffer).str());
    show<Char>(buffer.str());
    show<Char>(Text(Buffer().view()));
    struct Own : Output {
        explicit Own(Text &&text) : Output(std::move(text)) {}
    };
    show<Char>(Own(Text(more)).str());
    struct OwnBuffer : Buffer {
        explicit OwnBuffer(Text &&text) : Buffer(std::move(text)) {}
    };
    show<Char>(OwnBuffer(Text(more)).str());
}
extern "C" void check()
{
    use<char, std::ostringstream, std::istringstream, std::stringstream, std::stringbuf>(
        "some", "a text that is longer than fits into a string itself");
    use<wchar_t, std::wostringstream, std::wistringstream, std::wstringstream, std::wstringbuf>(
        L"some", L"a text that is longer than fits into a string itself");
    std::fflush(stdout);
}
"""
LOAD = "import ctypes; ctypes.CDLL('./made.so').check()"


def output(root: Root) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=root.path, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_they_do_below_what_they_do_natively(root: Root, level: str) -> None:
    root.write("made.cpp", SOURCE)
    root.run("g++", "-std=gnu++20", level, "-fPIC", "-c", "made.cpp", "-o", "made.o")
    subprocess.run(
        ["/usr/bin/g++", "-shared", "made.o", "-o", "made.so"], cwd=root.path, check=True
    )
    native = root.facts("made.so")
    needed = {need.version for need in native.version_needs}
    if "GLIBCXX_3.4.29" not in needed:
        pytest.skip("this machine's libstdc++ is older than these functions")
    expected = output(root)
    root.run("g++", "-shared", "made.o", "-o", "made.so")
    lowest = glibc_of(root.facts("made.so"))
    assert lowest is not None
    assert lowest <= FLOOR
    assert output(root) == expected
    assert expected.startswith("some12a text that is longer than fits into a string itself|some12a")
