/* More of what newer headers of libstdc++ call: strings, errors and futures. By their mangled
   names, as in libstdcxx.cpp. Their meaning is that of GCC's own:

   - the moves of std::logic_error and std::runtime_error (GLIBCXX_3.4.26): a copy, which shares the
     text and cannot fail, is one way to move.
   - std::string's reserve() without a size (GLIBCXX_3.4.29), which shrink_to_fit calls: gives back
     room that is not used, where that can be had.
   - std::string's data() that may be written to (GLIBCXX_3.4.26): the address of the first letter.
   - std::string's _M_replace_cold (GLIBCXX_3.4.31): a replacement whose text lies in the very
     string.
   - std::__atomic_futex_unsigned_base::_M_futex_wait_until_steady (GLIBCXX_3.4.29), on which
     wait_for of a future waits: the system call, on the steady clock. */

#include <cerrno>
#include <ctime>
#include <linux/futex.h>
#include <stdexcept>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#define MOVES(label, mangled) \
    extern "C" void label##_copy(void *, const void *) __asm__("_ZNSt" mangled "C1ERKS_"); \
    extern "C" void *label##_set(void *, const void *) __asm__("_ZNSt" mangled "aSERKS_"); \
    extern "C" void label##_whole(void *, void *) __asm__("_ZNSt" mangled "C1EOS_"); \
    extern "C" void label##_base(void *, void *) __asm__("_ZNSt" mangled "C2EOS_"); \
    extern "C" void *label##_move(void *, void *) __asm__("_ZNSt" mangled "aSEOS_"); \
    void label##_whole(void *self, void *other) { label##_copy(self, other); } \
    void label##_base(void *self, void *other) { label##_copy(self, other); } \
    void *label##_move(void *self, void *other) { return label##_set(self, other); }

MOVES(logic_error, "11logic_error")
MOVES(runtime_error, "13runtime_error")

/* Puts ``size`` letters in the place of ``old_size`` at ``gap``, which ``tail`` more follow. The text
   may begin before the gap, in it or after it; what of it is after the gap moves with the tail. */
template <typename Text>
static void replace_inside(typename Text::value_type *gap, std::size_t old_size,
                           const typename Text::value_type *text, std::size_t size,
                           std::size_t tail)
{
    typedef typename Text::traits_type Traits;
    if (size && size <= old_size)
        Traits::move(gap, text, size);
    if (tail && old_size != size)
        Traits::move(gap + size, gap + old_size, tail);
    if (size <= old_size)
        return;
    std::size_t before = text < gap + old_size ? gap + old_size - text : 0;
    if (before > size)
        before = size;
    /* What stood before the tail is where it was; the tail went on by the difference. */
    if (before)
        Traits::move(gap, text, before);
    if (before < size)
        Traits::move(gap + before, text + before + (size - old_size), size - before);
}

template <typename Text> static void give_back(Text &text)
{
    if (text.size() == text.capacity())
        return;
    try {
        Text(text.data(), text.size()).swap(text);
    } catch (...) {
        /* The request binds nobody: without memory for a copy the string stays as it is. */
    }
}

#define STRING(type, letter) \
    extern "C" void letter##_reserve(type &) __asm__( \
        "_ZNSt7__cxx1112basic_stringI" #letter "St11char_traitsI" #letter "ESaI" #letter \
        "EE7reserveEv"); \
    void letter##_reserve(type &self) { give_back(self); } \
    extern "C" type::value_type *letter##_data(type &) __asm__( \
        "_ZNSt7__cxx1112basic_stringI" #letter "St11char_traitsI" #letter "ESaI" #letter \
        "EE4dataEv"); \
    type::value_type *letter##_data(type &self) { return &self[0]; } \
    extern "C" void letter##_replace(type *, type::value_type *, std::size_t, \
                                     const type::value_type *, std::size_t, std::size_t) \
        __asm__("_ZNSt7__cxx1112basic_stringI" #letter "St11char_traitsI" #letter "ESaI" #letter \
                "EE15_M_replace_coldEP" #letter "mPK" #letter "mm"); \
    void letter##_replace(type *, type::value_type *gap, std::size_t old_size, \
                          const type::value_type *text, std::size_t size, std::size_t tail) \
    { \
        replace_inside<type>(gap, old_size, text, size, tail); \
    }

STRING(std::string, c)
STRING(std::wstring, w)

/* Returns whether the wait ended otherwise than by the clock; it may end without a reason. */
extern "C" bool wait_until_steady(void *, unsigned *, unsigned, bool, long, long)
    __asm__("_ZNSt28__atomic_futex_unsigned_base26_M_futex_wait_until_steadyEPjjb"
            "NSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE");
bool wait_until_steady(void *, unsigned *address, unsigned expected, bool limited, long seconds,
                       long nanoseconds)
{
    struct timespec until = {seconds, nanoseconds};
    if (limited && seconds < 0)
        return false;
    /* The bit set form counts the time from the clock's beginning; the notifier wakes all bits. */
    long ended = syscall(SYS_futex, address, FUTEX_WAIT_BITSET, expected,
                         limited ? &until : 0, 0, FUTEX_BITSET_MATCH_ANY);
    return ended == 0 || errno != ETIMEDOUT;
}
