/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that carry a count. Included once for int and once for MPI_Count: COUNT is the
 * type of a count, PLACE of a displacement, NAME() the name of the call. */

/* ------------------------------------------------------------------ point to point */

#define SENDS(name)                                                                            \
    CALL(NAME(name))(const void *b, COUNT n, MPI_Datatype t, int to, int tag, MPI_Comm c) \
    {                                                                                          \
        c = ON(c, to);                                                                         \
        if (COUNTING) {                                                                          \
            send_to(c, to, tag, bytes_of((uint64_t)n, t), SITE);                                    \
            end_step();                                                                        \
            note_wait_for_last(to != MPI_PROC_NULL);                                           \
        }                                                                                      \
        return PASS(NAME(name), (b, n, t, to, tag, c));                                          \
    }
#define POSTS(name)                                                                            \
    CALL(NAME(name))(const void *b, COUNT n, MPI_Datatype t, int to, int tag, MPI_Comm c, \
                          MPI_Request *r)                                                      \
    {                                                                                          \
        c = ON(c, to);                                                                         \
        int counting = COUNTING;                                                               \
        if (counting)                                                                          \
            send_to(c, to, tag, bytes_of((uint64_t)n, t), SITE);                                    \
        int code = PASS(NAME(name), (b, n, t, to, tag, c, r));                                 \
        if (counting && code == MPI_SUCCESS)                                                   \
            keep_pending(ranks_of(c), *r, SEND_DONE, to, tag);                                    \
        return code;                                                                           \
    }
#define PREPARES(name)                                                                         \
    CALL(NAME(name))(const void *b, COUNT n, MPI_Datatype t, int to, int tag, MPI_Comm c, \
                          MPI_Request *r)                                                      \
    {                                                                                          \
        c = ON(c, to);                                                                         \
        int code = PASS(NAME(name), (b, n, t, to, tag, c, r));                                   \
        if (all.began && !inside && code == MPI_SUCCESS)                                                  \
            keep_message(*r, c, POINT_TO_POINT, to, tag, bytes_of((uint64_t)n, t), SITE);      \
        return code;                                                                           \
    }

SENDS(MPI_Send)
SENDS(MPI_Bsend)
SENDS(MPI_Ssend)
SENDS(MPI_Rsend)
POSTS(MPI_Isend)
POSTS(MPI_Ibsend)
POSTS(MPI_Issend)
POSTS(MPI_Irsend)
PREPARES(MPI_Send_init)
PREPARES(MPI_Bsend_init)
PREPARES(MPI_Ssend_init)
PREPARES(MPI_Rsend_init)

/* A receive that is waited for at once; one from any rank when it is known from which one. */
#define RECEIVES(name, on, params, args, tag, sends)                                           \
    CALL(NAME(name)) params                                                                    \
    {                                                                                          \
        c = on;                                                                                \
        int counting = COUNTING, sent = 0;                                                     \
        int any = counting && (from == MPI_ANY_SOURCE || (tag) == MPI_ANY_TAG);                \
        any = any && from != MPI_PROC_NULL;                                                    \
        MPI_Status own;                                                                        \
        s = any && is_ignored(s) ? &own : s;                                                   \
        if (counting) {                                                                        \
            sends;                                                                             \
            end_step();                                                                        \
        }                                                                                      \
        if (counting && !any) {                                                                \
            receive_from(c, from, tag);                                                        \
            note_wait_for_last(sent + (from != MPI_PROC_NULL));                                \
        }                                                                                      \
        int code = PASS(NAME(name), args);                                                     \
        if (code == MPI_SUCCESS && any) {                                                      \
            receive_from(c, s->MPI_SOURCE, s->MPI_TAG);                                        \
            note_wait_for_last(sent + 1);                                                      \
        }                                                                                      \
        return code;                                                                           \
    }
#define SENDS_FIRST(n, t)                                                                      \
    send_to(c, to, stag, bytes_of((uint64_t)(n), t), SITE);                                    \
    sent = to != MPI_PROC_NULL

RECEIVES(MPI_Recv, ON(c, from),
         (void *b, COUNT n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s),
         (b, n, t, from, tag, c, s), tag, (void)0)
RECEIVES(MPI_Sendrecv, ON(ON(c, from), to),
         (const void *sb, COUNT sn, MPI_Datatype st, int to, int stag, void *rb, COUNT rn, MPI_Datatype rt,
          int from, int rtag, MPI_Comm c, MPI_Status *s),
         (sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, s), rtag, SENDS_FIRST(sn, st))
RECEIVES(MPI_Sendrecv_replace, ON(ON(c, from), to),
         (void *b, COUNT n, MPI_Datatype t, int to, int stag, int from, int rtag, MPI_Comm c, MPI_Status *s),
         (b, n, t, to, stag, from, rtag, c, s), rtag, SENDS_FIRST(n, t))
#undef RECEIVES
#undef SENDS_FIRST

CALL(NAME(MPI_Irecv))(void *b, COUNT n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r)
{
    c = ON(c, from);
    int counting = COUNTING;
    if (counting)
        receive_from(c, from, tag);
    int code = PASS(NAME(MPI_Irecv), (b, n, t, from, tag, c, r));
    if (counting && code == MPI_SUCCESS)
        keep_pending(ranks_of(c), *r, RECEIVE_DONE, from, tag);
    return code;
}

CALL(NAME(MPI_Recv_init))(void *b, COUNT n, MPI_Datatype t, int from, int tag, MPI_Comm c,
                               MPI_Request *r)
{
    c = ON(c, from);
    int code = PASS(NAME(MPI_Recv_init), (b, n, t, from, tag, c, r));
    if (all.began && !inside && code == MPI_SUCCESS)
        keep_message(*r, c, RECEIVE, from, tag, 0, SITE);
    return code;
}

#ifdef NIDMAP_MPI_4_CALLS
CALL(NAME(MPI_Isendrecv))(const void *sb, COUNT sn, MPI_Datatype st, int to, int stag, void *rb,
                               COUNT rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, MPI_Request *r)
{
    c = ON(ON(c, from), to);
    if (COUNTING) {
        send_to(c, to, stag, bytes_of((uint64_t)sn, st), SITE);
        receive_from(c, from, rtag);
    }
    return PASS(NAME(MPI_Isendrecv), (sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, r));
}

CALL(NAME(MPI_Isendrecv_replace))(void *b, COUNT n, MPI_Datatype t, int to, int stag, int from,
                                       int rtag, MPI_Comm c, MPI_Request *r)
{
    c = ON(ON(c, from), to);
    if (COUNTING) {
        send_to(c, to, stag, bytes_of((uint64_t)n, t), SITE);
        receive_from(c, from, rtag);
    }
    return PASS(NAME(MPI_Isendrecv_replace), (b, n, t, to, stag, from, rtag, c, r));
}
#endif

#define OPEN(...) __VA_ARGS__

/* ------------------------------------------------------------------ one-sided */

CALL(NAME(MPI_Put))(const void *b, COUNT n, MPI_Datatype t, int to, MPI_Aint at, COUNT tn,
                         MPI_Datatype tt, MPI_Win win)
{
    if (COUNTING)
        put_to(win, to, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Put), (b, n, t, to, at, tn, tt, win));
}

CALL(NAME(MPI_Rput))(const void *b, COUNT n, MPI_Datatype t, int to, MPI_Aint at, COUNT tn,
                          MPI_Datatype tt, MPI_Win win, MPI_Request *r)
{
    if (COUNTING)
        put_to(win, to, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Rput), (b, n, t, to, at, tn, tt, win, r));
}

CALL(NAME(MPI_Get))(void *b, COUNT n, MPI_Datatype t, int from, MPI_Aint at, COUNT tn,
                         MPI_Datatype tt, MPI_Win win)
{
    if (COUNTING)
        get_from(win, from, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Get), (b, n, t, from, at, tn, tt, win));
}

CALL(NAME(MPI_Rget))(void *b, COUNT n, MPI_Datatype t, int from, MPI_Aint at, COUNT tn,
                          MPI_Datatype tt, MPI_Win win, MPI_Request *r)
{
    if (COUNTING)
        get_from(win, from, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Rget), (b, n, t, from, at, tn, tt, win, r));
}

CALL(NAME(MPI_Accumulate))(const void *b, COUNT n, MPI_Datatype t, int to, MPI_Aint at, COUNT tn,
                                MPI_Datatype tt, MPI_Op op, MPI_Win win)
{
    if (COUNTING)
        put_to(win, to, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Accumulate), (b, n, t, to, at, tn, tt, op, win));
}

CALL(NAME(MPI_Raccumulate))(const void *b, COUNT n, MPI_Datatype t, int to, MPI_Aint at, COUNT tn,
                                 MPI_Datatype tt, MPI_Op op, MPI_Win win, MPI_Request *r)
{
    if (COUNTING)
        put_to(win, to, bytes_of((uint64_t)n, t), SITE);
    return PASS(NAME(MPI_Raccumulate), (b, n, t, to, at, tn, tt, op, win, r));
}

CALL(NAME(MPI_Get_accumulate))(const void *b, COUNT n, MPI_Datatype t, void *rb, COUNT rn,
                                    MPI_Datatype rt, int to, MPI_Aint at, COUNT tn, MPI_Datatype tt,
                                    MPI_Op op, MPI_Win win)
{
    if (COUNTING) {
        put_to(win, to, bytes_of((uint64_t)n, t), SITE);
        get_from(win, to, bytes_of((uint64_t)rn, rt), SITE);
    }
    return PASS(NAME(MPI_Get_accumulate), (b, n, t, rb, rn, rt, to, at, tn, tt, op, win));
}

#ifndef LARGE
/* One element there, one back. */
#define SWAPS(name, parts, args)                                                               \
    CALL(NAME(name))(OPEN parts)                                                          \
    {                                                                                          \
        if (COUNTING) {                                                                        \
            put_to(win, to, bytes_of(1, t), SITE);                                             \
            get_from(win, to, bytes_of(1, t), SITE);                                           \
        }                                                                                      \
        return PASS(NAME(name), (OPEN args));                                                  \
    }
SWAPS(MPI_Fetch_and_op,
      (const void *b, void *rb, MPI_Datatype t, int to, MPI_Aint at, MPI_Op op, MPI_Win win),
      (b, rb, t, to, at, op, win))
SWAPS(MPI_Compare_and_swap,
      (const void *b, const void *with, void *rb, MPI_Datatype t, int to, MPI_Aint at, MPI_Win win),
      (b, with, rb, t, to, at, win))
#undef SWAPS
#endif

/* ------------------------------------------------------------------ collectives */

/* A collective, blocking and nonblocking, and persistent where the library has it:
 * `use` is what it says of ranks, `parts` its parameters and `args` their names, both in brackets; `counting` counts it
 * where it is called, `kept` says what one start of the persistent form counts. */
#ifdef NIDMAP_MPI_4_CALLS
#define PERSISTENT(name, parts, args, kept)                                                    \
    CALL(NAME(name##_init))(OPEN parts, MPI_Info info, MPI_Request *request)              \
    {                                                                                          \
        c = ON(c, NOBODY);                                                                     \
        int code = PASS(NAME(name##_init), (OPEN args, info, request));                          \
        if (all.began && !inside && code == MPI_SUCCESS)                                                  \
            kept;                                                                              \
        return code;                                                                           \
    }
#else
#define PERSISTENT(name, parts, args, kept)
#endif
#define COLLECTIVE(name, iname, use, parts, args, counting)                                    \
    CALL(NAME(name))(OPEN parts)                                                          \
    {                                                                                          \
        c = ON(c, use);                                                                        \
        if (COUNTING)                                                                            \
            counting;                                                                          \
        return PASS(NAME(name), (OPEN args));                                                    \
    }                                                                                          \
    CALL(NAME(iname))(OPEN parts, MPI_Request *request)                                        \
    {                                                                                          \
        c = ON(c, use);                                                                        \
        int counted = COUNTING;                                                                \
        if (counted) {                                                                         \
            begin_deferring();                                                                 \
            counting;                                                                          \
        }                                                                                      \
        int code = PASS(NAME(iname), (OPEN args, request));                                    \
        if (counted)                                                                           \
            keep_deferred(code, *request);                                                     \
        return code;                                                                           \
    }
#define EVEN(name, iname, parts, args, kind, root, bytes)                                      \
    COLLECTIVE(name, iname, (root) >= 0 ? A_PLACE : NOBODY, parts, args, even(c, kind, root, bytes, SITE))                     \
    PERSISTENT(name, parts, args, keep_request(*request, c, kind, root, bytes, SITE))

#define GIVEN(n, t, in_place_n, in_place_t)                                                    \
    (sb == MPI_IN_PLACE ? bytes_of((uint64_t)(in_place_n), in_place_t) : bytes_of((uint64_t)(n), t))

EVEN(MPI_Bcast, MPI_Ibcast, (void *b, COUNT n, MPI_Datatype t, int root, MPI_Comm c),
     (b, n, t, root, c), BCAST, root, bytes_of((uint64_t)n, t))
EVEN(MPI_Gather, MPI_Igather,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, int root, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, root, c), GATHER, root, GIVEN(sn, st, rn, rt))
EVEN(MPI_Scatter, MPI_Iscatter,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, int root, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, root, c), SCATTER, root,
     is_root(c, root) ? bytes_of((uint64_t)sn, st) : is_within(c) ? bytes_of((uint64_t)rn, rt) : 0)
EVEN(MPI_Allgather, MPI_Iallgather,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, c), ALLGATHER, -1, GIVEN(sn, st, rn, rt))
EVEN(MPI_Alltoall, MPI_Ialltoall,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, c), ALLTOALL, -1, GIVEN(sn, st, rn, rt))
EVEN(MPI_Reduce, MPI_Ireduce,
     (const void *sb, void *rb, COUNT n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c),
     (sb, rb, n, t, op, root, c), REDUCE, root, bytes_of((uint64_t)n, t))
EVEN(MPI_Allreduce, MPI_Iallreduce,
     (const void *sb, void *rb, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     (sb, rb, n, t, op, c), ALLREDUCE, -1, bytes_of((uint64_t)n, t))
EVEN(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
     (const void *sb, void *rb, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     (sb, rb, n, t, op, c), REDUCE_SCATTER, -1, bytes_of((uint64_t)n, t))
EVEN(MPI_Scan, MPI_Iscan, (const void *sb, void *rb, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     (sb, rb, n, t, op, c), SCAN, -1, bytes_of((uint64_t)n, t))
EVEN(MPI_Exscan, MPI_Iexscan, (const void *sb, void *rb, COUNT n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     (sb, rb, n, t, op, c), EXSCAN, -1, bytes_of((uint64_t)n, t))

/* Each rank gives its own number of bytes: still one number a rank. */
EVEN(MPI_Gatherv, MPI_Igatherv,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, const COUNT rn[], const PLACE rd[],
      MPI_Datatype rt, int root, MPI_Comm c),
     (sb, sn, st, rb, rn, rd, rt, root, c), GATHER, root, GIVEN(sn, st, 0, MPI_DATATYPE_NULL))
EVEN(MPI_Allgatherv, MPI_Iallgatherv,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, const COUNT rn[], const PLACE rd[],
      MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rd, rt, c), ALLGATHER, -1,
     sb == MPI_IN_PLACE ? bytes_of(own_count(c, (const void *)rn, sizeof rn[0]), rt) : bytes_of((uint64_t)sn, st))

/* Each rank gives each other its own number of bytes. */
#define EACH(name, iname, use, parts, args, kind, many, counts, type_at)                       \
    COLLECTIVE(name, iname, use, parts, args, UNEVEN(c, kind, many, counts, type_at, SITE))    \
    PERSISTENT(name, parts, args,                                                              \
               KEEP_SENDS(kind, GIVE_RANKS(sends, all_ranks, many, counts, type_at)))
#define OWN(ours, theirs) (sb == MPI_IN_PLACE ? (theirs) : (ours))

EACH(MPI_Scatterv, MPI_Iscatterv, A_PLACE,
     (const void *sb, const COUNT sn[], const PLACE sd[], MPI_Datatype st, void *rb, COUNT rn,
      MPI_Datatype rt, int root, MPI_Comm c),
     (sb, sn, sd, st, rb, rn, rt, root, c), SCATTER, is_root(c, root) ? size_for(c) : 0, sn, st)
EACH(MPI_Alltoallv, MPI_Ialltoallv, NOBODY,
     (const void *sb, const COUNT sn[], const PLACE sd[], MPI_Datatype st, void *rb,
      const COUNT rn[], const PLACE rd[], MPI_Datatype rt, MPI_Comm c),
     (sb, sn, sd, st, rb, rn, rd, rt, c), ALLTOALL, size_for(c), OWN(sn, rn), OWN(st, rt))
EACH(MPI_Alltoallw, MPI_Ialltoallw, NOBODY,
     (const void *sb, const COUNT sn[], const PLACE sd[], const MPI_Datatype st[], void *rb,
      const COUNT rn[], const PLACE rd[], const MPI_Datatype rt[], MPI_Comm c),
     (sb, sn, sd, st, rb, rn, rd, rt, c), ALLTOALL, size_for(c), OWN(sn, rn), OWN(st, rt)[i])
EACH(MPI_Reduce_scatter, MPI_Ireduce_scatter, NOBODY,
     (const void *sb, void *rb, const COUNT n[], MPI_Datatype t, MPI_Op op, MPI_Comm c),
     (sb, rb, n, t, op, c), REDUCE_SCATTER, size_for(c), n, t)

/* Neighbours of a process topology. */
#define NEAR(name, iname, parts, args, bytes_at)                                               \
    COLLECTIVE(name, iname, A_PLACE, parts, args, NEIGHBOURS(c, SITE, bytes_at))               \
    PERSISTENT(name, parts, args,                                                              \
               KEEP_SENDS(NEIGHBOR, GIVE_NEIGHBOURS(sends, all_ranks, c, bytes_at)))

NEAR(MPI_Neighbor_allgather, MPI_Ineighbor_allgather,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, c), bytes_of((uint64_t)sn, st))
NEAR(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, const COUNT rn[], const PLACE rd[],
      MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rd, rt, c), bytes_of((uint64_t)sn, st))
NEAR(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall,
     (const void *sb, COUNT sn, MPI_Datatype st, void *rb, COUNT rn, MPI_Datatype rt, MPI_Comm c),
     (sb, sn, st, rb, rn, rt, c), bytes_of((uint64_t)sn, st))
NEAR(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv,
     (const void *sb, const COUNT sn[], const PLACE sd[], MPI_Datatype st, void *rb,
      const COUNT rn[], const PLACE rd[], MPI_Datatype rt, MPI_Comm c),
     (sb, sn, sd, st, rb, rn, rd, rt, c), bytes_of((uint64_t)sn[i], st))
NEAR(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw,
     (const void *sb, const COUNT sn[], const MPI_Aint sd[], const MPI_Datatype st[], void *rb,
      const COUNT rn[], const MPI_Aint rd[], const MPI_Datatype rt[], MPI_Comm c),
     (sb, sn, sd, st, rb, rn, rd, rt, c), bytes_of((uint64_t)sn[i], st[i]))

#ifndef LARGE
/* ------------------------------------------------------------------ calls without a count */

EVEN(MPI_Barrier, MPI_Ibarrier, (MPI_Comm c), (c), BARRIER, -1, 0)

CALL(NAME(MPI_Start))(MPI_Request *request)
{
    if (COUNTING && request)
        start_request(*request);
    return PASS(NAME(MPI_Start), (request));
}

CALL(NAME(MPI_Startall))(int many, MPI_Request requests[])
{
    if (COUNTING)
        for (int i = 0; i < many; i++)
            start_request(requests[i]);
    return PASS(NAME(MPI_Startall), (many, requests));
}

CALL(NAME(MPI_Request_free))(MPI_Request *request)
{
    if (COUNTING && request) {
        drop_request(*request);
        end_pending(*request, 1, MPI_STATUS_IGNORE);
    }
    return PASS(NAME(MPI_Request_free), (request));
}

CALL(NAME(MPI_Cancel))(MPI_Request *request)
{
    if (COUNTING && request)
        cancel_pending(*request);
    return PASS(NAME(MPI_Cancel), (request));
}

#ifdef NIDMAP_MPI_4_CALLS
/* A partitioned send counts whole, when it is started. */
CALL(NAME(MPI_Psend_init))(const void *b, int parts, MPI_Count n, MPI_Datatype t, int to, int tag,
                                MPI_Comm c, MPI_Info info, MPI_Request *r)
{
    c = ON(c, to);
    int code = PASS(NAME(MPI_Psend_init), (b, parts, n, t, to, tag, c, info, r));
    if (all.began && !inside && code == MPI_SUCCESS)
        keep_message(*r, c, POINT_TO_POINT, to, tag, bytes_of((uint64_t)parts * (uint64_t)n, t), SITE);
    return code;
}

CALL(NAME(MPI_Precv_init))(void *b, int parts, MPI_Count n, MPI_Datatype t, int from, int tag,
                                MPI_Comm c, MPI_Info info, MPI_Request *r)
{
    c = ON(c, from);
    int code = PASS(NAME(MPI_Precv_init), (b, parts, n, t, from, tag, c, info, r));
    if (all.began && !inside && code == MPI_SUCCESS)
        keep_message(*r, c, RECEIVE, from, tag, 0, SITE);
    return code;
}
#endif

/* Waiting ends a step; testing does where it finds something done. Requests that are done are no
 * longer what they were, so that a few are kept from before the call. Statuses that the program
 * ignores are asked for where one may say whom a receive from any rank got its message from. */
#define REQUESTS_BEFORE(many, statuses)                                                        \
    int kept = (many) < 0 || (many) > MOST_WAITED_FOR ? 0 : (many);                            \
    int asked = kept && asks_statuses() && is_ignored(s);                                         \
    MPI_Request before[kept + 1];                                                              \
    MPI_Status own[asked ? (statuses) : 1];                                                    \
    memcpy(before, r, (size_t)kept * sizeof before[0]);                                        \
    s = asked ? own : s
#define DONE(i, status) ((i) >= 0 && (i) < kept ? end_pending(before[i], 0, status) : (void)0)
#define STATUS(k) (is_ignored(s) ? s : s + (k))
#define WAITS(name, params, args)                                                              \
    CALL(NAME(name)) params                                                                    \
    {                                                                                          \
        if (COUNTING)                                                                          \
            end_step();                                                                        \
        return PASS(NAME(name), args);                                                         \
    }
#define FINDS(name, params, args, many, statuses, found, ends)                                 \
    CALL(NAME(name)) params                                                                    \
    {                                                                                          \
        REQUESTS_BEFORE(many, statuses);                                                       \
        int counting = COUNTING;                                                               \
        int code = PASS(NAME(name), args);                                                     \
        if (code == MPI_SUCCESS && (found) && counting) {                                      \
            end_step();                                                                        \
            ends;                                                                              \
        }                                                                                      \
        return code;                                                                           \
    }
#define EACH_DONE(count, index)                                                                \
    for (int k = 0; k < (count); k++)                                                          \
    DONE(index, STATUS(k))

FINDS(MPI_Wait, (MPI_Request *r, MPI_Status *s), (r, s), 1, 1, 1, DONE(0, s))
FINDS(MPI_Waitall, (int n, MPI_Request r[], MPI_Status s[]), (n, r, s), n, n, 1, EACH_DONE(n, k))
FINDS(MPI_Waitany, (int n, MPI_Request r[], int *i, MPI_Status *s), (n, r, i, s), n, 1,
      *i != MPI_UNDEFINED, DONE(*i, s))
FINDS(MPI_Waitsome, (int n, MPI_Request r[], int *many, int i[], MPI_Status s[]), (n, r, many, i, s), n,
      n, *many > 0, EACH_DONE(*many, i[k]))
FINDS(MPI_Test, (MPI_Request *r, int *flag, MPI_Status *s), (r, flag, s), 1, 1, *flag, DONE(0, s))
FINDS(MPI_Testall, (int n, MPI_Request r[], int *flag, MPI_Status s[]), (n, r, flag, s), n, n, *flag,
      EACH_DONE(n, k))
FINDS(MPI_Testany, (int n, MPI_Request r[], int *i, int *flag, MPI_Status *s), (n, r, i, flag, s), n, 1,
      *flag && *i != MPI_UNDEFINED, DONE(*i, s))
FINDS(MPI_Testsome, (int n, MPI_Request r[], int *many, int i[], MPI_Status s[]),
      (n, r, many, i, s), n, n, *many > 0, EACH_DONE(*many, i[k]))

/* A message that is matched here is received by MPI_Mrecv, which says neither rank nor communicator. */
#define MATCHES(name, params, args, found)                                                     \
    CALL(NAME(name)) params                                                                    \
    {                                                                                          \
        c = ON(c, from);                                                                       \
        int counting = COUNTING;                                                               \
        MPI_Status own;                                                                        \
        s = counting && is_ignored(s) ? &own : s;                                              \
        int code = PASS(NAME(name), args);                                                     \
        if (code == MPI_SUCCESS && (found) && counting && from != MPI_PROC_NULL) {             \
            end_step();                                                                        \
            receive_from(c, s->MPI_SOURCE, s->MPI_TAG);                                        \
            note_wait_for_last(1);                                                             \
        }                                                                                      \
        return code;                                                                           \
    }
MATCHES(MPI_Mprobe, (int from, int tag, MPI_Comm c, MPI_Message *m, MPI_Status *s), (from, tag, c, m, s), 1)
MATCHES(MPI_Improbe, (int from, int tag, MPI_Comm c, int *flag, MPI_Message *m, MPI_Status *s),
        (from, tag, c, flag, m, s), *flag)
WAITS(MPI_Probe, (int from, int tag, MPI_Comm c, MPI_Status *s), (from, tag, ON(c, from), s))
WAITS(MPI_Win_fence, (int assert, MPI_Win win), (assert, win))
WAITS(MPI_Win_complete, (MPI_Win win), (win))
WAITS(MPI_Win_unlock, (int rank, MPI_Win win), (rank, win))
WAITS(MPI_Win_unlock_all, (MPI_Win win), (win))
WAITS(MPI_Win_flush, (int rank, MPI_Win win), (rank, win))
WAITS(MPI_Win_flush_all, (MPI_Win win), (win))

#undef REQUESTS_BEFORE
#undef DONE
#undef STATUS
#undef WAITS
#undef FINDS
#undef MATCHES
#undef EACH_DONE
#endif

#undef SENDS
#undef POSTS
#undef PREPARES
#undef PERSISTENT
#undef OPEN
#undef COLLECTIVE
#undef EVEN
#undef GIVEN
#undef EACH
#undef OWN
#undef NEAR
