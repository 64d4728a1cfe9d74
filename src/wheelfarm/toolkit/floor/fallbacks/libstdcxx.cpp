/* What newer headers of libstdc++ call and its libraries before GCC 9 to 14 do not have, where it
   can be said in terms of what they have. All by their mangled names, since the headers here may
   declare them in any way or not at all. Their meaning is that of GCC's own:

   - std::__throw_bad_array_new_length() (GLIBCXX_3.4.29): what an allocation of too many objects
     throws.
   - std::exception_ptr's _M_addref and _M_release (CXXABI_1.3.13): its copy and destruction, which
     headers before GCC 11 called as a whole. Those of libstdc++ itself, asked for at run time: the
     newer headers define both inline by calling these two, and a compiler that does not inline them
     makes them part of the module, where a call from here would find them and never end.
   - the default constructors of the string streams and their buffer (GLIBCXX_3.4.26): before GCC 9
     the one with an open mode, called with that of its class.
   - __cxa_call_terminate (CXXABI_1.3.15): where an exception leaves a noexcept function.
   - std::__glibcxx_assert_fail (GLIBCXX_3.4.30): what -D_GLIBCXX_ASSERTIONS calls. */

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <new>

extern "C" {

[[noreturn]] void throw_bad_length(void) __asm__("_ZSt28__throw_bad_array_new_lengthv");
void throw_bad_length(void)
{
    throw std::bad_array_new_length();
}

/* Returns a function of the loaded libstdc++, whatever the module has under its name. */
static void *of_library(void **kept, const char *name)
{
    void *found = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    found = library ? dlsym(library, name) : 0;
    if (!found)
        std::terminate();
    __atomic_store_n(kept, found, __ATOMIC_RELEASE);
    return found;
}

void add_reference(void **) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void remove_reference(void **) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");

/* An exception_ptr is one pointer. A copy that nobody destroys is a reference that stays. */
void add_reference(void **self)
{
    static void *kept;
    void *copy;
    void *found = of_library(&kept, "_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
    reinterpret_cast<void (*)(void *, void *const *)>(found)(&copy, self);
}

void remove_reference(void **self)
{
    static void *kept;
    void *found = of_library(&kept, "_ZNSt15__exception_ptr13exception_ptrD1Ev");
    reinterpret_cast<void (*)(void **)>(found)(self);
    *self = 0;
}

void *__cxa_begin_catch(void *) noexcept;
[[noreturn]] void call_terminate(void *exception) noexcept __asm__("__cxa_call_terminate");
void call_terminate(void *exception) noexcept
{
    if (exception)
        __cxa_begin_catch(exception);
    std::terminate();
}

[[noreturn]] void assert_fail(const char *, int, const char *, const char *) noexcept
    __asm__("_ZSt21__glibcxx_assert_failPKciS0_S0_");
void assert_fail(const char *file, int line, const char *function, const char *condition) noexcept
{
    if (file && function && condition)
        std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function,
                     condition);
    else if (function)
        std::fprintf(stderr, "%s: Undefined behavior detected.\n", function);
    std::abort();
}

}

/* std::ios_base's openmode, of which neither the type nor the values have ever changed. */
enum { IN = 8, OUT = 16 };

#define CONSTRUCTOR(label, mangled, mode) \
    extern "C" void label##_whole_of(void *, int) __asm__(mangled "C1ESt13_Ios_Openmode"); \
    extern "C" void label##_whole(void *) __asm__(mangled "C1Ev"); \
    void label##_whole(void *self) { label##_whole_of(self, mode); }
/* A base-object constructor of a class with virtual bases also takes their table. */
#define STREAM(label, mangled, mode) \
    CONSTRUCTOR(label, mangled, mode) \
    extern "C" void label##_base_of(void *, void **, int) \
        __asm__(mangled "C2ESt13_Ios_Openmode"); \
    extern "C" void label##_base(void *, void **) __asm__(mangled "C2Ev"); \
    void label##_base(void *self, void **table) { label##_base_of(self, table, mode); }
#define BUFFER(label, mangled, mode) \
    CONSTRUCTOR(label, mangled, mode) \
    extern "C" void label##_base_of(void *, int) __asm__(mangled "C2ESt13_Ios_Openmode"); \
    extern "C" void label##_base(void *) __asm__(mangled "C2Ev"); \
    void label##_base(void *self) { label##_base_of(self, mode); }
#define CLASSES(label, space, of) \
    STREAM(label##_output, space "19basic_ostringstream" of, OUT) \
    STREAM(label##_input, space "19basic_istringstream" of, IN) \
    STREAM(label##_both, space "18basic_stringstream" of, IN | OUT) \
    BUFFER(label##_buffer, space "15basic_stringbuf" of, IN | OUT)

CLASSES(narrow, "_ZNSt7__cxx11", "IcSt11char_traitsIcESaIcEE")
CLASSES(wide, "_ZNSt7__cxx11", "IwSt11char_traitsIwESaIwEE")
CLASSES(old_narrow, "_ZNSt", "IcSt11char_traitsIcESaIcEE")
CLASSES(old_wide, "_ZNSt", "IwSt11char_traitsIwESaIwEE")
