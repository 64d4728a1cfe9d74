/* __isoc23_sscanf and its kin (glibc 2.38): what scanf and its kin are called by code that was
   compiled for C23 or with _GNU_SOURCE.

   Where the running glibc has the function, it is used. An older one knows no binary numbers, so
   there %i reads "0b101" as 0, as every program on that system does; all else is alike. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <wchar.h>

#ifdef FALLBACKS_ALONE /* tests of this file on a system that has the functions */
#define real_function(name) ((void *) 0)
#else
#define real_function(name) dlsym(RTLD_DEFAULT, name)
#endif

/* C99's, by their names in the object: %a is a number, not GNU's allocated text. */
extern int c99_vfscanf(FILE *, const char *, va_list) __asm__("__isoc99_vfscanf");
extern int c99_vsscanf(const char *, const char *, va_list) __asm__("__isoc99_vsscanf");
extern int c99_vfwscanf(FILE *, const wchar_t *, va_list) __asm__("__isoc99_vfwscanf");
extern int c99_vswscanf(const wchar_t *, const wchar_t *, va_list) __asm__("__isoc99_vswscanf");

#define SCANNER(name, source_type, char_type) \
    int __isoc23_v##name(source_type source, const char_type *format, va_list values) \
    { \
        int (*real)(source_type, const char_type *, va_list) = \
            real_function("__isoc23_v" #name); \
        return (real ? real : c99_v##name)(source, format, values); \
    } \
    int __isoc23_##name(source_type source, const char_type *format, ...) \
    { \
        va_list values; \
        va_start(values, format); \
        int count = __isoc23_v##name(source, format, values); \
        va_end(values); \
        return count; \
    }

SCANNER(fscanf, FILE *, char)
SCANNER(sscanf, const char *, char)
SCANNER(fwscanf, FILE *, wchar_t)
SCANNER(swscanf, const wchar_t *, wchar_t)

#define INPUT_SCANNER(name, of_stream, char_type) \
    int __isoc23_v##name(const char_type *format, va_list values) \
    { \
        return __isoc23_v##of_stream(stdin, format, values); \
    } \
    int __isoc23_##name(const char_type *format, ...) \
    { \
        va_list values; \
        va_start(values, format); \
        int count = __isoc23_v##of_stream(stdin, format, values); \
        va_end(values); \
        return count; \
    }

INPUT_SCANNER(scanf, fscanf, char)
INPUT_SCANNER(wscanf, fwscanf, wchar_t)
