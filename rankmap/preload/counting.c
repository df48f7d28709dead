/* SPDX-License-Identifier: Apache-2.0 */
/* What a process counts: its steps, phases and communicators, and the requests that it keeps. */
#include "real_calls.c"

#define SITE (fortran_site ? fortran_site : __builtin_return_address(0))
#define COUNTING (all.on && !inside && !is_own_call(__builtin_return_address(0)))

/* ------------------------------------------------------------------ what is kept */

enum kind {
    POINT_TO_POINT, ONE_SIDED, BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE,
    ALLREDUCE, REDUCE_SCATTER, SCAN, EXSCAN, NEIGHBOR
};

enum {
    MOST_SITES = 12,      /* call sites that tell one step from another; more are not looked at */
    MOST_PHASES = 4096,   /* phases a rank; what comes after them is one phase */
    WINDOW_BINS = 64,     /* parts of the run that are kept apart where a window is asked for */
    MOST_EVENTS = 4096,   /* events that a rank tells apart; with one more its order ends */
    MOST_PENDING = 16384, /* requests that are looked after; with one more the order ends */
    MOST_WAITED_FOR = 4096, /* requests of one call that are looked at */
    MOST_IN_ORDER = 32768,    /* events of a rank that are kept in their order, at most, … */
    ALL_IN_ORDER = 1 << 18,   /* … and of all ranks together */
};

/* A communicator as the recorder sees it. */
struct comm {
    int size;          /* ranks that can be sent to: the remote ones of an intercommunicator */
    int rank;          /* our own in it */
    int inter;
    int *world;        /* their ranks in MPI_COMM_WORLD; NULL where they are the same */
    uint64_t id;       /* the same on every rank of the communicator */
    struct comm *next;
};

struct cell {
    int64_t to;        /* receiver; -1 - sender where the bytes come to us; EMPTY.
                        * Of an even collective its root in the communicator, -1 for none. */
    uint64_t bytes, messages;
};
#define EMPTY INT64_MIN

struct phase {
    uint64_t key;
    enum kind kind;
    const struct comm *comm;    /* of a collective, else NULL */
    int uneven;                 /* of a collective: its messages are in the cells, else its roots */
    int size_class;             /* of an even one in which all give as much, 1 + that of its bytes; else 0 */
    int sites;
    void *site[MOST_SITES];
    uint64_t calls;             /* steps, or calls of a collective */
    uint64_t first;             /* its place in the order of first use */
    struct cell *cells;         /* open addressing; `room` is a power of two */
    size_t used, room;
};

struct table {
    struct phase **phases;      /* in order of first use */
    size_t used, room;
    int32_t *slots;             /* hash of keys to 1 + place */
    size_t hash_room;
};

struct message {
    int64_t to;
    uint64_t bytes;
    void *site;
    enum kind kind;
};

/* What a rank does in order. It waits for what it has just posted, so many, or sees that the oldest
 * send to a rank, or receive from it, is done; that the oldest receive from any rank has got its
 * message from this one; or that the oldest receive from it is cancelled. */
enum what {
    SEND_POSTED, RECEIVE_POSTED, WAITS_FOR_LAST, SEND_DONE, RECEIVE_DONE, COLLECTIVE, ANY_DONE, CANCELLED
};

/* Events that are alike but for some bytes; the sums are of all of them. */
struct event {
    int64_t what, peer;         /* receiver, sender (-1: any), root, or how many are waited for */
    int64_t comm, phase;        /* of a collective: its communicator, its phase's `first` */
    uint64_t bytes, times;
};

/* The beginning of what a thread did, as numbers of its events. */
struct order {
    struct event *events;
    uint16_t *numbers;
    int32_t *tags;              /* of each: what a message and its receive have in common; ANY */
    int32_t *slots;             /* hash of events to 1 + number */
    size_t used, length, room;
    int ended;                  /* the rest is not kept */
};

/* A request that was not seen done, and what is noted when it is. */
struct pending {
    MPI_Request request;
    struct event done;
    const struct comm *comm;
    int32_t tag;
    int cancelled;              /* that was asked for */
};

/* All that one thread has seen: no lock stands on the way of a message. */
struct recorder {
    struct order order;
    struct pending *pending;
    size_t pending_used, pending_room, pending_next;
    size_t pending_open;        /* among them receives whose status says what they got */
    int deferring;              /* a collective is noted when its request is done */
    struct event deferred;
    struct table bin[WINDOW_BINS];
    struct message *step;
    size_t waiting, room;
    const struct comm *last_comm;
    MPI_Comm last_handle;
    unsigned last_generation;
    double began, left;         /* seconds when its first call was counted, when it last left MPI, … */
    double in_mpi;              /* … and how long it was in calls of MPI in between */
    struct recorder *next;
};

static struct {
    int on;                     /* counting now */
    int began;                  /* MPI_Init has been seen */
    int failed;                 /* memory ran out */
    int bins;                   /* 1, or WINDOW_BINS where a window is asked for */
    double bin_seconds;
    struct timespec start;
    pid_t pid;
    int rank, size;
    MPI_Group world;
    int comm_key, win_key;
    uintptr_t library, library_size; /* where the code of the MPI library stands */
    unsigned generation;        /* counts communicators that were freed */
    char path[4096];
    struct comm self_world;
    struct comm *comms;
    struct recorder *recorders;
    pthread_mutex_t lock, bins_lock;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .bins_lock = PTHREAD_MUTEX_INITIALIZER, .bins = 1};

#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD struct recorder *mine;
OF_THREAD int inside;               /* another tool passes on, by PMPI_, a call that is counted */
OF_THREAD void *fortran_site;       /* where a Fortran program called its binding */

/* Fortran's bindings call PMPI_ names, so these are counted too. The MPI library itself may call
 * them, in its input and output for one: that is its own business. */
INSIDE int is_own_call(const void *from)
{
    return (uintptr_t)from - all.library < all.library_size;
}

INSIDE void give_up(const char *why)
{
    all.on = 0;
    if (!all.failed)
        fprintf(stderr, "nidmap record: rank %d: %s; nothing more is counted here\n", all.rank, why);
    all.failed = 1;
}

INSIDE double seconds_since_start(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - all.start.tv_sec) + 1e-9 * (double)(now.tv_nsec - all.start.tv_nsec);
}

INSIDE struct recorder *recorder_of_thread(void)
{
    struct recorder *r = mine;
    if (__builtin_expect(r != NULL, 1))
        return r;
    r = calloc(1, sizeof *r);
    if (!r) {
        give_up("no memory");
        return NULL;
    }
    r->last_generation = all.generation - 1;
    r->began = r->left = seconds_since_start();
    pthread_mutex_lock(&all.lock);
    r->next = all.recorders;
    all.recorders = r;
    pthread_mutex_unlock(&all.lock);
    mine = r;
    return r;
}

INSIDE uint64_t mix(uint64_t h, uint64_t value)
{
    h ^= value + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ (h >> 33);
}

/* ------------------------------------------------------------------ phases and their cells */

INSIDE int grow_cells(struct phase *p)
{
    size_t room = p->room ? 2 * p->room : 8;
    struct cell *cells = malloc(room * sizeof *cells);
    if (!cells)
        return 0;
    for (size_t i = 0; i < room; i++)
        cells[i] = (struct cell){EMPTY, 0, 0};
    for (size_t i = 0; i < p->room; i++)
        if (p->cells[i].to != EMPTY) {
            size_t at = mix(0, (uint64_t)p->cells[i].to) & (room - 1);
            while (cells[at].to != EMPTY)
                at = (at + 1) & (room - 1);
            cells[at] = p->cells[i];
        }
    free(p->cells);
    p->cells = cells;
    p->room = room;
    return 1;
}

INSIDE void add_message(struct phase *p, int64_t to, uint64_t bytes, uint64_t messages)
{
    if (2 * p->used >= p->room && !grow_cells(p)) {
        give_up("no memory");
        return;
    }
    size_t at = mix(0, (uint64_t)to) & (p->room - 1);
    while (p->cells[at].to != EMPTY && p->cells[at].to != to)
        at = (at + 1) & (p->room - 1);
    struct cell *c = &p->cells[at];
    if (c->to == EMPTY) {
        c->to = to;
        p->used++;
    }
    c->bytes += bytes;
    c->messages += messages;
}

INSIDE int index_phases(struct table *t)
{
    size_t room = t->hash_room ? 2 * t->hash_room : 64;
    int32_t *slots = calloc(room, sizeof *slots);
    if (!slots)
        return 0;
    for (size_t i = 0; i < t->used; i++) {
        size_t at = t->phases[i]->key & (room - 1);
        while (slots[at])
            at = (at + 1) & (room - 1);
        slots[at] = (int32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->hash_room = room;
    return 1;
}

/* The phase of this key; a new one is a copy of `wanted`. NULL where there is no memory. */
INSIDE struct phase *phase_like(struct table *t, const struct phase *wanted)
{
    if (2 * t->used >= t->hash_room && !index_phases(t))
        return NULL;
    size_t at = wanted->key & (t->hash_room - 1);
    for (; t->slots[at]; at = (at + 1) & (t->hash_room - 1))
        if (t->phases[t->slots[at] - 1]->key == wanted->key)
            return t->phases[t->slots[at] - 1];
    if (t->used >= MOST_PHASES && wanted->sites > 0) {
        struct phase rest = *wanted; /* of this kind, wherever it was called */
        rest.sites = rest.size_class = 0;
        rest.key = mix(mix(mix(17, wanted->kind), wanted->comm ? wanted->comm->id : 0),
                       (uint64_t)wanted->uneven);
        return phase_like(t, &rest);
    }
    if (t->used == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        struct phase **phases = realloc(t->phases, room * sizeof *phases);
        if (!phases)
            return NULL;
        t->phases = phases;
        t->room = room;
    }
    struct phase *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    *made = *wanted;
    made->first = t->used;
    t->phases[t->used] = made;
    t->slots[at] = (int32_t)++t->used;
    return made;
}

INSIDE void give_all(struct phase *to, const struct phase *from)
{
    for (size_t k = 0; k < from->room; k++)
        if (from->cells[k].to != EMPTY)
            add_message(to, from->cells[k].to, from->cells[k].bytes, from->cells[k].messages);
}

INSIDE void merge_table(struct table *into, struct table *from)
{
    for (size_t i = 0; i < from->used; i++) {
        struct phase *p = from->phases[i];
        struct phase wanted = *p;
        wanted.calls = 0;
        wanted.cells = NULL;
        wanted.used = wanted.room = 0;
        struct phase *q = phase_like(into, &wanted);
        if (!q) {
            give_up("no memory");
            return;
        }
        q->calls += p->calls;
        give_all(q, p);
        free(p->cells);
        free(p);
    }
    free(from->phases);
    free(from->slots);
    memset(from, 0, sizeof *from);
}

/* The table of this moment, to be left by `leave_table`. Where all bins are full, two and two
 * become one, of all threads: so with bins, and only then, threads count one after the other. */
INSIDE struct table *enter_table(struct recorder *r)
{
    if (all.bins == 1)
        return &r->bin[0];
    pthread_mutex_lock(&all.bins_lock);
    double now = seconds_since_start();
    while (now >= all.bin_seconds * WINDOW_BINS) {
        all.bin_seconds *= 2;
        for (struct recorder *each = all.recorders; each; each = each->next)
            for (int i = 0; i < WINDOW_BINS / 2; i++) {
                if (i) {
                    each->bin[i] = each->bin[2 * i];
                    memset(&each->bin[2 * i], 0, sizeof each->bin[0]);
                }
                merge_table(&each->bin[i], &each->bin[2 * i + 1]);
            }
    }
    int at = (int)(now / all.bin_seconds);
    return &r->bin[at < 0 ? 0 : at];
}

INSIDE void leave_table(void)
{
    if (all.bins > 1)
        pthread_mutex_unlock(&all.bins_lock);
}

/* ------------------------------------------------------------------ communicators */

INSIDE int copy_no_comm(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0; /* a duplicate is described anew */
    return MPI_SUCCESS;
}

INSIDE int copy_no_win(MPI_Win win, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)win, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

INSIDE int forget_comm(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    __atomic_add_fetch(&all.generation, 1, __ATOMIC_RELEASE);
    return MPI_SUCCESS;
}

INSIDE int forget_win(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

/* Ranks of a group in MPI_COMM_WORLD; NULL where there is no memory. */
INSIDE int *ranks_in_world(MPI_Group group, int size)
{
    int *here = malloc(2 * (size_t)(size > 0 ? size : 1) * sizeof *here);
    if (!here)
        return NULL;
    int *there = here + size;
    for (int i = 0; i < size; i++)
        here[i] = i;
    REAL(MPI_Group_translate_ranks)(group, size, here, all.world, there);
    memmove(here, there, (size_t)size * sizeof *here);
    return here;
}

INSIDE struct comm *describe_group(MPI_Group group, int rank, int inter)
{
    struct comm *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    REAL(MPI_Group_size)(group, &c->size);
    c->rank = rank;
    c->inter = inter;
    c->world = ranks_in_world(group, c->size);
    if (!c->world) {
        free(c);
        return NULL;
    }
    int same = c->size == all.size;
    c->id = mix(3, (uint64_t)c->size);
    for (int i = 0; i < c->size; i++) {
        same = same && c->world[i] == i;
        c->id = mix(c->id, (uint64_t)c->world[i]);
    }
    for (struct comm *known = all.comms; known; known = known->next)
        if (known->id == c->id && known->rank == rank && known->inter == inter) {
            free(c->world); /* a duplicate: programs may make many */
            free(c);
            return known;
        }
    if (same) {
        free(c->world);
        c->world = NULL;
    }
    c->next = all.comms;
    all.comms = c;
    return c;
}

/* What stands for MPI_COMM_WORLD where its ranks are in order (order.c). */
static struct {
    int replaced;
    MPI_Comm comm;
} ordered_world;

INSIDE MPI_Comm program_world(void)
{
    return ordered_world.replaced ? ordered_world.comm : MPI_COMM_WORLD;
}

INSIDE const struct comm *describe_comm(MPI_Comm handle)
{
    if (handle == program_world())
        return &all.self_world;
    void *kept = NULL;
    int flag = 0, inter = 0, rank = 0;
    pthread_mutex_lock(&all.lock);
    REAL(MPI_Comm_get_attr)(handle, all.comm_key, &kept, &flag);
    if (!flag) {
        MPI_Group group;
        REAL(MPI_Comm_test_inter)(handle, &inter);
        REAL(MPI_Comm_rank)(handle, &rank);
        if (inter)
            REAL(MPI_Comm_remote_group)(handle, &group);
        else
            REAL(MPI_Comm_group)(handle, &group);
        kept = describe_group(group, rank, inter);
        REAL(MPI_Group_free)(&group);
        if (kept)
            REAL(MPI_Comm_set_attr)(handle, all.comm_key, kept);
        else
            give_up("no memory");
    }
    pthread_mutex_unlock(&all.lock);
    return kept;
}

INSIDE const struct comm *comm_of(struct recorder *r, MPI_Comm handle)
{
    if (handle == MPI_COMM_NULL)
        return NULL; /* the real call says what is wrong */
    unsigned generation = __atomic_load_n(&all.generation, __ATOMIC_ACQUIRE);
    if (__builtin_expect(r->last_handle != handle || r->last_generation != generation, 0)) {
        r->last_comm = describe_comm(handle);
        r->last_handle = handle;
        r->last_generation = generation;
    }
    return r->last_comm;
}

/* The same for this thread; NULL where there is none, or no memory. */
INSIDE const struct comm *ranks_of(MPI_Comm comm)
{
    struct recorder *r = recorder_of_thread();
    return r ? comm_of(r, comm) : NULL;
}

INSIDE int64_t world_rank(const struct comm *c, int rank)
{
    return c->world ? c->world[rank] : rank;
}

INSIDE uint64_t bytes_of(uint64_t count, MPI_Datatype type)
{
    if (type == MPI_DATATYPE_NULL)
        return 0;
    MPI_Count size = 0;
    REAL(MPI_Type_size_x)(type, &size);
    return size > 0 ? count * (uint64_t)size : 0;
}

/* ------------------------------------------------------------------ the order of what is done */

INSIDE int begin_order(struct order *o)
{
    size_t room = ALL_IN_ORDER / (size_t)(all.size > 0 ? all.size : 1);
    o->room = room < MOST_IN_ORDER ? room : MOST_IN_ORDER;
    o->events = malloc(MOST_EVENTS * sizeof *o->events);
    o->slots = calloc(2 * MOST_EVENTS, sizeof *o->slots);
    o->numbers = malloc(o->room * sizeof *o->numbers);
    o->tags = malloc(o->room * sizeof *o->tags);
    return o->events && o->slots && o->numbers && o->tags;
}

/* Half powers of two: sizes that differ by less are alike. */
INSIDE uint64_t size_class(uint64_t bytes)
{
    int top = bytes > 1 ? 63 - __builtin_clzll(bytes) : 0;
    return bytes < 4 ? bytes : 2 * (uint64_t)top + ((bytes >> (top - 1)) & 1);
}

#define ANY (-1)

/* What a message and its receive have in common: the tag, and the communicator unless it joins two
 * groups, whose sides know it by different ranks. */
INSIDE int32_t envelope(const struct comm *c, int tag)
{
    return tag == MPI_ANY_TAG ? ANY : (int32_t)(mix(c->inter ? 7 : c->id, (uint64_t)tag) & INT32_MAX);
}

INSIDE void note_tagged(struct recorder *r, struct event e, int32_t tag)
{
    struct order *o = &r->order;
    if (o->ended || all.bins > 1)
        return;
    if (!o->room && !begin_order(o))
        o->room = 0;
    uint64_t key = mix(mix(mix(mix(mix(5, (uint64_t)e.what), (uint64_t)e.peer), (uint64_t)e.comm),
                           (uint64_t)e.phase), size_class(e.bytes));
    size_t at = key & (2 * MOST_EVENTS - 1);
    for (; o->room && o->slots[at]; at = (at + 1) & (2 * MOST_EVENTS - 1)) {
        const struct event *k = &o->events[o->slots[at] - 1];
        if (k->what == e.what && k->peer == e.peer && k->comm == e.comm && k->phase == e.phase &&
            size_class(k->bytes / k->times) == size_class(e.bytes))
            break;
    }
    int more = o->room && !o->slots[at];
    if (o->length >= o->room || (more && o->used == MOST_EVENTS)) {
        o->ended = 1;
        return;
    }
    if (more) {
        o->events[o->used] = (struct event){e.what, e.peer, e.comm, e.phase, 0, 0};
        o->slots[at] = (int32_t)++o->used;
    }
    struct event *found = &o->events[o->slots[at] - 1];
    found->bytes += e.bytes;
    found->times++;
    o->tags[o->length] = tag;
    o->numbers[o->length++] = (uint16_t)(o->slots[at] - 1);
}

INSIDE void note(struct recorder *r, struct event e)
{
    note_tagged(r, e, 0);
}

INSIDE void note_wait_for_last(int many)
{
    if (mine && many)
        note(mine, (struct event){.what = WAITS_FOR_LAST, .peer = many});
}

/* Whether the status says what a receive got: of one from any rank, or of any tag. */
INSIDE int is_open(const struct pending *p)
{
    return p->done.what == RECEIVE_DONE && (p->done.peer < 0 || p->tag == ANY);
}

/* A request is on its way. */
INSIDE void add_pending(MPI_Request request, struct event done, const struct comm *c, int32_t tag)
{
    struct recorder *r = mine;
    if (!r || r->order.ended || all.bins > 1)
        return;
    if (r->pending_used == r->pending_room) {
        size_t room = r->pending_room ? 2 * r->pending_room : 64;
        struct pending *more = room > MOST_PENDING ? NULL : realloc(r->pending, room * sizeof *more);
        if (!more) {
            r->order.ended = 1;
            return;
        }
        r->pending = more;
        r->pending_room = room;
    }
    r->pending[r->pending_used] = (struct pending){request, done, c, tag, 0};
    r->pending_open += is_open(&r->pending[r->pending_used++]);
}

/* The same of a send to a rank of a communicator, or a receive from one. */
INSIDE void keep_pending(const struct comm *c, MPI_Request request, enum what done, int peer, int tag)
{
    if (c && peer != MPI_PROC_NULL && peer < c->size)
        add_pending(request, (struct event){.what = done, .peer = peer < 0 ? -1 : world_rank(c, peer)}, c,
                    envelope(c, tag));
}

/* Between these two a collective is counted that others may end long after this rank has begun it,
 * and that it does other things beside: it is noted where the rank sees it done. */
INSIDE void begin_deferring(void)
{
    struct recorder *r = recorder_of_thread();
    if (r) {
        r->deferring = 1;
        r->deferred.what = SEND_POSTED;
    }
}

INSIDE void keep_deferred(int code, MPI_Request request)
{
    struct recorder *r = mine;
    if (!r)
        return;
    r->deferring = 0;
    if (code == MPI_SUCCESS && r->deferred.what == COLLECTIVE)
        add_pending(request, r->deferred, NULL, 0);
}

/* Whether the status of some request has to be looked at: of a receive from any rank, or one that
 * the program wants to cancel. */
INSIDE int asks_statuses(void)
{
    return mine && mine->pending_open > 0;
}

INSIDE int is_ignored(const MPI_Status *status)
{
    return status == MPI_STATUS_IGNORE || status == MPI_STATUSES_IGNORE;
}

INSIDE int is_cancelled(const MPI_Status *status)
{
    int cancelled = 0;
    if (!is_ignored(status))
        REAL(MPI_Test_cancelled)(status, &cancelled);
    return cancelled;
}

/* The place of a request among those on their way, -1 for none: most end as they began. */
INSIDE ptrdiff_t pending_place(MPI_Request request)
{
    size_t used = mine ? mine->pending_used : 0;
    for (size_t i = 0; i < used; i++) {
        size_t at = (mine->pending_next + i) % used;
        if (mine->pending[at].request == request)
            return (ptrdiff_t)at;
    }
    return -1;
}

INSIDE void cancel_pending(MPI_Request request)
{
    ptrdiff_t at = pending_place(request);
    if (at < 0 || mine->pending[at].done.what != RECEIVE_DONE || mine->pending[at].cancelled)
        return;
    mine->pending_open += !is_open(&mine->pending[at]);
    mine->pending[at].cancelled = 1;
}

/* A request is done, with this status, or `forgotten`. */
INSIDE void end_pending(MPI_Request request, int forgotten, const MPI_Status *status)
{
    struct recorder *r = mine;
    ptrdiff_t at = pending_place(request);
    if (at < 0)
        return;
    struct pending found = r->pending[at];
    struct event e = found.done;
    int32_t tag = found.tag;
    int any = is_open(&found);
    memmove(r->pending + at, r->pending + at + 1, (r->pending_used - (size_t)at - 1) * sizeof found);
    r->pending_used--;
    r->pending_next = (size_t)at;
    r->pending_open -= any || found.cancelled;
    if (found.cancelled && (forgotten || is_cancelled(status)))
        e.what = CANCELLED;
    else if (any && !is_ignored(status) && status->MPI_SOURCE >= 0 && status->MPI_SOURCE < found.comm->size)
        e = (struct event){.what = ANY_DONE, .peer = world_rank(found.comm, status->MPI_SOURCE)};
    if (e.what == ANY_DONE)
        tag = envelope(found.comm, status->MPI_TAG);
    if (!forgotten || e.what == CANCELLED)
        note_tagged(r, e, tag);
}

/* A receive is posted: from a rank of a communicator, or from any. */
INSIDE void receive_in(const struct comm *c, int from, int tag)
{
    struct recorder *r = recorder_of_thread();
    if (!r || !c || from == MPI_PROC_NULL || from >= c->size)
        return;
    note_tagged(r, (struct event){.what = RECEIVE_POSTED, .peer = from < 0 ? -1 : world_rank(c, from)},
                envelope(c, tag));
}

INSIDE void note_collective(struct recorder *r, const struct phase *p, int root, uint64_t bytes)
{
    struct event e = {COLLECTIVE, root, (int64_t)p->comm->id, (int64_t)p->first, bytes, 0};
    if (r->deferring)
        r->deferred = e;
    else
        note(r, e);
}

INSIDE void receive_from(MPI_Comm comm, int from, int tag)
{
    receive_in(ranks_of(comm), from, tag);
}

/* ------------------------------------------------------------------ counting */

INSIDE void post(enum kind kind, int64_t to, uint64_t bytes, int32_t tag, void *site)
{
    struct recorder *r = recorder_of_thread();
    if (!r)
        return;
    if (r->waiting == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct message *step = realloc(r->step, room * sizeof *step);
        if (!step) {
            give_up("no memory");
            return;
        }
        r->step = step;
        r->room = room;
    }
    r->step[r->waiting++] = (struct message){to, bytes, site, kind};
    if (to >= 0 && kind == POINT_TO_POINT)
        note_tagged(r, (struct event){.what = SEND_POSTED, .peer = to, .bytes = bytes}, tag);
}

INSIDE void count_step(struct recorder *r)
{
    struct phase wanted = {.key = mix(11, r->step[0].kind), .kind = r->step[0].kind};
    for (size_t i = 0; i < r->waiting; i++) {
        void *site = r->step[i].site;
        int known = wanted.sites == MOST_SITES;
        for (int k = wanted.sites - 1; k >= 0 && !known; k--)
            known = wanted.site[k] == site;
        if (!known) {
            wanted.site[wanted.sites++] = site;
            wanted.key = mix(wanted.key, (uint64_t)(uintptr_t)site);
        }
    }
    struct phase *p = phase_like(enter_table(r), &wanted);
    if (p)
        p->calls++;
    else
        give_up("no memory");
    for (size_t i = 0; p && i < r->waiting; i++)
        if (r->step[i].to != EMPTY)
            add_message(p, r->step[i].to, r->step[i].bytes, 1);
    leave_table();
    r->waiting = 0;
}

/* The rank waits: what it has posted until now was in flight together. */
INSIDE void end_step(void)
{
    struct recorder *r = mine;
    if (r && r->waiting)
        count_step(r);
}

INSIDE void send_in(const struct comm *c, int to, int tag, uint64_t bytes, void *site)
{
    if (c && to >= 0 && to < c->size)
        post(POINT_TO_POINT, world_rank(c, to), bytes, envelope(c, tag), site);
    else if (to == MPI_PROC_NULL)
        post(POINT_TO_POINT, EMPTY, 0, 0, site); /* a rank at the rim takes part in the same phase */
}

INSIDE void send_to(MPI_Comm comm, int to, int tag, uint64_t bytes, void *site)
{
    send_in(ranks_of(comm), to, tag, bytes, site);
}

/* The phase of a collective, one call more; NULL where it is not counted, else `leave_table`. */
INSIDE struct phase *sized_collective(const struct comm *c, enum kind kind, int uneven, int size_class,
                                      void *site)
{
    end_step();
    struct recorder *r = recorder_of_thread();
    if (!c || !r)
        return NULL;
    struct phase wanted = {.kind = kind, .uneven = uneven, .size_class = size_class, .comm = c,
                           .sites = 1, .site = {site}};
    wanted.key = mix(mix(mix(mix(mix(13, kind), c->id), (uint64_t)uneven), (uint64_t)size_class),
                     (uint64_t)(uintptr_t)site);
    struct phase *p = phase_like(enter_table(r), &wanted);
    if (p) {
        p->calls++;
        if (uneven)
            note_collective(r, p, -1, 0);
    } else {
        leave_table();
        give_up("no memory");
    }
    return p;
}

INSIDE struct phase *collective(const struct comm *c, enum kind kind, int uneven, void *site)
{
    return sized_collective(c, kind, uneven, 0, site);
}

/* A collective in which every rank gives `bytes` (to the root, each other rank, …): one cell a
 * root, in which all ranks have the same, so that merging them needs no table of ranks by roots. */
INSIDE void even_in(const struct comm *c, enum kind kind, int root, uint64_t bytes, void *site)
{
    int by_rank = kind == GATHER || kind == ALLGATHER || (c && c->inter); /* each may give another */
    int class = by_rank ? 0 : 1 + (int)size_class(bytes);
    struct phase *p = sized_collective(c, kind, c && c->inter, class, site);
    if (!p)
        return;
    if (!c->inter)
        note_collective(mine, p, root, bytes);
    /* Between groups the root's side names MPI_ROOT or MPI_PROC_NULL, the other side the root. */
    int down = kind == BCAST || kind == SCATTER, up = kind == GATHER || kind == REDUCE;
    if (!c->inter)
        add_message(p, root, bytes, 1);
    else if (up && root >= 0 && root < c->size)
        add_message(p, world_rank(c, root), bytes, 1);
    else if (down ? root == MPI_ROOT : !up)
        for (int i = 0; i < c->size; i++)
            add_message(p, world_rank(c, i), bytes, 1);
    leave_table();
}

INSIDE void even(MPI_Comm comm, enum kind kind, int root, uint64_t bytes, void *site)
{
    even_in(ranks_of(comm), kind, root, bytes, site);
}

/* What a collective sends rank i, as the program says: counts[i] of the type `type_at`. */
#define GIVE_RANKS(phase, ranks, many, counts, type_at)                                        \
    for (int i = 0, known = many; i < known; i++)                                              \
        if ((counts)[i] > 0)                                                                   \
            add_message(phase, world_rank(ranks, i), bytes_of((uint64_t)(counts)[i], type_at), 1)
#define UNEVEN(handle, kind, many, counts, type_at, site)                                      \
    do {                                                                                       \
        const struct comm *all_ranks = ranks_of(handle);                                       \
        struct phase *uneven = collective(all_ranks, kind, 1, site);                           \
        if (uneven) {                                                                          \
            GIVE_RANKS(uneven, all_ranks, many, counts, type_at);                              \
            leave_table();                                                                     \
        }                                                                                      \
    } while (0)

INSIDE int size_for(MPI_Comm comm)
{
    const struct comm *c = ranks_of(comm);
    return c ? c->size : 0;
}

INSIDE int is_root(MPI_Comm comm, int root)
{
    const struct comm *c = ranks_of(comm);
    return c && (c->inter ? root == MPI_ROOT : c->rank == root);
}

INSIDE int is_within(MPI_Comm comm)
{
    const struct comm *c = ranks_of(comm);
    return c && !c->inter;
}

/* Our own entry of counts by rank, whatever their type. */
INSIDE uint64_t own_count(MPI_Comm comm, const void *counts, size_t size)
{
    const struct comm *c = ranks_of(comm);
    if (!c || c->inter)
        return 0;
    return size == sizeof(int) ? (uint64_t)((const int *)counts)[c->rank]
                               : (uint64_t)((const MPI_Count *)counts)[c->rank];
}

/* The ranks behind a window, looked up once. */
INSIDE const struct comm *window_ranks(MPI_Win win)
{
    void *kept = NULL;
    int flag = 0;
    pthread_mutex_lock(&all.lock);
    REAL(MPI_Win_get_attr)(win, all.win_key, &kept, &flag);
    if (!flag) {
        MPI_Group group;
        REAL(MPI_Win_get_group)(win, &group);
        kept = describe_group(group, -1, 0);
        REAL(MPI_Group_free)(&group);
        if (kept)
            REAL(MPI_Win_set_attr)(win, all.win_key, kept);
    }
    pthread_mutex_unlock(&all.lock);
    return kept;
}

INSIDE void put_to(MPI_Win win, int to, uint64_t bytes, void *site)
{
    const struct comm *c = window_ranks(win);
    if (c && to >= 0 && to < c->size)
        post(ONE_SIDED, world_rank(c, to), bytes, 0, site);
}

/* The bytes come to us: their sender is the target. */
INSIDE void get_from(MPI_Win win, int from, uint64_t bytes, void *site)
{
    const struct comm *c = window_ranks(win);
    if (c && from >= 0 && from < c->size)
        post(ONE_SIDED, -1 - world_rank(c, from), bytes, 0, site);
}

/* Neighbours that a rank of a Cartesian, graph or distributed graph communicator sends to. */
INSIDE int *neighbours_out(MPI_Comm comm, int *many)
{
    int shape = MPI_UNDEFINED, n = 0;
    int *to = NULL;
    *many = 0;
    REAL(MPI_Topo_test)(comm, &shape);
    if (shape == MPI_CART) {
        REAL(MPI_Cartdim_get)(comm, &n);
        to = malloc(2 * (size_t)(n + 1) * sizeof *to);
        for (int d = 0; to && d < n; d++)
            REAL(MPI_Cart_shift)(comm, d, 1, &to[2 * d], &to[2 * d + 1]);
        *many = to ? 2 * n : 0;
    } else if (shape == MPI_GRAPH) {
        int rank;
        REAL(MPI_Comm_rank)(comm, &rank);
        REAL(MPI_Graph_neighbors_count)(comm, rank, &n);
        to = malloc((size_t)(n + 1) * sizeof *to);
        if (to)
            REAL(MPI_Graph_neighbors)(comm, rank, n, to);
        *many = to ? n : 0;
    } else if (shape == MPI_DIST_GRAPH) {
        int in = 0, weighted = 0;
        REAL(MPI_Dist_graph_neighbors_count)(comm, &in, &n, &weighted);
        int *space = malloc(2 * (size_t)(in + n + 2) * sizeof *space);
        to = malloc((size_t)(n + 1) * sizeof *to);
        if (space && to)
            REAL(MPI_Dist_graph_neighbors)(comm, in, space, space + in + 1, n, to, space + 2 * in + 2);
        *many = space && to ? n : 0;
        free(space);
    }
    return to;
}

/* What a collective sends neighbour i: `bytes_at`. */
#define GIVE_NEIGHBOURS(phase, ranks, handle, bytes_at)                                        \
    do {                                                                                       \
        int many, *to = neighbours_out(handle, &many);                                         \
        for (int i = 0; i < many; i++)                                                         \
            if (to[i] >= 0)                                                                    \
                add_message(phase, world_rank(ranks, to[i]), bytes_at, 1);                     \
        free(to);                                                                              \
    } while (0)
#define NEIGHBOURS(handle, site, bytes_at)                                                     \
    do {                                                                                       \
        const struct comm *all_ranks = ranks_of(handle);                                       \
        struct phase *near = collective(all_ranks, NEIGHBOR, 1, site);                         \
        if (near) {                                                                            \
            GIVE_NEIGHBOURS(near, all_ranks, handle, bytes_at);                                \
            leave_table();                                                                     \
        }                                                                                      \
    } while (0)

/* ------------------------------------------------------------------ persistent requests */

/* What a persistent request stands for each time it is started. */
struct kept_request {
    MPI_Request request;
    const struct comm *comm;     /* the program may have freed its handle */
    int to;                      /* receiver or sender in comm; of a collective its root */
    int kind;
    int tag;
    uint64_t bytes;
    void *site;
    struct phase *sends;         /* of a collective that gives each rank its own: to whom what */
    struct kept_request *next;
};

enum { REQUEST_LISTS = 1024, RECEIVE = -1 /* a kind of request */ };
static struct kept_request *kept_requests[REQUEST_LISTS];
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

INSIDE struct kept_request **requests_like(MPI_Request request)
{
    return &kept_requests[mix(0, (uint64_t)(uintptr_t)request) & (REQUEST_LISTS - 1)];
}

INSIDE struct kept_request *keep_request(MPI_Request request, MPI_Comm comm, int kind, int to,
                                         uint64_t bytes, void *site)
{
    const struct comm *c = ranks_of(comm);
    struct kept_request *k = c ? malloc(sizeof *k) : NULL;
    if (!k)
        return NULL;
    *k = (struct kept_request){request, c, to, kind, 0, bytes, site, NULL, NULL};
    pthread_mutex_lock(&requests_lock);
    struct kept_request **list = requests_like(request);
    k->next = *list;
    *list = k;
    pthread_mutex_unlock(&requests_lock);
    return k;
}

/* The same of a message, or a receive, with a tag. */
INSIDE void keep_message(MPI_Request request, MPI_Comm comm, int kind, int to, int tag, uint64_t bytes,
                         void *site)
{
    struct kept_request *k = keep_request(request, comm, kind, to, bytes, site);
    if (k)
        k->tag = tag;
}

/* Keep what `give` says that a start sends: it fills the phase `sends` of the ranks `all_ranks`. */
#define KEEP_SENDS(kind, give)                                                                 \
    do {                                                                                       \
        const struct comm *all_ranks = ranks_of(c);                                            \
        struct kept_request *kept = keep_request(*request, c, kind, -1, 0, SITE);              \
        struct phase *sends = kept ? calloc(1, sizeof *sends) : NULL;                          \
        if (sends) {                                                                           \
            give;                                                                              \
            kept->sends = sends;                                                               \
        }                                                                                      \
    } while (0)

INSIDE void start_request(MPI_Request request)
{
    struct kept_request found = {.site = NULL};
    pthread_mutex_lock(&requests_lock);
    for (struct kept_request *k = *requests_like(request); k; k = k->next)
        if (k->request == request) {
            found = *k;
            break;
        }
    pthread_mutex_unlock(&requests_lock);
    if (!found.site)
        return;
    if (found.kind == RECEIVE) {
        receive_in(found.comm, found.to, found.tag);
        keep_pending(found.comm, request, RECEIVE_DONE, found.to, found.tag);
    } else if (found.kind == POINT_TO_POINT) {
        send_in(found.comm, found.to, found.tag, found.bytes, found.site);
        keep_pending(found.comm, request, SEND_DONE, found.to, found.tag);
    } else {
        begin_deferring();
        struct phase *p = found.sends ? collective(found.comm, found.kind, 1, found.site) : NULL;
        if (p) {
            give_all(p, found.sends);
            leave_table();
        } else if (!found.sends)
            even_in(found.comm, found.kind, found.to, found.bytes, found.site);
        keep_deferred(MPI_SUCCESS, request);
    }
}

INSIDE void drop_request(MPI_Request request)
{
    pthread_mutex_lock(&requests_lock);
    for (struct kept_request **k = requests_like(request); *k; k = &(*k)->next)
        if ((*k)->request == request) {
            struct kept_request *gone = *k;
            *k = gone->next;
            if (gone->sends)
                free(gone->sends->cells);
            free(gone->sends);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&requests_lock);
}

/* ------------------------------------------------------------------ the calls */

/* Enter a call of MPI and return when; what it calls in turn is part of it, which 0 says. */
INSIDE double enter_mpi(void)
{
    return inside++ || !all.on ? 0 : seconds_since_start();
}

/* Leave it: a thread's time counts from its first call that was counted. */
INSIDE void leave_mpi(double entered)
{
    inside--;
    if (!entered || !mine)
        return;
    mine->left = seconds_since_start();
    mine->in_mpi += mine->left - entered;
}

/* The real call, with its arguments in brackets; what it calls in turn is not counted again. */
#define PASS(name, args)                                                                       \
    (__extension__({                                                                           \
        double entered = enter_mpi();                                                          \
        int passed = REAL(name) args;                                                          \
        leave_mpi(entered);                                                                    \
        passed;                                                                                \
    }))

/* ------------------------------------------------------------------ text and places */

/* A growing piece of text or bytes; `data` is NULL where there was no memory. */
struct buffer {
    char *data;
    size_t used, room;
    int failed;
};

INSIDE void put(struct buffer *b, const void *what, size_t many)
{
    if (b->failed)
        return;
    if (b->used + many > b->room) {
        size_t room = 2 * b->room > b->used + many ? 2 * b->room : b->used + many + 4096;
        char *data = realloc(b->data, room);
        if (!data) {
            b->failed = 1;
            return;
        }
        b->data = data;
        b->room = room;
    }
    memcpy(b->data + b->used, what, many);
    b->used += many;
}

/* A call site by its library and its distance from the library's start, the same on all ranks. */
INSIDE void site_text(char *text, size_t room, void *site)
{
    Dl_info found;
    if (!dladdr(site, &found) || !found.dli_fname)
        snprintf(text, room, "%p", site);
    else {
        const char *base = strrchr(found.dli_fname, '/');
        snprintf(text, room, "%s+0x%lx%s%s", base ? base + 1 : found.dli_fname,
                 (unsigned long)((char *)site - (char *)found.dli_fbase),
                 found.dli_sname ? " " : "", found.dli_sname ? found.dli_sname : "");
    }
}

/* Where the code of the MPI library stands. */
#ifdef NIDMAP_STATIC
INSIDE void find_library(void) {}
#else
INSIDE int is_in_library(struct dl_phdr_info *one, size_t size, void *where)
{
    (void)size;
    for (int i = 0; i < one->dlpi_phnum; i++) {
        uintptr_t start = one->dlpi_addr + one->dlpi_phdr[i].p_vaddr;
        if (one->dlpi_phdr[i].p_type == PT_LOAD && one->dlpi_phdr[i].p_flags & PF_X &&
            (uintptr_t)where - start < one->dlpi_phdr[i].p_memsz) {
            all.library = start;
            all.library_size = one->dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

INSIDE void find_library(void)
{
    dl_iterate_phdr(is_in_library, find_from(RTLD_NEXT, "PMPI_Comm_rank"));
}
#endif
