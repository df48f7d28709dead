/* SPDX-License-Identifier: Apache-2.0 */
/* What an MPI program sends, counted between the program and its MPI library.
 *
 * Built as a shared library and preloaded (or linked before the MPI library),
 * it stands in front of every call that sends, counts, and calls the real one.
 * Nothing of ours is sent, so that ranks before which it is not loaded wait for
 * nothing. MPI_Finalize, MPI_Abort or the end of the process writes a rank's
 * counts behind those of its node: $NIDMAP_RECORD and the host's name make the
 * name of the file.
 *
 * The unit of counting is a step: the messages that a rank posts until it next
 * waits. Steps that post from the same call sites on the same rank are one
 * phase, so that six messages in flight together are told from six messages
 * one after the other. A collective is a phase of its own and is stored as
 * what it is (kind, communicator, root, bytes), not as messages: nothing here
 * grows with the square of the ranks.
 *
 * A failure of ours never changes what the program does: where memory or a
 * file cannot be had, counting stops and the calls go on.
 */
/* One unit, so that a user's static program needs one file more (record --link), and every call of
 * ours inlines: real_calls.c, then counting.c, then order.c, each on what stands before it. */
#include "order.c"

#include <sys/mman.h>

/* What atexit calls: no C library has that itself for a library that is linked with none. */
int __cxa_atexit(void (*)(void *), void *, void *);

/* Each call by both its names, MPI_ and PMPI_, and twice more where MPI 4 has a form for counts of
 * type MPI_Count, whose name ends in _c. */
#define COUNT int
#define PLACE int
#define NAME(name) name
#include "calls.h"
#include "world.h"
#undef NAME
#ifndef NIDMAP_STATIC
#define NAME(name) P##name
#include "calls.h"
#include "world.h"
#undef NAME
#endif
#undef COUNT
#undef PLACE
#ifdef NIDMAP_LARGE_COUNTS
#define LARGE
#define COUNT MPI_Count
#define PLACE MPI_Aint
#define NAME(name) name##_c
#include "calls.h"
#undef NAME
#ifndef NIDMAP_STATIC
#define NAME(name) P##name##_c
#include "calls.h"
#undef NAME
#endif
#undef COUNT
#undef PLACE
#undef LARGE
#endif

/* ------------------------------------------------------------------ the file */

INSIDE void put_number(struct buffer *b, int64_t value)
{
    put(b, &value, sizeof value);
}

INSIDE void put_text(struct buffer *b, const char *text)
{
    put_number(b, (int64_t)strlen(text));
    put(b, text, strlen(text));
}

INSIDE void put_site(struct buffer *b, void *site)
{
    char text[600];
    site_text(text, sizeof text, site);
    put_text(b, text);
}

INSIDE void put_phase(struct buffer *b, const struct phase *p, int bin)
{
    put(b, "PHAS", 4);
    put_number(b, bin);
    put_number(b, p->kind);
    put_number(b, p->comm ? (int64_t)p->comm->id : 0);
    put_number(b, (int64_t)p->first);
    put_number(b, (int64_t)p->calls);
    put_number(b, p->uneven);
    put_number(b, p->size_class);
    put_number(b, p->sites);
    for (int i = 0; i < p->sites; i++)
        put_site(b, p->site[i]);
    put_number(b, (int64_t)p->used);
    for (size_t i = 0; i < p->room; i++)
        if (p->cells[i].to != EMPTY)
            put(b, &p->cells[i], sizeof p->cells[i]);
}

/* What the one thread that called MPI did in order; where several did, nobody knows what waits for what. */
INSIDE void put_order(struct buffer *b)
{
    const struct order *o = NULL;
    for (const struct recorder *r = all.recorders; r; r = r->next)
        if (r->order.length) {
            if (o)
                return;
            o = &r->order;
        }
    if (!o)
        return;
    put(b, "ORDR", 4);
    put_number(b, (int64_t)o->used);
    put_number(b, (int64_t)o->length);
    put_number(b, o->ended);
    put(b, o->events, o->used * sizeof *o->events);
    put(b, o->numbers, o->length * sizeof *o->numbers);
    put(b, o->tags, o->length * sizeof *o->tags);
}

/* What tells one running kernel from another: network namespaces of one host look like several. */
INSIDE int64_t kernel_number(void)
{
    char id[64] = "";
    uint64_t number = 19;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, id, sizeof id - 1) <= 0)
        gethostname(id, sizeof id - 1);
    if (file >= 0)
        close(file);
    for (const char *c = id; *c; c++)
        number = mix(number, (uint64_t)*c);
    return (int64_t)(number & INT64_MAX);
}

/* When the thread that was longest in MPI began and ended, and how long it was in MPI. */
INSIDE void put_times(struct buffer *b)
{
    const struct recorder *longest = all.recorders;
    for (const struct recorder *r = longest; r; r = r->next)
        longest = r->in_mpi > longest->in_mpi ? r : longest;
    if (!longest)
        return;
    put(b, "TIME", 4);
    put_number(b, (int64_t)(1e9 * longest->began));
    put_number(b, (int64_t)(1e9 * longest->left));
    put_number(b, (int64_t)(1e9 * longest->in_mpi));
    put_number(b, kernel_number());
    put_number(b, sysconf(_SC_NPROCESSORS_ONLN));
}

/* All that this rank has seen. The first rank of a communicator writes who is in it. */
INSIDE struct buffer rank_record(void)
{
    struct buffer b = {0};
    for (struct recorder *r = all.recorders; r; r = r->next)
        for (int i = 0; r->next && i < all.bins; i++)
            merge_table(&r->next->bin[i], &r->bin[i]); /* the last recorder has all in the end */
    struct recorder *last = all.recorders;
    while (last && last->next)
        last = last->next;
    put(&b, "RNK2", 4);
    size_t length_at = b.used;
    put_number(&b, 0); /* how long the rest is: not yet known */
    put_number(&b, all.rank);
    put_number(&b, all.size);
    put_number(&b, (int64_t)(1e9 * seconds_since_start()));
    put_number(&b, (int64_t)(1e9 * all.bin_seconds));
    put_number(&b, all.failed);
    for (struct comm *c = all.comms; c; c = c->next) {
        if (c->rank != 0 || c->inter)
            continue;
        put(&b, "COMM", 4);
        put_number(&b, (int64_t)c->id);
        put_number(&b, c->size);
        put_number(&b, c->world != NULL);
        for (int i = 0; c->world && i < c->size; i++)
            put_number(&b, c->world[i]);
    }
    for (int i = 0; last && i < all.bins; i++)
        for (size_t k = 0; k < last->bin[i].used; k++)
            put_phase(&b, last->bin[i].phases[k], i);
    put_order(&b);
    put_times(&b);
    put(&b, "END.", 4);
    int64_t rest = (int64_t)(b.used - length_at) - 8;
    if (!b.failed)
        memcpy(b.data + length_at, &rest, sizeof rest);
    return b;
}

INSIDE void end_all_steps(void)
{
    for (struct recorder *r = all.recorders; r; r = r->next)
        if (r->waiting)
            count_step(r);
}

/* Append a rank's counts, by one call, to the file of its node: no two nodes share one, and the
 * writes of one node follow each other. */
INSIDE int append(const char *path, const struct buffer *b)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    ssize_t many = file < 0 ? -1 : write(file, b->data, b->used);
    int code = many < 0 ? errno : many < (ssize_t)b->used ? ENOSPC : 0;
    if (file >= 0 && close(file) && !code)
        code = errno;
    return code;
}

INSIDE void write_record(void)
{
    char path[sizeof all.path + 300], host[256] = "";
    if (!all.began || all.pid != getpid())
        return;
    all.on = all.began = 0;
    end_all_steps();
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s.%s", all.path, host);
    struct buffer b = rank_record();
    int code = b.failed ? ENOMEM : append(path, &b);
    if (code)
        fprintf(stderr, "nidmap record: %s: %s; counts of rank %d are lost, the program is not\n", path,
                strerror(code), all.rank);
    free(b.data);
}

/* A limit on the size of files is the program's: what we write must not end it by a signal. */
INSIDE void leave_counts(void)
{
    sigset_t limit, before;
    struct timespec now = {0, 0};
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    write_record();
    sigtimedwait(&limit, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

INSIDE void leave_at_exit(void *nothing)
{
    (void)nothing;
    leave_counts();
}

/* ------------------------------------------------------------------ beginning and end */

#ifndef NIDMAP_STATIC
#if defined(OPEN_MPI)
#define OURS "openmpi"
#define MEET nidmap_meet_openmpi
#elif defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION)
#define OURS "standard"
#define MEET nidmap_meet_standard
#else
#define OURS "mpich"
#define MEET nidmap_meet_mpich
#endif

/* The binary interface of the program's MPI, which is loaded by now. */
INSIDE const char *loaded_abi(void)
{
    struct link_map *map = NULL;
    void *self = dlopen(NULL, RTLD_LAZY);
    if (self && dlinfo(self, RTLD_DI_LINKMAP, &map) == 0)
        for (; map; map = map->l_next)
            if (strstr(map->l_name, "libmpi_abi.so"))
                return "standard";
    return find_if_there(RTLD_DEFAULT, "ompi_mpi_comm_world") ? "openmpi" : "mpich";
}

#ifdef JUMP
extern struct call __start_nidmap_calls[] __attribute__((visibility("hidden")));
extern struct call __stop_nidmap_calls[] __attribute__((visibility("hidden")));

/* All calls go past us, to the recorder behind us or to the program's MPI. */
INSIDE void stand_aside(void)
{
    for (struct call *c = __start_nidmap_calls; c < __stop_nidmap_calls; c++) {
        void *next = dlsym(RTLD_NEXT, c->name);
        next = next ? next : find_if_there(RTLD_NEXT, c->name);
        if (next)
            c->target = next;
    }
}

/* The call of ours at an address that the program's MPI does not have; NULL for none. */
INSIDE const struct call *call_of_ours_only(const char *jump)
{
    struct call *first = __start_nidmap_calls, *end = __stop_nidmap_calls;
    if (jump < first->jump || jump > end[-1].jump)
        return NULL;
    for (struct call *c = first; c < end; c++)
        if (c->jump == jump) {
            void *real = find_if_there(RTLD_NEXT, c->name);
            return !real || is_recorder(real) ? c : NULL;
        }
    return NULL;
}

/* Take out of a library what it asked for weakly, and only we have: mpi4py's wheels serve several
 * versions of an MPI, and call what they find. */
INSIDE int hide_calls(struct dl_phdr_info *object, size_t size, void *nothing)
{
    const ElfW(Dyn) *entry = NULL;
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) *places = NULL;
    size_t bytes = 0;
    (void)size, (void)nothing;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        symbols = entry->d_tag == DT_SYMTAB ? (const void *)entry->d_un.d_ptr : symbols;
        places = entry->d_tag == DT_RELA ? (const void *)entry->d_un.d_ptr : places;
        bytes = entry->d_tag == DT_RELASZ ? entry->d_un.d_val : bytes;
    }
    if ((uintptr_t)symbols < object->dlpi_addr || (uintptr_t)places < object->dlpi_addr)
        return 0; /* the kernel's own, whose addresses are not absolute */
    for (size_t i = 0; symbols && places && i < bytes / sizeof *places; i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(places[i].r_info)];
        const char **place = (const char **)(object->dlpi_addr + places[i].r_offset);
        if (symbol == symbols || ELF64_ST_BIND(symbol->st_info) != STB_WEAK || !call_of_ours_only(*place))
            continue;
        uintptr_t page = (uintptr_t)place & -(uintptr_t)sysconf(_SC_PAGESIZE);
        if (mprotect((void *)page, (uintptr_t)place - page + sizeof *place, PROT_READ | PROT_WRITE) == 0)
            *place = NULL;
    }
    return 0;
}
#endif

/* Find out whether the program's MPI is the one that we are for. */
int MEET(const char *);
EXPORT int MEET(const char *loaded)
{
    static int asked, another;
    if (!asked) {
        asked = 1;
        another = strcmp(loaded, OURS) != 0;
#ifdef JUMP
        if (another)
            stand_aside();
        dl_iterate_phdr(hide_calls, NULL);
#endif
    }
    return another;
}

/* Whether the program's MPI is another, whose handles we would garble. It is asked at the first call
 * of a program, before there are handles, and answered by all recorders that are loaded. */
INSIDE int leave_another_mpi(void)
{
    static const char *names[] = {"nidmap_meet_mpich", "nidmap_meet_openmpi", "nidmap_meet_standard"};
    static const char *ranks[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
    static int said;
    const char *loaded = loaded_abi();
    int fitting = 0, first = 1;
    for (int i = 0; i < 3; i++) {
        int (*meet)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, names[i]);
        fitting |= meet && !meet(loaded);
        first = first && (!getenv(ranks[i]) || atoi(getenv(ranks[i])) == 0);
    }
    if (!fitting && first && !said++)
        fprintf(stderr, "nidmap: the recorder is for another MPI than the program's, which runs without "
                "it: name the program's own compiler with --mpicc or NIDMAP_MPICC\n");
    return MEET(loaded);
}

#if defined(NIDMAP_MPI_4_CALLS) && defined(JUMP)
/* The sessions model begins without MPI_Init. Handles of any size pass as addresses do. */
#define OPENS(name)                                                                            \
    static int counted_##name(void *, void *, void *);                                         \
    JUMPS(name)                                                                                \
    static int counted_##name(void *info, void *handler, void *session)                        \
    {                                                                                          \
        leave_another_mpi();                                                                   \
        return ((int (*)(void *, void *, void *))find_from(RTLD_NEXT, #name))(info, handler, session); \
    }
OPENS(MPI_Session_init)
OPENS(PMPI_Session_init)
#endif
#else
INSIDE int leave_another_mpi(void)
{
    return 0;
}
#endif

INSIDE void begin(void)
{
    const char *path = getenv("NIDMAP_RECORD"), *window = getenv("NIDMAP_RECORD_WINDOW");
    if (!path || !*path || strlen(path) >= sizeof all.path || all.began)
        return;
    MPI_Comm parent = MPI_COMM_NULL;
    REAL(MPI_Comm_get_parent)(&parent);
    if (parent != MPI_COMM_NULL)
        return; /* spawned programs have a world of their own */
    strcpy(all.path, path);
    REAL(MPI_Comm_rank)(program_world(), &all.rank);
    REAL(MPI_Comm_size)(program_world(), &all.size);
    REAL(MPI_Comm_group)(program_world(), &all.world);
    REAL(MPI_Comm_create_keyval)(copy_no_comm, forget_comm, &all.comm_key, NULL);
    REAL(MPI_Win_create_keyval)(copy_no_win, forget_win, &all.win_key, NULL);
    all.self_world = (struct comm){.size = all.size, .rank = all.rank};
    all.self_world.id = mix(3, (uint64_t)all.size);
    for (int i = 0; i < all.size; i++)
        all.self_world.id = mix(all.self_world.id, (uint64_t)i);
    all.comms = &all.self_world;
    all.bin_seconds = 0.05;
    all.bins = window && strcmp(window, "time") == 0 ? WINDOW_BINS : 1;
    find_library();
    clock_gettime(CLOCK_MONOTONIC, &all.start);
    all.pid = getpid();
    all.began = 1;
    all.on = !(window && strcmp(window, "pcontrol") == 0);
    __cxa_atexit(leave_at_exit, NULL, NULL);
}

/* 0 stops counting, 1 starts it, 2 forgets what was counted and starts: as in mpiP. */
INSIDE void control(int level)
{
    if (!all.began || all.failed)
        return;
    end_step();
    for (struct recorder *r = all.recorders; r && level >= 2; r = r->next)
        for (int i = 0; i < all.bins; i++) {
            struct table empty = {0}, *old = &r->bin[i];
            merge_table(&empty, old);
            for (size_t k = 0; k < empty.used; k++)
                free(empty.phases[k]->cells);
        }
    for (struct recorder *r = all.recorders; r && level >= 2; r = r->next) {
        free(r->order.events);
        free(r->order.numbers);
        free(r->order.tags);
        free(r->order.slots);
        memset(&r->order, 0, sizeof r->order);
        r->pending_used = 0;
        r->began = r->left = seconds_since_start();
        r->in_mpi = 0;
    }
    all.on = level > 0;
}

#define BEGINS(name, params, args)                                                             \
    CALL(name) params                                                                          \
    {                                                                                          \
        if (leave_another_mpi())                                                               \
            return NEXT(name) args;                                                            \
        int code = PASS(name, args);                                                           \
        if (code == MPI_SUCCESS && !inside) {                                                  \
            begin_ordering();                                                                  \
            begin();                                                                           \
        }                                                                                      \
        return code;                                                                           \
    }
#define ENDS(finalize, abort_, pcontrol)                                                       \
    CALL(finalize)(void)                                                                  \
    {                                                                                          \
        int counted = all.began && all.pid == getpid();                                        \
        leave_counts();                                                                        \
        if (counted)                                                                           \
            REAL(MPI_Group_free)(&all.world);                                                  \
        return PASS(finalize, ());                                                             \
    }                                                                                          \
    CALL(abort_)(MPI_Comm comm, int code)                                                 \
    {                                                                                          \
        leave_counts();                                                                        \
        return PASS(abort_, (comm, code));                                                     \
    }                                                                                          \
    CALL(pcontrol)(const int level, ...)                                                  \
    {                                                                                          \
        control(level);                                                                        \
        return MPI_SUCCESS;                                                                    \
    }

/* ------------------------------------------------------------------ both names of each */

TOPOLOGIES(MPI_Cart_create, MPI_Graph_create, MPI_Dist_graph_create, MPI_Dist_graph_create_adjacent)
BEGINS(MPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(MPI_Init_thread, (int *argc, char ***argv, int wanted, int *given), (argc, argv, wanted, given))
ENDS(MPI_Finalize, MPI_Abort, MPI_Pcontrol)
#ifndef NIDMAP_STATIC
TOPOLOGIES(PMPI_Cart_create, PMPI_Graph_create, PMPI_Dist_graph_create, PMPI_Dist_graph_create_adjacent)
BEGINS(PMPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(PMPI_Init_thread, (int *argc, char ***argv, int wanted, int *given), (argc, argv, wanted, given))
ENDS(PMPI_Finalize, PMPI_Abort, PMPI_Pcontrol)
#include "fortran.c"
#endif
