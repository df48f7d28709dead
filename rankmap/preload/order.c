/* SPDX-License-Identifier: Apache-2.0 */
/* Orders inside the program: process topologies that the program lets MPI reorder, and
 * MPI_COMM_WORLD itself where that is asked for.
 *
 * $NIDMAP_ORDER names a file of slots, $NIDMAP_ASK is a command that rank 0 asks (it writes a
 * question to its standard input and reads the answer from its standard output), and
 * $NIDMAP_CHECK_REORDER makes every order another one, to find programs that cannot bear it.
 * Whatever fails, the processes keep the order that they have, and one line says so. */
#include "counting.c"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    NAME_ROOM = 64,        /* of a host's name; a longer one is cut */
    SPEAKERS = 4,          /* processes that warn of mixed ranks: the first ones that are moved */
    ANSWERS = 8,           /* answers that are kept: a program may make a topology again */
    PATIENCE = 60,         /* seconds that an answer may take, unless $NIDMAP_PATIENCE says else */
    NOBODY = -1000,        /* a call that names no rank */
    A_PLACE = -1001,       /* a call in which it matters which rank a process has */
};

/* What a process has to know of an order. */
struct place {
    int rank;              /* its new rank */
    int speaks;
};

/* Ranks that a process has named in a communicator: each may be a neighbour by chance. */
struct named {
    int first;             /* the first one that only a mix explains, 0 for none */
    int others;            /* some are no neighbours at all */
};

/* The latest communicator whose ranks are not those of the one that it was made of. */
struct topology {
    MPI_Comm comm, parent;
    int old, rank;         /* our ranks in the parent and in it */
    int asked;             /* the program knows of the second */
    int found, speaks;
    int *near, *near_old;  /* neighbours of these two ranks, NULL where they are not known */
    int many, many_old;
    struct named in_it, in_parent;
};

static struct {
    int active;            /* calls have to look at their communicator */
    int key;               /* attribute of `latest`, which says when it is freed */
    struct topology *latest;
    const char *file, *command, *check;
    int rank, size;        /* in the launcher's own MPI_COMM_WORLD */
} ordering;

INSIDE void say_unordered(const char *why)
{
    fprintf(stderr, "nidmap: %s; ranks stay as they are\n", why);
}

/* ------------------------------------------------------------------ asking */

/* Wait for rank 0 without keeping a core busy: it may take a second. */
INSIDE void wait_idly(MPI_Request *request)
{
    struct timespec pause = {0, 100000};
    int done = 0;
    while (REAL(MPI_Test)(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 3000000)
            pause.tv_nsec *= 2;
    }
}

/* What rank 0 says of itself, on all ranks. */
INSIDE int said_by_first(MPI_Comm comm, int word)
{
    MPI_Request request;
    REAL(MPI_Ibcast)(&word, 1, MPI_INT, 0, comm, &request);
    wait_idly(&request);
    return word;
}

/* The names of this process's host: its processor's, and Slurm's for the node. */
INSIDE void name_host(char names[2 * NAME_ROOM])
{
    char processor[MPI_MAX_PROCESSOR_NAME] = "";
    const char *list = getenv("NIDMAP_PROCESSOR_NAMES"), *node = getenv("SLURMD_NODENAME");
    int length, at = 0, many = 1;
    REAL(MPI_Get_processor_name)(processor, &length);
    const char *first = processor, *second = node ? node : "";
    if (list && *list) { /* made-up nodes, counted round */
        for (const char *c = list; *c; c++)
            many += *c == ',';
        for (first = list; at < ordering.rank % many; at++)
            first = strchr(first, ',') + 1;
        second = first;
    }
    memset(names, 0, 2 * NAME_ROOM);
    memcpy(names, first, strnlen(first, NAME_ROOM - 1));
    memcpy(names + NAME_ROOM, second, strnlen(second, NAME_ROOM - 1));
    for (int i = 0; i < 2 * NAME_ROOM; i++)
        if (names[i] == ',' || names[i] == ' ' || names[i] == '\n')
            for (; i % NAME_ROOM; i++)
                names[i] = 0;
}

INSIDE void put_line(struct buffer *b, const char *form, ...)
{
    char text[512];
    va_list rest;
    va_start(rest, form);
    int many = vsnprintf(text, sizeof text, form, rest);
    va_end(rest);
    put(b, text, many < (int)sizeof text ? (size_t)many : sizeof text - 1);
}

/* Start the command with both its ends on a socket; its process, -1 where it does not start. It
 * is a shell's line, and does not load this library. */
INSIDE pid_t start_command(const char *command, int *ours)
{
    int ends[2], many = 0;
    pid_t child = -1;
    while (environ[many])
        many++;
    char **env = malloc((size_t)(many + 1) * sizeof *env);
    if (!env || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        free(env);
        return -1;
    }
    int kept = 0;
    for (int i = 0; i < many; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            env[kept++] = environ[i];
    env[kept] = NULL;
    char *const words[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    if (posix_spawn(&child, "/bin/sh", &files, NULL, words, env) != 0)
        child = -1;
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    *ours = ends[0];
    if (child < 0)
        close(ends[0]);
    free(env);
    return child;
}

/* The command's answer to a question, closed by a zero; `failed` where there is none in time. */
INSIDE struct buffer answer_to(const char *command, const struct buffer *question)
{
    struct buffer answer = {0};
    const char *patience = getenv("NIDMAP_PATIENCE");
    double seconds = patience && atof(patience) > 0 ? atof(patience) : PATIENCE;
    struct timespec start, now;
    char part[4096];
    int end = -1, over = 0;
    size_t sent = 0;
    pid_t child = start_command(command, &end);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (child > 0 && !over) {
        struct pollfd one = {end, sent < question->used ? POLLIN | POLLOUT : POLLIN, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        double left = seconds - (double)(now.tv_sec - start.tv_sec);
        if (left <= 0 || (poll(&one, 1, (int)(1000 * left)) < 0 && errno != EINTR))
            break;
        if (one.revents & POLLOUT) {
            ssize_t many = send(end, question->data + sent, question->used - sent,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
            sent = many > 0 ? sent + (size_t)many : many < 0 && errno == EPIPE ? question->used : sent;
            if (sent >= question->used)
                shutdown(end, SHUT_WR);
        }
        if (one.revents & (POLLIN | POLLHUP)) {
            ssize_t many = recv(end, part, sizeof part, MSG_DONTWAIT);
            if (many > 0)
                put(&answer, part, (size_t)many);
            over = many == 0 || (many < 0 && errno != EAGAIN && errno != EINTR);
        }
    }
    if (child > 0) {
        close(end);
        if (!over)
            kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    put(&answer, "", 1);
    answer.failed |= !over;
    return answer;
}

/* Read an answer: the old rank of each new one, of the first `cells` ranks; the others stay. */
INSIDE int *read_answer(const struct buffer *answer, int cells, int size)
{
    char why[300] = "no order could be asked for in time";
    int *old = malloc((size_t)size * sizeof *old), *seen = calloc((size_t)size, sizeof *seen);
    const char *text = answer->failed ? "" : answer->data;
    int good = old && seen && *text, line = 0;
    if (good && strncmp(text, "no: ", 4) == 0)
        snprintf(why, sizeof why, "%.*s", (int)strcspn(text + 4, "\n"), text + 4);
    else if (!answer->failed)
        snprintf(why, sizeof why, "the answer to what was asked for is not an order of %d ranks", cells);
    for (char *end; good && line < cells; text = end, line++) {
        long rank = strtol(text, &end, 10);
        good = end != text && rank >= 0 && rank < cells && !seen[rank];
        if (good)
            seen[old[line] = (int)rank] = 1;
    }
    for (; good && line < size; line++)
        old[line] = line;
    if (!good) {
        say_unordered(why);
        free(old);
        old = NULL;
    }
    free(seen);
    return old;
}

/* What rank 0 is told by all: the text of a question. `edges` are triples of ranks and weights,
 * of each process its own; NULL on all alike where the pattern says all. NULL where no memory. */
INSIDE int ask_all(MPI_Comm comm, const char *pattern, int cells, const struct buffer *edges,
                   struct buffer *question)
{
    char own[2 * NAME_ROOM];
    int rank, size, mine = edges ? (int)(edges->used / sizeof(int)) : 0, total = 0;
    REAL(MPI_Comm_rank)(comm, &rank);
    REAL(MPI_Comm_size)(comm, &size);
    char *names = rank ? NULL : malloc((size_t)size * sizeof own);
    int *many = rank ? NULL : malloc(2 * (size_t)size * sizeof *many), *at = many + size;
    int good = said_by_first(comm, rank || (names && many));
    if (good) {
        name_host(own);
        REAL(MPI_Gather)(own, sizeof own, MPI_CHAR, names, sizeof own, MPI_CHAR, 0, comm);
        put_line(question, "nidmap 1\n%s\n%d %d\n", pattern, cells, size);
        for (int i = 0; i < size && !rank; i++) {
            const char *first = names + 2 * (size_t)i * NAME_ROOM, *second = first + NAME_ROOM;
            put_line(question, "%s %s\n", first, *second ? second : "-");
        }
    }
    if (good && edges) {
        REAL(MPI_Gather)(&mine, 1, MPI_INT, many, 1, MPI_INT, 0, comm);
        for (int i = 0; i < size && !rank; total += many[i++])
            at[i] = total;
        int *triples = rank ? NULL : malloc(sizeof *triples * (size_t)(total + 1));
        good = said_by_first(comm, rank || triples);
        if (good)
            REAL(MPI_Gatherv)(edges->data, mine, MPI_INT, triples, many, at, MPI_INT, 0, comm);
        for (int i = 0; good && !rank && i + 2 < total; i += 3)
            put_line(question, "%d %d %d\n", triples[i], triples[i + 1], triples[i + 2]);
        free(triples);
    }
    free(names);
    free(many);
    return good && !question->failed;
}

/* The order by asking, on rank 0 of `comm`; NULL on the others and where there is none. */
INSIDE int *order_by_asking(MPI_Comm comm, const char *pattern, int cells, const struct buffer *edges)
{
    static struct { uint64_t key; int *old; int size; } kept[ANSWERS];
    static unsigned next;
    struct buffer question = {0};
    int rank, size, *old = NULL;
    REAL(MPI_Comm_rank)(comm, &rank);
    REAL(MPI_Comm_size)(comm, &size);
    int good = ask_all(comm, pattern, cells, edges, &question);
    if (good && !rank) {
        uint64_t key = 29;
        for (size_t i = 0; i < question.used; i++)
            key = mix(key, (uint64_t)(unsigned char)question.data[i]);
        for (int i = 0; i < ANSWERS && !old; i++)
            if (kept[i].old && kept[i].key == key && kept[i].size == size) {
                old = malloc((size_t)size * sizeof *old);
                if (old)
                    memcpy(old, kept[i].old, (size_t)size * sizeof *old);
            }
        if (!old) {
            struct buffer answer = answer_to(ordering.command, &question);
            old = read_answer(&answer, cells, size);
            free(answer.data);
            int *copy = old ? malloc((size_t)size * sizeof *copy) : NULL;
            if (copy) {
                memcpy(copy, old, (size_t)size * sizeof *copy);
                free(kept[next % ANSWERS].old);
                kept[next % ANSWERS].key = key;
                kept[next % ANSWERS].size = size;
                kept[next++ % ANSWERS].old = copy;
            }
        }
    }
    free(question.data);
    return old;
}

/* The order of a file, on rank 0: line r is the slot of rank r, and slot s is process s, as the
 * launcher numbers them. NULL where it is none of ours. */
INSIDE int *order_of_file(int size)
{
    int *old = malloc((size_t)size * sizeof *old), *seen = calloc((size_t)size, sizeof *seen);
    FILE *file = fopen(ordering.file, "r");
    int good = old && seen && file, line = 0;
    for (long slot; good && fscanf(file, " %ld", &slot) == 1; line++) {
        good = line < size && slot >= 0 && slot < size && !seen[slot];
        if (good)
            seen[old[line] = (int)slot] = 1;
    }
    if (file)
        fclose(file);
    free(seen);
    if (good && line == size)
        return old;
    fprintf(stderr, "nidmap: %s: not an order of %d ranks; ranks stay as they are\n", ordering.file, size);
    free(old);
    return NULL;
}

/* The communicator of the same processes in order, MPI_COMM_NULL where they stay. Collective. */
INSIDE MPI_Comm in_order(MPI_Comm comm, const char *pattern, int cells, const struct buffer *edges,
                         struct place *place)
{
    int rank, size, *old = NULL, moved = 0, spoken = 0;
    MPI_Comm made = MPI_COMM_NULL;
    REAL(MPI_Comm_rank)(comm, &rank);
    REAL(MPI_Comm_size)(comm, &size);
    if (cells < 2 || cells > size)
        return made; /* nothing to order, or the real call says what is wrong */
    if (ordering.check || ordering.file) {
        int alike = MPI_CONGRUENT;
        if (!ordering.check)
            REAL(MPI_Comm_compare)(comm, MPI_COMM_WORLD, &alike);
        if (cells != size || (alike != MPI_IDENT && alike != MPI_CONGRUENT))
            return made; /* the file is for all processes */
        if (!rank && ordering.check) {
            old = malloc((size_t)size * sizeof *old);
            for (int i = 0; old && i < size; i++)
                old[i] = (i + 1) % size;
        } else if (!rank)
            old = order_of_file(size);
    } else
        old = order_by_asking(comm, pattern, cells, edges);
    struct place *places = old ? malloc((size_t)size * sizeof *places) : NULL;
    for (int i = 0; places && i < size; i++) {
        moved |= old[i] != i;
        places[old[i]].rank = i;
    }
    for (int i = 0; places && i < size; i++)
        places[i].speaks = places[i].rank != i && spoken++ < SPEAKERS;
    if (said_by_first(comm, places && moved)) {
        REAL(MPI_Scatter)(places, 2, MPI_INT, place, 2, MPI_INT, 0, comm);
        REAL(MPI_Comm_split)(comm, 0, place->rank, &made);
    }
    free(places);
    free(old);
    return made;
}

/* ------------------------------------------------------------------ ranks that are mixed */

INSIDE int is_among(int rank, const int *ranks, int many)
{
    for (int i = 0; i < many; i++)
        if (ranks[i] == rank)
            return 1;
    return 0;
}

/* A use of one communicator's ranks in another was seen, for the first time in this process. */
INSIDE void say_mixed(struct topology *t, const char *what, void *site)
{
    char where[600], line[900];
    t->found = 1;
    site_text(where, sizeof where, site);
    snprintf(line, sizeof line, "rank %d %s, at %s", ordering.rank, what, where);
    if (!ordering.check) {
        if (t->speaks)
            fprintf(stderr, "nidmap: %s: ranks of two communicators may be mixed, which gives wrong "
                            "results in any order but the launcher's\n", line);
        return;
    }
    FILE *file = fopen(ordering.check, "a");
    if (file) {
        fprintf(file, "mixed %s\n", line);
        fclose(file);
    }
    REAL(MPI_Abort)(MPI_COMM_WORLD, 1);
}

/* Whether a process that names this rank, too, takes neighbours of one of its ranks for those of
 * the other: two of them are, or all that there are, and it names none but neighbours. */
INSIDE int is_mixed(struct named *seen, int peer, const int *wrong, int many, const int *right, int many_right)
{
    int only = 0;
    seen->others |= !is_among(peer, wrong, many);
    if (seen->others || is_among(peer, right, many_right))
        return 0;
    for (int i = 0; i < many; i++)
        only += wrong[i] > 0 && !is_among(wrong[i], right, many_right) && !is_among(wrong[i], wrong, i);
    if (only == 1 || (seen->first && seen->first != peer))
        return 1;
    seen->first = peer;
    return 0;
}

INSIDE void watch(struct topology *t, MPI_Comm comm, int peer, void *site)
{
    if (t->found || t->old == t->rank)
        return;
    if (comm == t->comm && !t->asked && (peer >= 0 || peer == A_PLACE))
        say_mixed(t, "takes part in a reordered communicator and never asked for its rank in it", site);
    else if (peer <= 0 || !t->many || !t->many_old)
        return; /* rank 0 is everybody's root */
    else if (comm == t->comm &&
             is_mixed(&t->in_it, peer, t->near_old, t->many_old, t->near, t->many))
        say_mixed(t, "uses, in a reordered communicator, a neighbour of the rank it had before", site);
    else if (comm == t->parent &&
             is_mixed(&t->in_parent, peer, t->near, t->many, t->near_old, t->many_old))
        say_mixed(t, "uses a neighbour's rank of a reordered communicator in the one it was made of",
                  site);
}

/* The communicator that a call of the program means, with the rank it names, if any. */
INSIDE MPI_Comm program_comm(MPI_Comm comm, int peer, void *site, const void *from)
{
    if (inside || is_own_call(from))
        return comm;
    if (ordering.latest && peer != NOBODY)
        watch(ordering.latest, comm, peer, site);
    return ordered_world.replaced && comm == MPI_COMM_WORLD ? ordered_world.comm : comm;
}

#define ON(comm, peer)                                                                         \
    (__builtin_expect(ordering.active, 0)                                                      \
         ? program_comm(comm, peer, SITE, __builtin_return_address(0))                         \
         : (comm))

/* The program learns its rank in a communicator, or makes another one of it. */
INSIDE void note_asked(MPI_Comm comm)
{
    if (ordering.latest && comm == ordering.latest->comm && !inside)
        ordering.latest->asked = 1;
}

INSIDE int forget_topology(MPI_Comm comm, int key, void *value, void *extra)
{
    struct topology *t = value;
    (void)comm, (void)key, (void)extra;
    if (t == ordering.latest)
        ordering.latest = NULL;
    free(t->near);
    free(t->near_old);
    free(t);
    return MPI_SUCCESS;
}

/* Neighbours of any rank of a Cartesian communicator; NULL where there is no memory. */
INSIDE int *cart_neighbours(MPI_Comm comm, int rank, int *many)
{
    int n = 0;
    *many = 0;
    REAL(MPI_Cartdim_get)(comm, &n);
    int *dims = malloc(3 * (size_t)(n + 1) * sizeof *dims), *wraps = dims + n + 1;
    int *at = wraps + n + 1, *to = malloc(2 * (size_t)(n + 1) * sizeof *to);
    if (dims && to) {
        REAL(MPI_Cart_get)(comm, n, dims, wraps, at);
        REAL(MPI_Cart_coords)(comm, rank, n, at);
    }
    for (int d = 0; dims && to && d < 2 * n; d++) {
        int step = d % 2 ? 1 : -1, there = at[d / 2] + step;
        if (!wraps[d / 2] && (there < 0 || there >= dims[d / 2]))
            continue;
        at[d / 2] += step;
        REAL(MPI_Cart_rank)(comm, at, &to[(*many)++]);
        at[d / 2] -= step;
    }
    free(dims);
    return to;
}

/* Where a rank's edges go, among the triples that this process gave; NULL for none. */
INSIDE int *ends_of(const struct buffer *edges, int rank, int *many)
{
    const int *triple = (const int *)(const void *)edges->data;
    size_t given = edges->used / sizeof *triple;
    int *to = given ? malloc(given * sizeof *to) : NULL;
    *many = 0;
    for (size_t i = 0; to && i + 2 < given; i += 3)
        if (triple[i] == rank)
            to[(*many)++] = triple[i + 1];
    return to;
}

/* Look, from now on, at how the program uses the ranks of a communicator and of its parent. */
INSIDE void watch_topology(MPI_Comm made, MPI_Comm parent, struct place place, int cells,
                           const struct buffer *edges)
{
    int shape;
    if (made == MPI_COMM_NULL)
        return;
    struct topology *t = calloc(1, sizeof *t);
    if (!t)
        return;
    *t = (struct topology){.comm = made, .parent = parent, .rank = place.rank, .speaks = place.speaks};
    REAL(MPI_Comm_rank)(parent, &t->old);
    t->near = neighbours_out(made, &t->many);
    REAL(MPI_Topo_test)(made, &shape);
    if (shape != MPI_CART)
        t->near_old = ends_of(edges, t->old, &t->many_old);
    else if (t->old < cells)
        t->near_old = cart_neighbours(made, t->old, &t->many_old);
    REAL(MPI_Comm_set_attr)(made, ordering.key, t);
    ordering.latest = t;
    ordering.active = 1;
    FILE *file = ordering.check && t->rank == 0 ? fopen(ordering.check, "a") : NULL;
    if (file) {
        fprintf(file, "made %d\n", cells);
        fclose(file);
    }
}

/* An offset that is a multiple of the rank that a process had before. */
INSIDE void watch_offset(MPI_Offset offset, uint64_t bytes, void *site)
{
    struct topology *t = ordering.latest;
    if (t && !inside && !t->found && t->old != t->rank && t->old > 0 && bytes > 0 &&
        (uint64_t)offset == bytes * (uint64_t)t->old)
        say_mixed(t, "takes its place in a file by the rank that it had before it was reordered", site);
}

/* ------------------------------------------------------------------ process topologies */

INSIDE int cells_of(int many, const int dims[])
{
    long cells = 1;
    for (int d = 0; d < many && cells > 0 && cells < INT32_MAX; d++)
        cells *= dims[d];
    return cells > 0 && cells < INT32_MAX ? (int)cells : 0;
}

/* stencil:4x4x2, and whether it wraps around in all dimensions. */
INSIDE void name_grid(char *text, size_t room, int many, const int dims[], const int periods[])
{
    int wraps = many > 0;
    size_t at = (size_t)snprintf(text, room, "stencil:");
    for (int d = 0; d < many && at < room; d++) {
        at += (size_t)snprintf(text + at, room - at, "%s%d", d ? "x" : "", dims[d]);
        wraps = wraps && periods[d];
    }
    if (at < room)
        snprintf(text + at, room - at, "%s", wraps ? ",periodic" : "");
}

INSIDE void put_edge(struct buffer *b, int from, int to, int weight)
{
    int triple[3] = {from, to, weight > 0 ? weight : 1};
    put(b, triple, sizeof triple);
}

INSIDE int is_weighted(const int *weights)
{
    return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
}

INSIDE int may_reorder(MPI_Comm comm, int reorder)
{
    return reorder && !inside && comm != MPI_COMM_NULL &&
           (ordering.file || ordering.command || ordering.check);
}

/* Make a topology on the processes in order: `make` makes it of `base`. The program may go on
 * with the ranks that it had: that is looked at. */
#define IN_ORDER(name, made, pattern, cells, edges, make, plain)                               \
    do {                                                                                       \
        struct place place = {0, 0};                                                           \
        MPI_Comm base = in_order(comm, pattern, cells, edges, &place);                         \
        int code = base == MPI_COMM_NULL ? PASS(name, plain) : make;                           \
        if (base != MPI_COMM_NULL && code == MPI_SUCCESS)                                      \
            watch_topology(*made, comm, place, cells, &own);                                   \
        if (base != MPI_COMM_NULL)                                                             \
            REAL(MPI_Comm_free)(&base);                                                        \
        free(own.data);                                                                        \
        return code;                                                                           \
    } while (0)

/* The edges that each process gives are those of a rank, whichever process gets it: they go
 * there (MPI 4.1, 8.5.5: the lists of a rank are those given by the process with the same rank
 * in the old communicator). */
INSIDE int adjacent_in_order(MPI_Comm base, int rank, int in, const int from[], const int from_weights[],
                             int out, const int to[], const int to_weights[], MPI_Info info, MPI_Comm *made)
{
    int weighted = from_weights != MPI_UNWEIGHTED, ours[2] = {in, out}, theirs[2];
    REAL(MPI_Sendrecv)(ours, 2, MPI_INT, rank, 0, theirs, 2, MPI_INT, MPI_ANY_SOURCE, 0, base,
                       MPI_STATUS_IGNORE);
    int given = 2 * (in + out), got = 2 * (theirs[0] + theirs[1]), everywhere;
    int *lists = calloc((size_t)(given + got + 4), sizeof *lists), *theirs_lists = lists + given;
    int good = lists != NULL;
    REAL(MPI_Allreduce)(&good, &everywhere, 1, MPI_INT, MPI_MIN, base);
    if (!everywhere) {
        free(lists);
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < in; i++) {
        lists[i] = from[i];
        lists[in + out + i] = weighted ? from_weights[i] : 1;
    }
    for (int i = 0; i < out; i++) {
        lists[in + i] = to[i];
        lists[2 * in + out + i] = weighted ? to_weights[i] : 1;
    }
    REAL(MPI_Sendrecv)(lists, given, MPI_INT, rank, 1, theirs_lists, got, MPI_INT, MPI_ANY_SOURCE, 1,
                       base, MPI_STATUS_IGNORE);
    int *a = theirs_lists, *b = a + theirs[0], *aw = b + theirs[1], *bw = aw + theirs[0];
    int code = REAL(MPI_Dist_graph_create_adjacent)(
        base, theirs[0], a, weighted ? aw : MPI_UNWEIGHTED, theirs[1], b,
        weighted ? bw : MPI_UNWEIGHTED, info, 0, made);
    free(lists);
    return code;
}

INSIDE int rank_in(MPI_Comm comm)
{
    int rank = 0;
    REAL(MPI_Comm_rank)(comm, &rank);
    return rank;
}

INSIDE int processes_of(MPI_Comm comm)
{
    int size = 0;
    REAL(MPI_Comm_size)(comm, &size);
    return size;
}

#define TOPOLOGIES(cart, graph, dist, adjacent)                                                \
    CALL(cart)(MPI_Comm comm, int many, const int dims[], const int periods[], int reorder, \
                    MPI_Comm *made)                                                            \
    {                                                                                          \
        comm = ON(comm, NOBODY);                                                               \
        if (!may_reorder(comm, reorder))                                                       \
            return PASS(cart, (comm, many, dims, periods, reorder, made));                     \
        struct buffer own = {0};                                                               \
        char pattern[256];                                                                     \
        int cells = cells_of(many, dims);                                                      \
        name_grid(pattern, sizeof pattern, many, dims, periods);                               \
        IN_ORDER(cart, made, pattern, cells, NULL,                                             \
                 PASS(cart, (base, many, dims, periods, 0, made)),                             \
                 (comm, many, dims, periods, reorder, made));                                  \
    }                                                                                          \
    CALL(graph)(MPI_Comm comm, int many, const int index[], const int edges[], int reorder, \
                     MPI_Comm *made)                                                           \
    {                                                                                          \
        comm = ON(comm, NOBODY);                                                               \
        if (!may_reorder(comm, reorder))                                                       \
            return PASS(graph, (comm, many, index, edges, reorder, made));                     \
        struct buffer own = {0};                                                               \
        int rank = rank_in(comm);                                                              \
        int first = rank > 0 && rank < many ? index[rank - 1] : 0;                             \
        for (int i = first; rank < many && i < index[rank]; i++)                               \
            put_edge(&own, rank, edges[i], 1);                                                 \
        IN_ORDER(graph, made, "graph", many, &own,                                             \
                 PASS(graph, (base, many, index, edges, 0, made)),                             \
                 (comm, many, index, edges, reorder, made));                                   \
    }                                                                                          \
    CALL(dist)(MPI_Comm comm, int many, const int from[], const int degrees[], const int to[], \
                    const int weights[], MPI_Info info, int reorder, MPI_Comm *made)           \
    {                                                                                          \
        comm = ON(comm, NOBODY);                                                               \
        if (!may_reorder(comm, reorder))                                                       \
            return PASS(dist, (comm, many, from, degrees, to, weights, info, reorder, made));  \
        struct buffer own = {0};                                                               \
        for (int i = 0, at = 0; i < many; i++)                                                 \
            for (int k = 0; k < degrees[i]; k++, at++)                                         \
                put_edge(&own, from[i], to[at], is_weighted(weights) ? weights[at] : 1);       \
        IN_ORDER(dist, made, "graph", processes_of(comm), &own,                                \
                 PASS(dist, (base, many, from, degrees, to, weights, info, 0, made)),          \
                 (comm, many, from, degrees, to, weights, info, reorder, made));               \
    }                                                                                          \
    CALL(adjacent)(MPI_Comm comm, int in, const int from[], const int from_weights[], int out, \
                        const int to[], const int to_weights[], MPI_Info info, int reorder,    \
                        MPI_Comm *made)                                                        \
    {                                                                                          \
        comm = ON(comm, NOBODY);                                                               \
        if (!may_reorder(comm, reorder))                                                       \
            return PASS(adjacent, (comm, in, from, from_weights, out, to, to_weights, info, reorder, made)); \
        struct buffer own = {0};                                                               \
        int rank = rank_in(comm);                                                              \
        for (int i = 0; i < out; i++)                                                          \
            put_edge(&own, rank, to[i], is_weighted(to_weights) ? to_weights[i] : 1);          \
        IN_ORDER(adjacent, made, "graph", processes_of(comm), &own,                            \
                 adjacent_in_order(base, rank, in, from, from_weights, out, to, to_weights, info, made), \
                 (comm, in, from, from_weights, out, to, to_weights, info, reorder, made));    \
    }

/* ------------------------------------------------------------------ beginning */

INSIDE void begin_ordering(void)
{
    const char *world = getenv("NIDMAP_WORLD");
    MPI_Comm parent = MPI_COMM_NULL;
    ordering.file = getenv("NIDMAP_ORDER");
    ordering.command = getenv("NIDMAP_ASK");
    ordering.check = getenv("NIDMAP_CHECK_REORDER");
    ordering.file = ordering.file && *ordering.file ? ordering.file : NULL;
    ordering.command = ordering.command && *ordering.command ? ordering.command : NULL;
    ordering.check = ordering.check && *ordering.check ? ordering.check : NULL;
    if (!ordering.file && !ordering.command && !ordering.check)
        return;
    REAL(MPI_Comm_get_parent)(&parent);
    if (parent != MPI_COMM_NULL) { /* spawned programs keep their order */
        ordering.file = ordering.command = ordering.check = NULL;
        return;
    }
    find_library();
    REAL(MPI_Comm_rank)(MPI_COMM_WORLD, &ordering.rank);
    REAL(MPI_Comm_size)(MPI_COMM_WORLD, &ordering.size);
    REAL(MPI_Comm_create_keyval)(copy_no_comm, forget_topology, &ordering.key, NULL);
    if (world && *world) {
        struct place place;
        ordered_world.comm = in_order(MPI_COMM_WORLD, "world", ordering.size, NULL, &place);
        ordered_world.replaced = ordering.active = ordered_world.comm != MPI_COMM_NULL;
        ordering.file = ordering.command = NULL; /* it is the order already */
        if (ordered_world.replaced)
            REAL(MPI_Comm_set_name)(ordered_world.comm, "MPI_COMM_WORLD");
    }
}
