/* std::ios_base_library_init() (GLIBCXX_3.4.32): what <iostream> of GCC 13 and later names, and never
   calls, so that a module asks for a libstdc++ that makes std::cout and its kin itself. In older
   ones each user makes them with a std::ios_base::Init; the first made counts, the others are
   counted. This file is linked where the name stands, makes one before the module's own static
   objects, and gives it back after them.

   A file of its own: a module that does not name it pays for no initialisation. */

#include <ios>

static std::ios_base::Init streams __attribute__((init_priority(101)));

extern "C" void library_init(void) __asm__("_ZSt21ios_base_library_initv");
void library_init(void)
{
}
