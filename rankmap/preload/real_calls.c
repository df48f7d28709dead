/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI library's own calls, found by name when each is first needed. All else stands on this. */
#define _GNU_SOURCE
#include <features.h>
/* glibc 2.38 gives strtol and scanf names that older ones do not have. */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#if MPI_VERSION >= 4
#define NIDMAP_LARGE_COUNTS
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define NIDMAP_MPI_4_CALLS
#endif

#define EXPORT __attribute__((visibility("default")))
#define INSIDE static __attribute__((unused))

/* CALL(name) begins the definition of what stands before a call of MPI. The name itself is a jump
 * to it, through a variable: where the program's MPI is another than ours, whose handles have
 * another size, the jump goes to that MPI with all arguments as they are (`meet_program`).
 * On processors other than these the name is the definition, which no jump can pass by. */
#if defined(__x86_64__)
#define JUMP(name) "jmp *call_" #name "+8(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, call_" #name "+8\nldr x16, [x16, #:lo12:call_" #name "+8]\nbr x16\n"
#elif defined(__riscv) && __riscv_xlen == 64
#define JUMP(name) "lla t1, call_" #name "+8\nld t1, (t1)\njr t1\n"
#endif
#define CALL(name) CALL_(name)
#if defined(JUMP) && !defined(NIDMAP_STATIC)
struct call { const char *name; void *target; const char *jump; };
#define JUMPS(name)                                                                            \
    extern const char jump_##name[] __attribute__((visibility("hidden")));                     \
    __attribute__((used, section("nidmap_calls"), aligned(8))) static struct call call_##name = { \
        #name, (void *)counted_##name, jump_##name};                                           \
    __asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n"               \
            ".globl jump_" #name "\n.hidden jump_" #name "\n.p2align 4\n"                       \
            #name ":\njump_" #name ":\n" JUMP(name) ".size " #name ", .-" #name "\n.popsection\n");
#define CALL_(name)                                                                            \
    static __typeof__(name) counted_##name;                                                    \
    JUMPS(name)                                                                                \
    static int counted_##name
#define NEXT(name) ((__typeof__(&name))call_##name.target)
#else
#define CALL_(name) EXPORT int name
#define NEXT(name) REAL(name)
#endif

#ifdef NIDMAP_STATIC
#define REAL(name) REAL_(name)
#define REAL_(name) P##name
#else
/* Recorders for several MPIs may be loaded, of which all but one stand aside. */
INSIDE int is_recorder(const void *address)
{
    Dl_info place;
    return dladdr(address, &place) && place.dli_fname && strstr(place.dli_fname, "libnidmap_mpi");
}

/* The next definition of a name; NULL for none. A library that was loaded later and privately, as
 * Python loads its extensions, is not part of our own search: it is looked for by name. */
INSIDE void *find_if_there(void *where, const char *name)
{
    void *next = dlsym(where, name);
    if (next && !is_recorder(next))
        return next;
    void *self = dlopen(NULL, RTLD_LAZY);
    struct link_map *map = NULL;
    if (self && dlinfo(self, RTLD_DI_LINKMAP, &map) == 0)
        for (; map; map = map->l_next) {
            const char *base = strrchr(map->l_name, '/');
            if (strncmp(base ? base + 1 : map->l_name, "libmpi", 6) != 0)
                continue;
            void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
            void *found = library ? dlsym(library, name) : NULL;
            if (found)
                return found;
        }
    return next;
}
INSIDE void *find_from(void *where, const char *name)
{
    void *found = find_if_there(where, name);
    if (found)
        return found;
    fprintf(stderr, "nidmap: the MPI library has no %s\n", name);
    abort();
}
#define REAL(name) REAL_(name)
#define REAL_(name)                                                                            \
    (*(__extension__({                                                                         \
        static __typeof__(&name) real;                                                         \
        if (__builtin_expect(!real, 0))                                                        \
            real = (__typeof__(&name))find_from(RTLD_NEXT, #name);                             \
        real;                                                                                  \
    })))
#ifndef MPI_UNWEIGHTED
/* MPICH's words for no weights are variables of the library. */
#define MPI_UNWEIGHTED (*(int **)find_from(RTLD_DEFAULT, "MPI_UNWEIGHTED"))
#define MPI_WEIGHTS_EMPTY (*(int **)find_from(RTLD_DEFAULT, "MPI_WEIGHTS_EMPTY"))
#endif
#ifdef OPEN_MPI
/* Open MPI's handles are addresses of its objects. Programs that load no MPI load this library
 * too, so the objects are looked up when they are needed, as the calls are. */
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, object)                                                   \
    (__extension__({                                                                           \
        static void *address;                                                                  \
        if (__builtin_expect(!address, 0))                                                     \
            address = find_from(RTLD_DEFAULT, #object); /* a program may hold its own copy */  \
        (type) address;                                                                        \
    }))
#endif
#endif
