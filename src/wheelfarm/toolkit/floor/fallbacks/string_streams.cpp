/* What C++20 calls of the string streams and their buffer (GLIBCXX_3.4.29), where C++17 called other
   functions of the same meaning. PyTorch's headers build texts with them, and its extensions are
   compiled as C++20. By their mangled names, as in libstdcxx.cpp:

   - str() of one that stays (const &): str() of before.
   - str() of one that goes (&&): the same, and the contents are given back.
   - str(text) and the constructors that may take a text over (&&): those that copy it.
   - view(): the contents where they lie, up to the furthest that was written. */

#include <cstddef>
#include <ios>
#include <sstream>
#include <string>

/* std::basic_string_view as it is returned: a length and an address. */
template <typename Char> struct View {
    std::size_t length;
    const Char *text;
};

/* Looks at the ends of a buffer's two areas, which are protected. */
template <typename Char> struct Areas : std::basic_stringbuf<Char> {
    View<Char> contents() const
    {
        const Char *first = this->pbase(), *last = this->pptr();
        if (!last)
            first = this->eback(), last = this->egptr();
        else if (this->egptr() > last)
            last = this->egptr();
        return {static_cast<std::size_t>(last - first), first};
    }
};

#define STREAM(label, type, char_type, mangled, text) \
    std::basic_string<char_type> label##_kept(const type *self) __asm__("_ZNKR" mangled "3strEv"); \
    std::basic_string<char_type> label##_kept(const type *self) { return self->str(); } \
    std::basic_string<char_type> label##_taken(type *self) __asm__("_ZNO" mangled "3strEv"); \
    std::basic_string<char_type> label##_taken(type *self) \
    { \
        std::basic_string<char_type> found = self->str(); \
        self->str(std::basic_string<char_type>()); \
        return found; \
    } \
    void label##_put(type *self, std::basic_string<char_type> *given) \
        __asm__("_ZN" mangled "3strEO" text); \
    void label##_put(type *self, std::basic_string<char_type> *given) { self->str(*given); } \
    View<char_type> label##_view(const type *self) __asm__("_ZNK" mangled "4viewEv"); \
    View<char_type> label##_view(const type *self) \
    { \
        return static_cast<const Areas<char_type> *>(buffer_of(self))->contents(); \
    } \
    extern "C" void label##_whole_of(void *, const void *, int) \
        __asm__("_ZN" mangled "C1ERK" text "St13_Ios_Openmode"); \
    extern "C" void label##_whole(void *, void *, int) \
        __asm__("_ZN" mangled "C1EO" text "St13_Ios_Openmode"); \
    void label##_whole(void *self, void *given, int mode) { label##_whole_of(self, given, mode); }
/* A base-object constructor of a class with virtual bases also takes their table. */
#define BASE(label, mangled, text) \
    extern "C" void label##_base_of(void *, void **, const void *, int) \
        __asm__("_ZN" mangled "C2ERK" text "St13_Ios_Openmode"); \
    extern "C" void label##_base(void *, void **, void *, int) \
        __asm__("_ZN" mangled "C2EO" text "St13_Ios_Openmode"); \
    void label##_base(void *self, void **table, void *given, int mode) \
    { \
        label##_base_of(self, table, given, mode); \
    }
#define PLAIN_BASE(label, mangled, text) \
    extern "C" void label##_base_of(void *, const void *, int) \
        __asm__("_ZN" mangled "C2ERK" text "St13_Ios_Openmode"); \
    extern "C" void label##_base(void *, void *, int) \
        __asm__("_ZN" mangled "C2EO" text "St13_Ios_Openmode"); \
    void label##_base(void *self, void *given, int mode) { label##_base_of(self, given, mode); }

template <typename Char> static const std::basic_stringbuf<Char> *buffer_of(
    const std::basic_stringbuf<Char> *self)
{
    return self;
}
template <typename Stream> static auto buffer_of(const Stream *self) -> decltype(self->rdbuf())
{
    return self->rdbuf();
}

#define TEXT "NS_12basic_stringI"
#define CLASSES(label, char_type, of, text) \
    STREAM(label##_output, std::basic_ostringstream<char_type>, char_type, \
           "St7__cxx1119basic_ostringstream" of, text) \
    BASE(label##_output, "St7__cxx1119basic_ostringstream" of, text) \
    STREAM(label##_input, std::basic_istringstream<char_type>, char_type, \
           "St7__cxx1119basic_istringstream" of, text) \
    BASE(label##_input, "St7__cxx1119basic_istringstream" of, text) \
    STREAM(label##_both, std::basic_stringstream<char_type>, char_type, \
           "St7__cxx1118basic_stringstream" of, text) \
    BASE(label##_both, "St7__cxx1118basic_stringstream" of, text) \
    STREAM(label##_buffer, std::basic_stringbuf<char_type>, char_type, \
           "St7__cxx1115basic_stringbuf" of, text) \
    PLAIN_BASE(label##_buffer, "St7__cxx1115basic_stringbuf" of, text)

CLASSES(narrow, char, "IcSt11char_traitsIcESaIcEE", TEXT "cS2_S3_EE")
CLASSES(wide, wchar_t, "IwSt11char_traitsIwESaIwEE", TEXT "wS2_S3_EE")
