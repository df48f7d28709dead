/* SPDX-License-Identifier: Apache-2.0 */
/* An MPICH before 4.2 on UCX closes its endpoints and waits in a barrier of the launcher, where it
   answers nobody: a rank whose closing is still to be answered waits for ever. Loaded before such
   a program, this goes on answering between the two, from the time when all ranks have come to
   MPI_Finalize. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <time.h>

#define SECONDS 0.5
#define COMM_WORLD 0x44000000 /* in MPICH's binary interface */

static void *worker;
static int closing;

/* The function of that name behind this library: in view of the program, else in an MPI that an
   interpreter has loaded for itself, or what that needs. */
static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name), *self = dlopen(NULL, RTLD_LAZY), *library;
    struct link_map *map = NULL;

    if (!found && self)
        dlinfo(self, RTLD_DI_LINKMAP, &map);
    for (; map && !found; map = map->l_next)
        if (strstr(map->l_name, "/libmpi") && (library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)))
            found = dlsym(library, name);
    return found;
}

unsigned ucp_worker_progress(void *used)
{
    static unsigned (*progress)(void *);

    if (!progress)
        progress = (unsigned (*)(void *))next("ucp_worker_progress");
    worker = used;
    return progress(used);
}

int MPI_Finalize(void)
{
    int (*barrier)(int) = (int (*)(int))next("PMPI_Barrier");

    if (worker && barrier && !next("ompi_mpi_comm_world"))
        barrier(COMM_WORLD);
    return ((int (*)(void))next("PMPI_Finalize"))();
}

void *ucp_disconnect_nb(void *endpoint)
{
    closing = 1;
    return ((void *(*)(void *))next("ucp_disconnect_nb"))(endpoint);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The first request that is given back says that all of them are complete. */
void ucp_request_release(void *request)
{
    struct timespec nap = {0, 1000000};
    double end = seconds() + SECONDS;

    while (closing && worker && seconds() < end) {
        ucp_worker_progress(worker);
        nanosleep(&nap, 0);
    }
    closing = 0;
    ((void (*)(void *))next("ucp_request_release"))(request);
}
