/* _dl_find_object (glibc 2.35): which loaded object holds an address, and its unwind table.

   GCC's unwinder calls it from version 12 on, so it is needed by what links libgcc statically.
   dl_iterate_phdr has told the same since glibc 2.2.4, more slowly. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* struct dl_find_object of <dlfcn.h>, which older headers do not have. Architectures whose
   structure has further fields (32-bit x86 and ARM) are none of PyTorch's. */
struct found_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    uintptr_t address;
    struct found_object *result;
};

static int visit(struct dl_phdr_info *object, size_t size, void *data)
{
    struct search *search = data;
    uintptr_t start = UINTPTR_MAX, end = 0;
    void *eh_frame = 0;
    int holds = 0;
    (void) size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        uintptr_t at = object->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_GNU_EH_FRAME)
            eh_frame = (void *) at;
        if (header->p_type != PT_LOAD)
            continue;
        if (at < start)
            start = at;
        if (at + header->p_memsz > end)
            end = at + header->p_memsz;
        holds |= search->address >= at && search->address < at + header->p_memsz;
    }
    if (!holds)
        return 0;
    search->result->map_start = (void *) start;
    search->result->map_end = (void *) end;
    search->result->eh_frame = eh_frame;
    return 1;
}

/* By its name in the object, since newer headers declare it with their own structure. */
int find_object(void *address, struct found_object *result) __asm__("_dl_find_object");

int find_object(void *address, struct found_object *result)
{
    struct search search = {(uintptr_t) address, result};
    Dl_info unused;
    memset(result, 0, sizeof *result);
    if (dl_iterate_phdr(visit, &search) != 1)
        return -1;
    dladdr1(address, &unused, (void **) &result->link_map, RTLD_DL_LINKMAP);
    return 0;
}
