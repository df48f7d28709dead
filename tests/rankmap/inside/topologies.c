/* SPDX-License-Identifier: Apache-2.0 */
/* Every process says which rank it gets in each kind of topology, and whether all calls agree. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int world, size, reorder;

static int grid(int *good)
{
    int dims[2] = {0, 0}, periods[2] = {1, 0}, keep[2] = {0, 1}, at[2], low, high, got = -1, near[4];
    int rank, in_row, same;
    MPI_Comm made, row;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, reorder, &made);
    MPI_Comm_rank(made, &rank);
    MPI_Cart_coords(made, rank, 2, at);
    MPI_Cart_rank(made, at, &same);
    MPI_Cart_sub(made, keep, &row);
    MPI_Comm_rank(row, &in_row);
    MPI_Cart_shift(made, 0, 1, &low, &high);
    MPI_Sendrecv(&rank, 1, MPI_INT, high, 0, &got, 1, MPI_INT, low, 0, made, MPI_STATUS_IGNORE);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, near, 1, MPI_INT, made);
    *good = got == low && in_row == at[1] && rank == at[0] * dims[1] + at[1] && near[0] == low && same == rank;
    MPI_Comm_free(&row), MPI_Comm_free(&made);
    return rank;
}

/* A ring, given in three ways: rank r sends to r + 1, with weight r. */
static int ring(int how, int *good)
{
    int *index = malloc(sizeof(int) * (size_t)size), *next = malloc(sizeof(int) * (size_t)size), rank, from[1], to[1], got = -1;
    MPI_Comm made;
    if (how == 0) {
        for (int i = 0; i < size; i++) {
            index[i] = i + 1;
            next[i] = (i + 1) % size;
        }
        MPI_Graph_create(MPI_COMM_WORLD, size, index, next, reorder, &made);
        MPI_Comm_rank(made, &rank);
        MPI_Graph_neighbors(made, rank, 1, to);
        *good = to[0] == (rank + 1) % size;
    } else {
        int weights[2], one = 1, before = (world + size - 1) % size, after = (world + 1) % size, w = world + 1, b = before + 1;
        if (how == 1)
            MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &world, &one, &after, &w, MPI_INFO_NULL, reorder, &made);
        else
            MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, how == 2 ? &b : MPI_UNWEIGHTED, 1, &after,
                                           how == 2 ? &w : MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &made);
        MPI_Comm_rank(made, &rank);
        MPI_Dist_graph_neighbors(made, 1, from, weights, 1, to, weights + 1);
        MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &got, 1, MPI_INT, made);
        *good = from[0] == (rank + size - 1) % size && to[0] == (rank + 1) % size && got == from[0];
        *good = *good && (how == 3 || (weights[0] == from[0] + 1 && weights[1] == rank + 1));
    }
    MPI_Comm_free(&made);
    free(index), free(next);
    return rank;
}

/* All processes write their rank into a file, and into a window of rank 0's. */
static int storage(const char *path)
{
    int dims[1] = {size}, periods[1] = {1}, rank, *all = calloc((size_t)size, sizeof *all), good = 1;
    MPI_Comm made;
    MPI_File file;
    MPI_Win window;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, reorder, &made);
    MPI_Comm_rank(made, &rank);
    MPI_File_open(made, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)sizeof rank * rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(made);
    MPI_File_sync(file);
    MPI_File_read_at(file, 0, all, size, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    for (int i = 0; i < size; i++)
        good = good && all[i] == i;
    memset(all, 0, sizeof *all * (size_t)size);
    MPI_Win_create(all, (MPI_Aint)sizeof *all * size, sizeof *all, MPI_INFO_NULL, made, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    for (int i = 0; i < size && rank == 0; i++)
        good = good && all[i] == i;
    MPI_Comm_free(&made);
    free(all);
    return good;
}

/* MPI_COMM_WORLD, wherever it is named. */
static int world_is_whole(void)
{
    int rank, got = -1, sum = 0, alike, inner, there, *tag_limit, flag, *all = calloc((size_t)size, sizeof *all), good, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm copy, part, inter;
    MPI_Group group, whole;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    good = got == (rank + 1) % size && sum == size * (size - 1) / 2;
    for (int i = 0; i < size; i++)
        good = good && all[i] == i;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &alike);
    good = good && alike == MPI_CONGRUENT;
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &alike);
    good = good && alike == MPI_IDENT;
    MPI_Comm_group(MPI_COMM_WORLD, &whole);
    MPI_Comm_group(copy, &group);
    MPI_Group_translate_ranks(group, 1, &rank, whole, &there);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_rank(part, &inner);
    good = good && there == rank && inner == rank / 2;
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
    MPI_Comm_remote_size(inter, &length);
    good = good && length == (rank % 2 ? size + 1 : size) / 2;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &flag);
    good = good && flag && *tag_limit >= 32767;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    good = good && !strcmp(name, "MPI_COMM_WORLD");
    MPI_Group_free(&group), MPI_Group_free(&whole);
    MPI_Comm_free(&inter), MPI_Comm_free(&part), MPI_Comm_free(&copy);
    free(all);
    return good;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int good = 1, rank = -1, more;
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    reorder = strcmp(what, "keep") != 0;
    if (parent != MPI_COMM_NULL) { /* spawned: says its parents' ranks in their order */
        int sum = 0;
        MPI_Reduce(&world, &sum, 1, MPI_INT, MPI_SUM, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    if (!strcmp(what, "world")) {
        good = world_is_whole();
        rank = world;
        world = atoi(getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK"));
    } else if (!strcmp(what, "spawn")) {
        int dims[1] = {size}, periods[1] = {0}, sum = -1, mine = 5;
        MPI_Comm made, children;
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &made);
        MPI_Comm_rank(made, &rank);
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, made, &children, MPI_ERRCODES_IGNORE);
        MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
        good = rank != 0 || sum == 0;
        MPI_Comm_disconnect(&children);
        MPI_Comm_free(&made);
    } else {
        rank = grid(&good);
        for (int how = 0; how < 4; how++) {
            int in_ring = ring(how, &more);
            good = good && more && (in_ring == rank || getenv("NIDMAP_ASK"));
        }
        if (argc > 2)
            good = good && storage(argv[2]);
    }
    printf("process %d rank %d good %d\n", world, rank, good);
    MPI_Finalize();
    return argc > 3 ? atoi(argv[3]) : 0;
}
