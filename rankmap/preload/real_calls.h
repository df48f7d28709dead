/* The MPI library's own calls, found by name when each is first needed. All else stands on this. */
#pragma once
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

#ifdef NIDMAP_STATIC
#define REAL(name) REAL_(name)
#define REAL_(name) P##name
#else
/* The next definition of a name; NULL for none. A library that was loaded later and privately, as
 * Python loads its extensions, is not part of our own search: it is looked for by name. */
INSIDE void *find_if_there(void *where, const char *name)
{
    void *found = dlsym(where, name);
    if (found)
        return found;
    void *self = dlopen(NULL, RTLD_LAZY);
    struct link_map *map = NULL;
    if (self && dlinfo(self, RTLD_DI_LINKMAP, &map) == 0)
        for (; map; map = map->l_next) {
            const char *base = strrchr(map->l_name, '/');
            if (strncmp(base ? base + 1 : map->l_name, "libmpi", 6) != 0)
                continue;
            void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
            found = library ? dlsym(library, name) : NULL;
            if (found)
                return found;
        }
    return NULL;
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
