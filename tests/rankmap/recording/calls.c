/* SPDX-License-Identifier: Apache-2.0 */
/* Every call that sends, once or twice, on four ranks; rank 0 prints what it has to be counted as. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if MPI_VERSION >= 4
#define LARGE_COUNTS
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define MPI_4_CALLS
#endif

enum { N = 4 };
static int rank, right, left;
static char out[1 << 16], in[1 << 16];
static MPI_Request request, coming;
static MPI_Comm world;

/* What the calls before it, since the last one, are: a kind of phase, with these sums over all ranks. */
static void expect(const char *name, const char *kind, long bytes, long messages)
{
    if (rank == 0)
        printf("%s %s %ld %ld\n", name, kind, bytes, messages);
}

static void done(MPI_Request *r)
{
    MPI_Wait(r, MPI_STATUS_IGNORE);
}

/* A receive that is there before the call, which may need it. */
static void post(void)
{
    MPI_Irecv(in, sizeof in, MPI_CHAR, left, 1, world, &coming);
    MPI_Barrier(world);
}

#define SEND(name, size)                                                                       \
    post();                                                                                    \
    MPI_##name(out, size, MPI_CHAR, right, 1, world);                                          \
    done(&coming);                                                                             \
    expect(#name, "point-to-point", N * size, N)
#define ISEND(name, size)                                                                      \
    post();                                                                                    \
    MPI_##name(out, size, MPI_CHAR, right, 1, world, &request);                                \
    done(&request), done(&coming);                                                             \
    expect(#name, "point-to-point", N * size, N)
#define SEND_INIT(name, size)                                                                  \
    MPI_##name(out, size, MPI_CHAR, right, 1, world, &request);                                \
    for (int i = 0; i < 3; i++) {                                                              \
        post();                                                                                \
        MPI_Start(&request);                                                                   \
        done(&request), done(&coming);                                                         \
    }                                                                                          \
    MPI_Request_free(&request);                                                                \
    expect(#name, "point-to-point", 3 * N * size, 3 * N)

static void point_to_point(void)
{
    MPI_Datatype column, padded;
    void *buffer = malloc(1 << 20);
    int room;
    MPI_Buffer_attach(buffer, 1 << 20);
    SEND(Send, 11);
    SEND(Bsend, 12);
    SEND(Ssend, 13);
    SEND(Rsend, 14);
    ISEND(Isend, 15);
    ISEND(Ibsend, 16);
    ISEND(Issend, 17);
    ISEND(Irsend, 18);
    SEND_INIT(Send_init, 19);
    SEND_INIT(Bsend_init, 20);
    SEND_INIT(Ssend_init, 21);
    SEND_INIT(Rsend_init, 22);
    MPI_Sendrecv(out, 23, MPI_CHAR, right, 0, in, 23, MPI_CHAR, left, 0, world, MPI_STATUS_IGNORE);
    expect("Sendrecv", "point-to-point", N * 23, N);
    MPI_Sendrecv_replace(out, 24, MPI_CHAR, right, 0, left, 0, world, MPI_STATUS_IGNORE);
    expect("Sendrecv_replace", "point-to-point", N * 24, N);
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);

    MPI_Type_vector(3, 2, 5, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, 1000, &padded);
    MPI_Type_commit(&padded);
    MPI_Sendrecv(out, 2, padded, right, 0, in, 200, MPI_CHAR, left, 0, world, MPI_STATUS_IGNORE);
    expect("a derived type", "point-to-point", N * 2 * 3 * 2 * 8, N);
    MPI_Type_free(&column);
    MPI_Type_free(&padded);
#ifdef MPI_4_CALLS
    MPI_Isendrecv(out, 25, MPI_CHAR, right, 0, in, 25, MPI_CHAR, left, 0, world, &request);
    done(&request);
    expect("Isendrecv", "point-to-point", N * 25, N);
    MPI_Isendrecv_replace(out, 26, MPI_CHAR, right, 0, left, 0, world, &request);
    done(&request);
    expect("Isendrecv_replace", "point-to-point", N * 26, N);
    MPI_Psend_init(out, 3, 9, MPI_CHAR, right, 7, world, MPI_INFO_NULL, &request);
    MPI_Precv_init(in, 3, 9, MPI_CHAR, left, 7, world, MPI_INFO_NULL, &coming);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&coming);
        MPI_Start(&request);
        for (int part = 0; part < 3; part++)
            MPI_Pready(part, request);
        done(&request), done(&coming);
    }
    MPI_Request_free(&request);
    MPI_Request_free(&coming);
    expect("Psend_init", "point-to-point", 2 * N * 27, 2 * N);
#endif
#ifdef LARGE_COUNTS
    SEND(Send_c, 28);
    ISEND(Isend_c, 29);
    SEND_INIT(Send_init_c, 30);
    MPI_Sendrecv_c(out, 31, MPI_CHAR, right, 0, in, 31, MPI_CHAR, left, 0, world, MPI_STATUS_IGNORE);
    expect("Sendrecv_c", "point-to-point", N * 31, N);
#endif
}

/* A collective in its forms: `args` are those of the call, `start` those of the persistent form. */
#define OPEN(...) __VA_ARGS__
#define TWICE(name, iname, kind, bytes, messages, args)                                        \
    MPI_##name(OPEN args);                                                                     \
    expect(#name, kind, bytes, messages);                                                      \
    MPI_##iname(OPEN args, &request);                                                          \
    done(&request);                                                                            \
    expect(#iname, kind, bytes, messages)
#ifdef MPI_4_CALLS
#define FORMS(name, iname, kind, bytes, messages, args)                                        \
    TWICE(name, iname, kind, bytes, messages, args);                                           \
    MPI_##name##_init(OPEN args, MPI_INFO_NULL, &request);                                     \
    for (int i = 0; i < 2; i++) {                                                              \
        MPI_Start(&request);                                                                   \
        done(&request);                                                                        \
    }                                                                                          \
    MPI_Request_free(&request);                                                                \
    expect(#name "_init", kind, 2 * (bytes), 2 * (messages))
#else
#define FORMS TWICE
#endif

static void collectives(void)
{
    int counts[N], places[N] = {0, 1000, 2000, 3000}, ten[N], row = 10 + 20 + 30 + 40;
    int rows = row + (row + 40) + (row + 80) + (row + 120);
    MPI_Datatype chars[N];
    for (int i = 0; i < N; i++) {
        counts[i] = 10 * (i + rank + 1);
        ten[i] = 10 * (i + 1);
        chars[i] = MPI_CHAR;
    }
    FORMS(Bcast, Ibcast, "bcast", N * 40, N, (out, 40, MPI_CHAR, 2, world));
    FORMS(Gather, Igather, "gather", N * 41, N, (out, 41, MPI_CHAR, in, 41, MPI_CHAR, 1, world));
    FORMS(Gatherv, Igatherv, "gather", row, N, (out, ten[rank], MPI_CHAR, in, ten, places, MPI_CHAR, 1, world));
    FORMS(Scatter, Iscatter, "scatter", N * 42, N, (out, 42, MPI_CHAR, in, 42, MPI_CHAR, 1, world));
    FORMS(Scatterv, Iscatterv, "scatter", row, N, (out, ten, places, MPI_CHAR, in, ten[rank], MPI_CHAR, 1, world));
    FORMS(Allgather, Iallgather, "allgather", N * 43, N, (out, 43, MPI_CHAR, in, 43, MPI_CHAR, world));
    FORMS(Allgatherv, Iallgatherv, "allgather", row, N,
          (out, ten[rank], MPI_CHAR, in, ten, places, MPI_CHAR, world));
    FORMS(Alltoall, Ialltoall, "alltoall", N * 44, N, (out, 44, MPI_CHAR, in, 44, MPI_CHAR, world));
    FORMS(Alltoallv, Ialltoallv, "alltoall", rows, N * N,
          (out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, world));
    FORMS(Alltoallw, Ialltoallw, "alltoall", rows, N * N,
          (out, counts, places, chars, in, counts, places, chars, world));
    FORMS(Reduce, Ireduce, "reduce", N * 45, N, (out, in, 45, MPI_BYTE, MPI_BOR, 3, world));
    FORMS(Allreduce, Iallreduce, "allreduce", N * 46, N, (out, in, 46, MPI_BYTE, MPI_BOR, world));
    FORMS(Reduce_scatter, Ireduce_scatter, "reduce_scatter", N * row, N * N,
          (out, in, ten, MPI_BYTE, MPI_BOR, world));
    FORMS(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter", N * 47, N,
          (out, in, 47, MPI_BYTE, MPI_BOR, world));
    FORMS(Scan, Iscan, "scan", N * 48, N, (out, in, 48, MPI_BYTE, MPI_BOR, world));
    FORMS(Exscan, Iexscan, "exscan", N * 49, N, (out, in, 49, MPI_BYTE, MPI_BOR, world));
    MPI_Allreduce(MPI_IN_PLACE, in, 50, MPI_BYTE, MPI_BOR, world);
    expect("in place", "allreduce", N * 50, N);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_CHAR, in, counts, places, MPI_CHAR, world);
    expect("Alltoallv in place", "alltoall", rows, N * N);
#ifdef LARGE_COUNTS
    MPI_Count many[N];
    MPI_Aint far[N];
    for (int i = 0; i < N; i++) {
        many[i] = counts[i];
        far[i] = places[i];
    }
    TWICE(Bcast_c, Ibcast_c, "bcast", N * 51, N, (out, 51, MPI_CHAR, 2, world));
    TWICE(Alltoallv_c, Ialltoallv_c, "alltoall", rows, N * N,
          (out, many, far, MPI_CHAR, in, many, far, MPI_CHAR, world));
#endif
}

/* A ring and a line: each rank gives one number to each of its neighbours. */
static void neighbours(void)
{
    int counts[2] = {61, 62}, places[2] = {0, 1000}, to[2] = {right, left}, dims = N, wraps = 1;
    MPI_Aint far[2] = {0, 1000};
    MPI_Datatype chars[2] = {MPI_CHAR, MPI_CHAR};
    MPI_Comm ring, graph;
    int index[N] = {1, 3, 5, 6}, edges[6] = {1, 0, 2, 1, 3, 2};
    MPI_Dist_graph_create_adjacent(world, 2, to, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    FORMS(Neighbor_allgather, Ineighbor_allgather, "neighbor", 2 * N * 60, 2 * N,
          (out, 60, MPI_CHAR, in, 60, MPI_CHAR, ring));
    counts[0] = counts[1] = 60;
    FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor", 2 * N * 60, 2 * N,
          (out, 60, MPI_CHAR, in, counts, places, MPI_CHAR, ring));
    FORMS(Neighbor_alltoall, Ineighbor_alltoall, "neighbor", 2 * N * 63, 2 * N,
          (out, 63, MPI_CHAR, in, 63, MPI_CHAR, ring));
    FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor", 2 * N * 60, 2 * N,
          (out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, ring));
    FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor", 2 * N * 60, 2 * N,
          (out, counts, far, chars, in, counts, far, chars, ring));
    MPI_Comm_free(&ring);
    MPI_Cart_create(world, 1, &dims, &wraps, 0, &ring);
    MPI_Neighbor_alltoall(out, 64, MPI_CHAR, in, 64, MPI_CHAR, ring);
    expect("on a grid", "neighbor", 2 * N * 64, 2 * N);
    MPI_Comm_free(&ring);
    MPI_Graph_create(world, N, index, edges, 0, &graph);
    MPI_Neighbor_alltoall(out, 65, MPI_CHAR, in, 65, MPI_CHAR, graph);
    expect("on a graph", "neighbor", 6 * 65, 6);
    MPI_Comm_free(&graph);
}

static void one_sided(void)
{
    static char memory[1000];
    long one = 1, old;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, world, &win);
#define WITHIN(name, bytes, messages, call)                                                    \
    MPI_Win_lock_all(0, win);                                                                  \
    call;                                                                                      \
    MPI_Win_unlock_all(win);                                                                   \
    MPI_Barrier(world);                                                                        \
    expect(name, "one-sided", N * bytes, N * messages)
    WITHIN("Put", 71, 1, MPI_Put(out, 71, MPI_CHAR, right, 0, 71, MPI_CHAR, win));
    WITHIN("Get", 72, 1, MPI_Get(in, 72, MPI_CHAR, right, 0, 72, MPI_CHAR, win));
    WITHIN("Accumulate", 73, 1, MPI_Accumulate(out, 73, MPI_CHAR, right, 0, 73, MPI_CHAR, MPI_REPLACE, win));
    WITHIN("Get_accumulate", 2 * 74, 2,
           MPI_Get_accumulate(out, 74, MPI_CHAR, in, 74, MPI_CHAR, right, 0, 74, MPI_CHAR, MPI_REPLACE, win));
    WITHIN("Fetch_and_op", 2 * sizeof one, 2, MPI_Fetch_and_op(&one, &old, MPI_LONG, right, 0, MPI_SUM, win));
    WITHIN("Compare_and_swap", 2 * sizeof one, 2,
           MPI_Compare_and_swap(&one, &old, in, MPI_LONG, right, 0, win));
    WITHIN("Rput", 75, 1, (MPI_Rput(out, 75, MPI_CHAR, right, 0, 75, MPI_CHAR, win, &request), done(&request)));
    WITHIN("Rget", 76, 1, (MPI_Rget(in, 76, MPI_CHAR, right, 0, 76, MPI_CHAR, win, &request), done(&request)));
    WITHIN("Raccumulate", 77, 1,
           (MPI_Raccumulate(out, 77, MPI_CHAR, right, 0, 77, MPI_CHAR, MPI_REPLACE, win, &request),
            done(&request)));
#ifdef LARGE_COUNTS
    WITHIN("Put_c", 78, 1, MPI_Put_c(out, 78, MPI_CHAR, right, 0, 78, MPI_CHAR, win));
#endif
    MPI_Win_free(&win);
}

/* Two ranks on either side. */
static void between_groups(void)
{
    MPI_Comm half, both;
    int counts[2] = {81, 81}, places[2] = {0, 1000}, side = rank / 2;
    volatile int root = side ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL; /* else calls are made twice */
    MPI_Comm_split(world, side, rank, &half);
    MPI_Intercomm_create(half, 0, world, side ? 0 : 2, 0, &both);
    MPI_Sendrecv(out, 80, MPI_CHAR, rank % 2, 0, in, 80, MPI_CHAR, rank % 2, 0, both, MPI_STATUS_IGNORE);
    expect("to the other side", "point-to-point", N * 80, N);
    MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, both);
    expect("Alltoallv to the other side", "alltoall", N * 2 * 81, N * 2);
    MPI_Allgather(out, 82, MPI_CHAR, in, 82, MPI_CHAR, both);
    expect("Allgather to the other side", "allgather", N * 2 * 82, N * 2);
    MPI_Bcast(out, 83, MPI_CHAR, root, both);
    expect("Bcast to the other side", "bcast", 2 * 83, 2);
    MPI_Gather(out, 84, MPI_CHAR, in, 84, MPI_CHAR, root, both);
    expect("Gather from the other side", "gather", 2 * 84, 2);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    right = (rank + 1) % N;
    left = (rank + N - 1) % N;
    point_to_point();
    collectives();
    neighbours();
    one_sided();
    between_groups();
    MPI_Finalize();
    return 0;
}
