/* __isoc23_strtol and its kin (glibc 2.38): what strtol and its kin are called by code that was
   compiled for C23, for C++ with GNU extensions, or with _GNU_SOURCE.

   They take one form more than the functions of before: binary numbers ("0b101") where the base
   is 0 or 2. Everything else is left to the function of before. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <wchar.h>
#include <wctype.h>

/* By their plain names in the object, whatever the headers here make of them. */
#define OLD(type, name, char_type) \
    extern type old_##name(const char_type *, char_type **, int) __asm__(#name);
#define OLD_IN_LOCALE(type, name, char_type) \
    extern type old_##name(const char_type *, char_type **, int, locale_t) __asm__(#name);

OLD(long, strtol, char)
OLD(long long, strtoll, char)
OLD(unsigned long, strtoul, char)
OLD(unsigned long long, strtoull, char)
OLD(intmax_t, strtoimax, char)
OLD(uintmax_t, strtoumax, char)
OLD(long, wcstol, wchar_t)
OLD(long long, wcstoll, wchar_t)
OLD(unsigned long, wcstoul, wchar_t)
OLD(unsigned long long, wcstoull, wchar_t)
OLD(intmax_t, wcstoimax, wchar_t)
OLD(uintmax_t, wcstoumax, wchar_t)
OLD_IN_LOCALE(long, strtol_l, char)
OLD_IN_LOCALE(long long, strtoll_l, char)
OLD_IN_LOCALE(unsigned long, strtoul_l, char)
OLD_IN_LOCALE(unsigned long long, strtoull_l, char)
OLD_IN_LOCALE(long, wcstol_l, wchar_t)
OLD_IN_LOCALE(long long, wcstoll_l, wchar_t)
OLD_IN_LOCALE(unsigned long, wcstoul_l, wchar_t)
OLD_IN_LOCALE(unsigned long long, wcstoull_l, wchar_t)

#define is_blank_of_char(c) isspace((unsigned char) (c))
#define is_blank_of_wchar_t(c) iswspace((wint_t) (c))

/* Read a binary number. Return whether there is one; *overflows says that it is too long. */
#define READER(char_type) \
    static int read_##char_type(const char_type *text, char_type **end, int base, int *negative, \
                                unsigned long long *value, int *overflows) \
    { \
        if (base != 0 && base != 2) \
            return 0; \
        while (is_blank_of_##char_type(*text)) \
            text++; \
        *negative = *text == '-'; \
        if (*text == '-' || *text == '+') \
            text++; \
        if (text[0] != '0' || (text[1] != 'b' && text[1] != 'B') \
            || (text[2] != '0' && text[2] != '1')) \
            return 0; \
        *value = 0; \
        *overflows = 0; \
        for (text += 2; *text == '0' || *text == '1'; text++) { \
            *overflows |= *value >> (sizeof *value * CHAR_BIT - 1) != 0; \
            *value = *value << 1 | (*text == '1'); \
        } \
        if (end) \
            *end = (char_type *) text; \
        return 1; \
    }
READER(char)
READER(wchar_t)

static long long signed_value(int negative, unsigned long long value, int overflows,
                              long long least, long long most)
{
    unsigned long long limit = negative ? 0 - (unsigned long long) least : (unsigned long long) most;
    if (overflows || value > limit) {
        errno = ERANGE;
        return negative ? least : most;
    }
    return (long long) (negative ? 0 - value : value);
}

static unsigned long long unsigned_value(int negative, unsigned long long value, int overflows,
                                         unsigned long long most)
{
    if (overflows || value > most) {
        errno = ERANGE;
        return most;
    }
    return negative ? 0 - value : value;
}

#define VALUES \
    int negative, overflows; \
    unsigned long long value;
#define SIGNED(type, name, char_type, least, most) \
    type __isoc23_##name(const char_type *text, char_type **end, int base) \
    { \
        VALUES \
        if (read_##char_type(text, end, base, &negative, &value, &overflows)) \
            return (type) signed_value(negative, value, overflows, least, most); \
        return old_##name(text, end, base); \
    }
#define UNSIGNED(type, name, char_type, most) \
    type __isoc23_##name(const char_type *text, char_type **end, int base) \
    { \
        VALUES \
        if (read_##char_type(text, end, base, &negative, &value, &overflows)) \
            return (type) unsigned_value(negative, value, overflows, most); \
        return old_##name(text, end, base); \
    }
#define SIGNED_IN_LOCALE(type, name, char_type, least, most) \
    type __isoc23_##name(const char_type *text, char_type **end, int base, locale_t where) \
    { \
        VALUES \
        if (read_##char_type(text, end, base, &negative, &value, &overflows)) \
            return (type) signed_value(negative, value, overflows, least, most); \
        return old_##name(text, end, base, where); \
    }
#define UNSIGNED_IN_LOCALE(type, name, char_type, most) \
    type __isoc23_##name(const char_type *text, char_type **end, int base, locale_t where) \
    { \
        VALUES \
        if (read_##char_type(text, end, base, &negative, &value, &overflows)) \
            return (type) unsigned_value(negative, value, overflows, most); \
        return old_##name(text, end, base, where); \
    }

SIGNED(long, strtol, char, LONG_MIN, LONG_MAX)
SIGNED(long long, strtoll, char, LLONG_MIN, LLONG_MAX)
SIGNED(intmax_t, strtoimax, char, INTMAX_MIN, INTMAX_MAX)
SIGNED(long, wcstol, wchar_t, LONG_MIN, LONG_MAX)
SIGNED(long long, wcstoll, wchar_t, LLONG_MIN, LLONG_MAX)
SIGNED(intmax_t, wcstoimax, wchar_t, INTMAX_MIN, INTMAX_MAX)
UNSIGNED(unsigned long, strtoul, char, ULONG_MAX)
UNSIGNED(unsigned long long, strtoull, char, ULLONG_MAX)
UNSIGNED(uintmax_t, strtoumax, char, UINTMAX_MAX)
UNSIGNED(unsigned long, wcstoul, wchar_t, ULONG_MAX)
UNSIGNED(unsigned long long, wcstoull, wchar_t, ULLONG_MAX)
UNSIGNED(uintmax_t, wcstoumax, wchar_t, UINTMAX_MAX)
SIGNED_IN_LOCALE(long, strtol_l, char, LONG_MIN, LONG_MAX)
SIGNED_IN_LOCALE(long long, strtoll_l, char, LLONG_MIN, LLONG_MAX)
SIGNED_IN_LOCALE(long, wcstol_l, wchar_t, LONG_MIN, LONG_MAX)
SIGNED_IN_LOCALE(long long, wcstoll_l, wchar_t, LLONG_MIN, LLONG_MAX)
UNSIGNED_IN_LOCALE(unsigned long, strtoul_l, char, ULONG_MAX)
UNSIGNED_IN_LOCALE(unsigned long long, strtoull_l, char, ULLONG_MAX)
UNSIGNED_IN_LOCALE(unsigned long, wcstoul_l, wchar_t, ULONG_MAX)
UNSIGNED_IN_LOCALE(unsigned long long, wcstoull_l, wchar_t, ULLONG_MAX)
