"""Each fallback says what the real function says, also where the system has no real one."""

import platform
import subprocess
from pathlib import Path

import pytest

from wheelfarm.model.versions import Minor
from wheelfarm.toolkit.floor import fallbacks
from wheelfarm.toolkit.floor.binutils import HostCompiler

FOLDER = Path(fallbacks.__file__).with_name("fallbacks")


def run_with(
    compiler: HostCompiler, folder: Path, fallback: str, names: tuple[str, ...], program: str
) -> str:
    """Compile one file of fallbacks with its functions renamed, and a program that calls them.

    FALLBACKS_ALONE hides the system's functions from them.
    """
    source = FOLDER / fallback
    made, main = folder / "fallback.o", folder / "main.cpp"
    suffix = [word for name in names for word in ("--redefine-sym", f"{name}=fallback_{name}")]
    language = "c" if fallback.endswith(".c") else "c++"
    flags = ["-O1", "-DFALLBACKS_ALONE", "-U_FORTIFY_SOURCE", "-fno-builtin"]
    if Minor.parse(platform.libc_ver()[1]) >= Minor(2, 41):
        # Where the fallback looks into a condition variable, which it does on no such system.
        flags.append("-DSTEADY_WORD=7")
    command: list[str | Path] = [compiler.program, "-x", language, *flags]
    subprocess.run([*command, "-c", source, "-o", made], check=True)
    subprocess.run([compiler.tool("objcopy"), *suffix, made], check=True)
    main.write_text(program)
    command = [compiler.program, "-std=c++17", main, made, "-o", folder / "main", "-pthread"]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [folder / "main"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


INTEGERS = """\
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
extern "C" long fallback___isoc23_strtol(const char *, char **, int);
extern "C" unsigned long fallback___isoc23_strtoul(const char *, char **, int);
extern "C" long fallback___isoc23_wcstol(const wchar_t *, wchar_t **, int);
int main() {
    const char *texts[] = {"0b101", "  -0B11x", "+0b0", "0b", "0b2", "0x1F", "017", "42", "", "-",
        "0b111111111111111111111111111111111111111111111111111111111111111",
        "0b1000000000000000000000000000000000000000000000000000000000000000",
        "-0b1000000000000000000000000000000000000000000000000000000000000000",
        "0b11111111111111111111111111111111111111111111111111111111111111111", "0b0b1", "0b-1"};
    int bases[] = {0, 2, 10, 16, 36};
    for (const char *text : texts)
        for (int base : bases) {
            char *end;
            errno = 0;
            long value = fallback___isoc23_strtol(text, &end, base);
            std::printf("%s|%d|%ld|%d|%d", text, base, value, (int)(end - text), errno);
            errno = 0;
            unsigned long other = fallback___isoc23_strtoul(text, &end, base);
            std::printf("|%lu|%d|%d\\n", other, (int)(end - text), errno);
        }
    wchar_t *end;
    const wchar_t *wide = L" 0b110!";
    long value = fallback___isoc23_wcstol(wide, &end, 0);
    std::printf("wide %ld %d %ld\\n", value, (int)(end - wide),
                fallback___isoc23_strtol("0b1", 0, 0));
}
"""


def expected_integers(text: str, base: int) -> tuple[int, int, int, int, int, int]:
    """Say what C23 says of a text: signed value, length, errno, then the same unsigned."""
    erange, long_max, unsigned_max = 34, 2**63 - 1, 2**64 - 1
    stripped = text.lstrip()
    skipped = len(text) - len(stripped)
    sign = -1 if stripped.startswith("-") else 1
    digits = stripped.removeprefix("-") if sign < 0 else stripped.removeprefix("+")
    signs = len(stripped) - len(digits)
    prefix, radix = 0, base or 10
    lower = digits.lower()
    if base in {0, 2} and lower[:2] == "0b" and lower[2:3] in {"0", "1"}:
        prefix, radix = 2, 2
    elif base in {0, 16} and lower[:2] == "0x" and lower[2:3].isalnum():
        prefix, radix = 2, 16
    elif base == 0 and lower[:1] == "0":
        radix = 8
    taken = ""
    for character in lower[prefix:]:
        number = int(character, 36) if character.isalnum() else 99
        if number >= radix:
            break
        taken += character
    if not taken:
        return 0, 0, 0, 0, 0, 0
    length = skipped + signs + prefix + len(taken)
    value = int(taken, radix)
    signed = sign * value
    outside = not -(2**63) <= signed <= long_max
    if outside:
        signed = long_max if sign > 0 else -(2**63)
    over = value > unsigned_max
    unsigned = unsigned_max if over else (sign * value) % 2**64
    return signed, length, erange * outside, unsigned, length, erange * over


def test_binary_numbers(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("__isoc23_strtol", "__isoc23_strtoul", "__isoc23_wcstol")
    lines = run_with(compiler, tmp_path, "c23_integers.c", names, INTEGERS).splitlines()
    assert lines.pop() == "wide 6 6 1"
    for line in lines:
        text, base, *found = line.split("|")
        assert tuple(map(int, found)) == expected_integers(text, int(base)), (text, base)


SCANNING = """\
#include <cstdio>
#include <cwchar>
extern "C" int fallback___isoc23_sscanf(const char *, const char *, ...);
extern "C" int fallback___isoc23_swscanf(const wchar_t *, const wchar_t *, ...);
extern "C" int fallback___isoc23_fscanf(FILE *, const char *, ...);
int main() {
    int a = 0, b = 0; float c = 0; char word[8] = "";
    int count = fallback___isoc23_sscanf("12 0x1f 2.5 text", "%d %i %f %7s", &a, &b, &c, word);
    std::printf("%d %d %d %.1f %s\\n", count, a, b, c, word);
    count = fallback___isoc23_swscanf(L"7 8", L"%d %d", &a, &b);
    std::printf("%d %d %d\\n", count, a, b);
    FILE *file = std::tmpfile();
    std::fputs("31 x", file);
    std::rewind(file);
    count = fallback___isoc23_fscanf(file, "%d", &a);
    std::printf("%d %d\\n", count, a);
}
"""


def test_scanning(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("__isoc23_sscanf", "__isoc23_swscanf", "__isoc23_fscanf")
    text = run_with(compiler, tmp_path, "c23_scanning.c", names, SCANNING)
    assert text == "4 12 31 2.5 text\n2 7 8\n1 31\n"


WAITS = """\
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <initializer_list>
#include <pthread.h>
#include <semaphore.h>
extern "C" {
int fallback_pthread_cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                                    const struct timespec *);
int fallback_pthread_mutex_clocklock(pthread_mutex_t *, clockid_t, const struct timespec *);
int fallback_pthread_rwlock_clockrdlock(pthread_rwlock_t *, clockid_t, const struct timespec *);
int fallback_pthread_rwlock_clockwrlock(pthread_rwlock_t *, clockid_t, const struct timespec *);
int fallback_sem_clockwait(sem_t *, clockid_t, const struct timespec *);
}
static timespec in(clockid_t clock, long milliseconds) {
    timespec at;
    clock_gettime(clock, &at);
    long nanoseconds = at.tv_nsec + milliseconds * 1000000 + 1000000000;
    at.tv_sec += nanoseconds / 1000000000 - 1;
    at.tv_nsec = nanoseconds % 1000000000;
    return at;
}
static bool over(clockid_t clock, timespec at) {
    timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static bool ready = false;
static void *signaller(void *) {
    pthread_mutex_lock(&mutex);
    ready = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return nullptr;
}
int main() {
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&lock);
    sem_t empty;
    sem_init(&empty, 0, 0);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_t other;
    pthread_cond_init(&other, &steady);
    for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
        // The longer one crosses the second that a fallback waits at most at a time.
        for (long milliseconds : {-100l, 30l, 1050l}) {
            timespec at = in(clock, milliseconds);
            pthread_mutex_lock(&mutex);
            int a = fallback_pthread_cond_clockwait(&condition, &mutex, clock, &at);
            int early = !over(clock, at);
            int b = fallback_pthread_cond_clockwait(&other, &mutex, clock, &at);
            pthread_mutex_unlock(&mutex);
            int c = fallback_pthread_mutex_clocklock(&held, clock, &at);
            int d = fallback_pthread_rwlock_clockrdlock(&lock, clock, &at);
            int e = fallback_pthread_rwlock_clockwrlock(&lock, clock, &at);
            errno = 0;
            int f = fallback_sem_clockwait(&empty, clock, &at);
            std::printf("%d %d %d %d %d %d %d %d\\n", a == ETIMEDOUT, early, b == ETIMEDOUT,
                        c == ETIMEDOUT, d == EDEADLK || d == ETIMEDOUT,
                        e == EDEADLK || e == ETIMEDOUT, f, errno == ETIMEDOUT);
        }
        timespec at = in(clock, 60000);
        ready = false;
        pthread_t thread;
        pthread_mutex_lock(&mutex);
        pthread_create(&thread, nullptr, signaller, nullptr);
        int a = 0;
        while (!ready && a == 0)
            a = fallback_pthread_cond_clockwait(&condition, &mutex, clock, &at);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, nullptr);
        int b = fallback_pthread_mutex_clocklock(&mutex, clock, &at);
        pthread_mutex_unlock(&mutex);
        sem_post(&empty);
        int c = fallback_sem_clockwait(&empty, clock, &at);
        std::printf("%d %d %d\\n", a, b, c);
    }
    timespec wrong = {0, 1000000000};
    timespec at = in(CLOCK_MONOTONIC, 10);
    pthread_mutex_lock(&mutex);
    int a = fallback_pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &wrong);
    int b = fallback_pthread_cond_clockwait(&condition, &mutex, CLOCK_PROCESS_CPUTIME_ID, &at);
    int c = fallback_pthread_mutex_clocklock(&held, CLOCK_PROCESS_CPUTIME_ID, &at);
    std::printf("%d %d %d\\n", a == EINVAL, b == EINVAL, c == EINVAL);
}
"""


def test_waits_on_a_chosen_clock(compiler: HostCompiler, tmp_path: Path) -> None:
    names = (
        "pthread_cond_clockwait", "pthread_mutex_clocklock", "pthread_rwlock_clockrdlock",
        "pthread_rwlock_clockwrlock", "sem_clockwait",
    )  # fmt: skip
    text = run_with(compiler, tmp_path, "clock_waits.c", names, WAITS)
    timed_out = "1 0 1 1 1 1 -1 1\n" * 3
    assert text == (timed_out + "0 0 0\n") * 2 + "1 1 1\n"


FIND_OBJECT = """\
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
struct found { unsigned long long flags; void *start, *end, *map, *table;
               unsigned long long reserved[7]; };
extern "C" int fallback__dl_find_object(void *, found *);
static int here() { return 1; }
int main() {
    for (void *address : {(void *) here, dlsym(RTLD_DEFAULT, "puts")}) {
        found a = {};
        int status = fallback__dl_find_object(address, &a);
        Dl_info info;
        dladdr(address, &info);
        // What PT_GNU_EH_FRAME leads to begins with its version, which is 1.
        std::printf("%d %d %d %d %d\\n", status, a.start == info.dli_fbase,
                    a.start <= address && address < a.end, a.map != nullptr, *(char *) a.table);
    }
    found b;
    std::printf("%d\\n", fallback__dl_find_object(nullptr, &b));
}
"""


def test_the_object_that_holds_an_address(compiler: HostCompiler, tmp_path: Path) -> None:
    text = run_with(compiler, tmp_path, "find_object.c", ("_dl_find_object",), FIND_OBJECT)
    assert text == "0 1 1 1 1\n" * 2 + "-1\n"


OTHERS = """\
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>
"""
STRINGS = (
    OTHERS
    + """\
extern "C" size_t fallback_strlcpy(char *, const char *, size_t);
extern "C" size_t fallback_strlcat(char *, const char *, size_t);
extern "C" size_t fallback___strlcpy_chk(char *, const char *, size_t, size_t);
extern "C" int fallback___memcmpeq(const void *, const void *, size_t);
int main() {
    char text[4] = "zzz";
    std::printf("%zu %s\\n", fallback_strlcpy(text, "abcdef", 4), text);
    std::printf("%zu %s\\n", fallback_strlcpy(text, "a", 4), text);
    std::printf("%zu %s\\n", fallback_strlcat(text, "bcd", 4), text);
    std::printf("%zu\\n", fallback_strlcat(text, "xy", 2));
    char untouched = 'u';
    std::printf("%zu %c\\n", fallback_strlcpy(&untouched, "abc", 0), untouched);
    std::printf("%zu %s\\n", fallback___strlcpy_chk(text, "ok", 4, 4), text);
    std::printf("%d %d\\n", fallback___memcmpeq("ab", "ab", 2),
                !!fallback___memcmpeq("ab", "ac", 2));
}
"""
)
RANDOM = (
    OTHERS
    + """\
extern "C" uint32_t fallback_arc4random();
extern "C" void fallback_arc4random_buf(void *, size_t);
extern "C" uint32_t fallback_arc4random_uniform(uint32_t);
int main() {
    errno = 7;
    uint32_t first = fallback_arc4random();
    int differs = 0, low = 0, outside = 0;
    for (int i = 0; i < 1000; i++) {
        differs += fallback_arc4random() != first;
        uint32_t value = fallback_arc4random_uniform(3);
        outside += value > 2;
        low += value == 0;
    }
    unsigned char bytes[1000] = {}; int zeros = 0;
    fallback_arc4random_buf(bytes, sizeof bytes);
    for (unsigned char byte : bytes) zeros += byte == 0;
    std::printf("%d %d %d %d %u %u %d\\n", differs > 990, outside, low > 200 && low < 470,
                zeros < 50, fallback_arc4random_uniform(0), fallback_arc4random_uniform(1), errno);
}
"""
)
CALLS = (
    OTHERS
    + """\
extern "C" int fallback_gettid();
extern "C" int fallback_getcpu(unsigned *, unsigned *);
extern "C" void fallback_closefrom(int);
int main() {
    unsigned cpu = ~0u;
    int status = fallback_getcpu(&cpu, nullptr);
    std::printf("%d %d %d\\n", fallback_gettid() == syscall(SYS_gettid), status, cpu != ~0u);
    int first = dup(1), second = dup(1);
    fallback_closefrom(first);
    int open = fcntl_open(first) + fcntl_open(second) + fcntl_open(1);
    std::printf("%d\\n", open);
}
"""
)


def test_strings(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("strlcpy", "strlcat", "__strlcpy_chk", "__memcmpeq")
    text = run_with(compiler, tmp_path, "strings.c", names, STRINGS)
    assert text == "6 abc\n1 a\n4 abc\n4\n3 u\n2 ok\n0 1\n"


def test_a_checked_copy_ends_the_process(compiler: HostCompiler, tmp_path: Path) -> None:
    program = STRINGS.replace('"ok", 4, 4', '"ok", 4, 3')
    with pytest.raises(AssertionError, match="buffer overflow detected"):
        run_with(
            compiler,
            tmp_path,
            "strings.c",
            ("__strlcpy_chk", "strlcpy", "strlcat", "__memcmpeq"),
            program,
        )


def test_random_numbers(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("arc4random", "arc4random_buf", "arc4random_uniform")
    assert run_with(compiler, tmp_path, "random.c", names, RANDOM) == "1 0 1 1 0 0 7\n"


def test_system_calls(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("gettid", "getcpu", "closefrom", "close_range")
    program = CALLS.replace(
        "int main()",
        "#include <fcntl.h>\nstatic int fcntl_open(int file) "
        "{ return fcntl(file, F_GETFD) >= 0; }\nint main()",
    )
    assert run_with(compiler, tmp_path, "system_calls.c", names, program) == "1 0 1\n1\n"


LIBSTDCXX = """\
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
extern "C" {
void fallback__ZSt28__throw_bad_array_new_lengthv();
void fallback__ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(void *);
void fallback__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(void *);
void fallback__ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev(void *);
void fallback__ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev(void *);
void fallback__ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev(void *);
}
struct Counted {
    static int alive;
    Counted() { alive++; }
    Counted(const Counted &) { alive++; }
    ~Counted() { alive--; }
};
int Counted::alive = 0;
int main() {
    try { fallback__ZSt28__throw_bad_array_new_lengthv(); }
    catch (const std::bad_array_new_length &error) { std::puts(error.what()); }
    std::exception_ptr pointer = std::make_exception_ptr(Counted());
    void *raw = *reinterpret_cast<void **>(&pointer);
    fallback__ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(&raw);
    pointer = nullptr;
    std::printf("%d\\n", Counted::alive);
    fallback__ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(&raw);
    std::printf("%d %d\\n", Counted::alive, raw == nullptr);
    alignas(std::stringstream) char space[sizeof(std::stringstream)];
    fallback__ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev(space);
    auto *output = reinterpret_cast<std::ostringstream *>(space);
    *output << 12 << " and " << 3.5;
    std::puts(output->str().c_str());
    output->~basic_ostringstream();
    fallback__ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev(space);
    auto *both = reinterpret_cast<std::stringstream *>(space);
    int value = 0;
    *both << "17 ";
    *both >> value;
    std::printf("%d\\n", value);
    both->~basic_stringstream();
    fallback__ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev(space);
    auto *input = reinterpret_cast<std::istringstream *>(space);
    input->str("18");
    *input >> value;
    std::printf("%d\\n", value);
    input->~basic_istringstream();
}
"""


def test_libstdcxx(compiler: HostCompiler, tmp_path: Path) -> None:
    names = (
        "_ZSt28__throw_bad_array_new_lengthv",
        "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv",
        "_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv",
        "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev",
        "_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev",
        "_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev",
    )
    text = run_with(compiler, tmp_path, "libstdcxx.cpp", names, LIBSTDCXX)
    assert text == "std::bad_array_new_length\n1\n0 1\n12 and 3.5\n17\n18\n"


TERMINATE = """\
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
extern "C" void fallback___cxa_call_terminate(void *) noexcept;
extern "C" void fallback__ZSt21__glibcxx_assert_failPKciS0_S0_(const char *, int, const char *,
                                                               const char *);
int main(int count, char **) {
    std::set_terminate([] { std::puts("ended"); std::exit(0); });
    if (count == 1) fallback___cxa_call_terminate(nullptr);
    fallback__ZSt21__glibcxx_assert_failPKciS0_S0_("file.h", 3, "f", "n < size");
}
"""


def test_ends_of_a_process(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("__cxa_call_terminate", "_ZSt21__glibcxx_assert_failPKciS0_S0_")
    assert run_with(compiler, tmp_path, "libstdcxx.cpp", names, TERMINATE) == "ended\n"
    done = subprocess.run([tmp_path / "main", "x"], capture_output=True, text=True, check=False)
    assert done.stderr == "file.h:3: f: Assertion 'n < size' failed.\n"
    assert done.returncode < 0


STREAMS = """\
#include <ostream>
namespace std { extern ostream cout; }
extern "C" void fallback__ZSt21ios_base_library_initv();
static bool early = (std::cout << "before main\\n").good();
int main() {
    fallback__ZSt21ios_base_library_initv();
    std::cout << "in main " << early << "\\n";
}
"""


def test_streams_are_made_without_iostream(compiler: HostCompiler, tmp_path: Path) -> None:
    """Nothing else makes std::cout here where libstdc++ is older than GCC 13's."""
    names = ("_ZSt21ios_base_library_initv",)
    text = run_with(compiler, tmp_path, "iostreams.cpp", names, STREAMS)
    assert text == "before main\nin main 1\n"


_CLASS = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
_REPLACE, _RESERVE, _DATA = (
    f"{_CLASS}15_M_replace_coldEPcmPKcmm",
    f"{_CLASS}7reserveEv",
    f"{_CLASS}4dataEv",
)
_STEADY = (
    "_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjb"
    "NSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE"
)
_MOVES = ("_ZNSt13runtime_errorC1EOS_", "_ZNSt11logic_errorC2EOS_", "_ZNSt13runtime_erroraSEOS_")
LIBSTDCXX_VALUES = f"""\
#include <atomic>
#include <climits>
#include <cstdio>
#include <ctime>
#include <linux/futex.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
extern "C" {{
void fallback_{_REPLACE}(void *, char *, size_t, const char *, size_t, size_t);
void fallback_{_RESERVE}(std::string &);
char *fallback_{_DATA}(std::string &);
bool fallback_{_STEADY}(void *, unsigned *, unsigned, bool, long, long);
void fallback_{_MOVES[0]}(void *, void *);
void fallback_{_MOVES[1]}(void *, void *);
void *fallback_{_MOVES[2]}(void *, void *);
}}
const auto wait = fallback_{_STEADY};
template <typename Error> bool moved(void (*move)(void *, void *)) {{
    Error from(std::string(100, 'x'));
    alignas(Error) char space[sizeof(Error)];
    move(space, &from);
    auto *made = reinterpret_cast<Error *>(space);
    bool same = std::string(100, 'x') == made->what();
    made->~Error();
    return same;
}}
/* All places of a gap and of a text in a string of eight letters. */
long wrong_replacements(size_t &tried) {{
    const std::string letters = "abcdefgh";
    long wrong = 0;
    for (size_t gap = 0; gap <= 8; gap++)
    for (size_t old_size = 0; gap + old_size <= 8; old_size++)
    for (size_t text = 0; text <= 8; text++)
    for (size_t size = 0; text + size <= 8; size++) {{
        char space[32] = {{}};
        letters.copy(space, 8);
        fallback_{_REPLACE}(nullptr, space + gap, old_size, space + text, size,
                            8 - gap - old_size);
        std::string right = letters;
        right.replace(gap, old_size, std::string(letters, text, size));
        wrong += right != std::string(space, 8 - old_size + size);
        tried++;
    }}
    return wrong;
}}
int main() {{
    size_t tried = 0;
    long wrong = wrong_replacements(tried);
    std::printf("%ld of %zu\\n", wrong, tried);
    std::string text(40, 'y');
    text.reserve(1000);
    fallback_{_RESERVE}(text);
    std::printf("%d %d\\n", text == std::string(40, 'y'), text.capacity() < 1000);
    *fallback_{_DATA}(text) = 'z';
    std::printf("%.2s\\n", text.c_str());
    std::runtime_error left("left"), right("right");
    bool returned = fallback_{_MOVES[2]}(&left, &right) == &left;
    std::printf("%d %d %d %s\\n", moved<std::runtime_error>(fallback_{_MOVES[0]}),
                moved<std::logic_error>(fallback_{_MOVES[1]}), returned, left.what());
    unsigned word = 1;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* Another value at once, a time that is over, and one that comes; it may end without reason. */
    std::printf("%d%d%d", wait(nullptr, &word, 0, true, now.tv_sec + 3600, 0),
                wait(nullptr, &word, 1, true, -1, 0), wait(nullptr, &word, 1, true, 1, 0));
    while (wait(nullptr, &word, 1, true, now.tv_sec + 1, now.tv_nsec)) {{}}
    timespec after;
    clock_gettime(CLOCK_MONOTONIC, &after);
    bool waited = after.tv_sec > now.tv_sec + 1
        || (after.tv_sec == now.tv_sec + 1 && after.tv_nsec >= now.tv_nsec);
    std::thread other([&word] {{
        __atomic_store_n(&word, 2, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX);
    }});
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 1) wait(nullptr, &word, 1, false, 0, 0);
    other.join();
    std::printf(" %d\\n", waited);
}}
"""


WIDE_STRINGS = """\
#include <cstdio>
#include <cwchar>
extern "C" {
size_t fallback_wcslcpy(wchar_t *, const wchar_t *, size_t);
size_t fallback_wcslcat(wchar_t *, const wchar_t *, size_t);
size_t fallback___wcslcpy_chk(wchar_t *, const wchar_t *, size_t, size_t);
size_t fallback___wcslcat_chk(wchar_t *, const wchar_t *, size_t, size_t);
size_t fallback___strlcat_chk(char *, const char *, size_t, size_t);
}
int main() {
    wchar_t text[4];
    std::printf("%zu %ls\\n", fallback_wcslcpy(text, L"abcdef", 4), text);
    std::printf("%zu %ls\\n", fallback_wcslcpy(text, L"a", 4), text);
    std::printf("%zu %ls\\n", fallback_wcslcat(text, L"bcd", 4), text);
    std::printf("%zu %ls\\n", fallback___wcslcpy_chk(text, L"x", 4, 4), text);
    std::printf("%zu %ls\\n", fallback___wcslcat_chk(text, L"y", 4, 4), text);
    char narrow[4] = "a";
    std::printf("%zu %s\\n", fallback___strlcat_chk(narrow, "b", 4, 4), narrow);
}
"""
MORE_CALLS = """\
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
extern "C" {
int fallback_tgkill(pid_t, pid_t, int);
ssize_t fallback_getdents64(int, void *, size_t);
int fallback_close_range(unsigned, unsigned, int);
}
static volatile sig_atomic_t told = 0;
int main() {
    std::signal(SIGUSR1, [](int) { told = 1; });
    int sent = fallback_tgkill(getpid(), (pid_t) syscall(SYS_gettid), SIGUSR1);
    int refused = fallback_tgkill(getpid(), -1, SIGUSR1);
    std::printf("%d %d %d %d\\n", sent, (int) told, refused, errno == EINVAL);
    int folder = open("/", O_RDONLY | O_DIRECTORY);
    alignas(long) char entries[4096];
    int listed = fallback_getdents64(folder, entries, sizeof entries) > 0;
    int status = fallback_close_range(folder, folder, 0);
    int closed = fcntl(folder, F_GETFD) < 0;
    // Linux before 5.9 has no such call, and says so.
    std::printf("%d %d\\n", listed, status == 0 ? closed : errno == ENOSYS);
}
"""


def test_wide_and_checked_strings(compiler: HostCompiler, tmp_path: Path) -> None:
    names = (
        "wcslcpy", "wcslcat", "__wcslcpy_chk", "__wcslcat_chk", "__strlcat_chk", "strlcat",
        "strlcpy",
    )  # fmt: skip
    text = run_with(compiler, tmp_path, "strings.c", names, WIDE_STRINGS)
    assert text == "6 abc\n1 a\n4 abc\n1 x\n2 xy\n2 ab\n"


def test_more_system_calls(compiler: HostCompiler, tmp_path: Path) -> None:
    names = ("tgkill", "getdents64", "close_range", "closefrom")
    text = run_with(compiler, tmp_path, "system_calls.c", names, MORE_CALLS)
    assert text == "0 1 -1 1\n1 1\n"


def test_strings_errors_and_futures(compiler: HostCompiler, tmp_path: Path) -> None:
    names = (_REPLACE, _RESERVE, _DATA, _STEADY, *_MOVES)
    text = run_with(compiler, tmp_path, "libstdcxx_values.cpp", names, LIBSTDCXX_VALUES)
    assert text == "0 of 2025\n1 1\nzy\n1 1 1 right\n100 1\n"


def test_the_archive_exports_nothing_and_needs_nothing_new(
    compiler: HostCompiler, tmp_path: Path
) -> None:
    fallbacks.write_fallbacks(compiler, tmp_path)
    command: list[str | Path] = [
        compiler.program, "-shared", "-nodefaultlibs", "-Wl,--whole-archive",
        tmp_path / fallbacks.ARCHIVE, "-Wl,--no-whole-archive", "-o", tmp_path / "all.so",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    symbols = compiler.dynamic_symbols(tmp_path / "all.so")
    assert [symbol.name for symbol in symbols if symbol.defined] == []
    assert "__libc_single_threaded" in compiler.defined_names(tmp_path / fallbacks.ARCHIVE)
