/* strlcpy, strlcat, wcslcpy, wcslcat and their checked forms (glibc 2.38), __memcmpeq (2.35).

   The first four copy (append) what fits into `size` characters with their final zero and return
   the length that the whole would have. The checked ones end the process where `size` is more than
   the object holds. __memcmpeq is memcmp of which only "is zero" is used. */

#include <stddef.h>
#include <string.h>
#include <wchar.h>

extern void __chk_fail(void) __attribute__((noreturn));

#define COPY(name, char_type, length_of, copy) \
    size_t name(char_type *target, const char_type *source, size_t size) \
    { \
        size_t length = length_of(source); \
        if (size > 0) { \
            size_t fits = length < size ? length : size - 1; \
            copy(target, source, fits); \
            target[fits] = 0; \
        } \
        return length; \
    } \
    size_t __##name##_chk(char_type *target, const char_type *source, size_t size, size_t room) \
    { \
        if (size > room) \
            __chk_fail(); \
        return name(target, source, size); \
    }
#define APPEND(name, char_type, length_of, bounded_length_of, copy) \
    size_t name(char_type *target, const char_type *source, size_t size) \
    { \
        size_t before = bounded_length_of(target, size); \
        if (before == size) \
            return size + length_of(source); \
        return before + copy(target + before, source, size - before); \
    } \
    size_t __##name##_chk(char_type *target, const char_type *source, size_t size, size_t room) \
    { \
        if (size > room) \
            __chk_fail(); \
        return name(target, source, size); \
    }

COPY(strlcpy, char, strlen, memcpy)
APPEND(strlcat, char, strlen, strnlen, strlcpy)
COPY(wcslcpy, wchar_t, wcslen, wmemcpy)
APPEND(wcslcat, wchar_t, wcslen, wcsnlen, wcslcpy)

int __memcmpeq(const void *left, const void *right, size_t size)
{
    return memcmp(left, right, size);
}
