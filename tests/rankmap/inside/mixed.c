/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that mix the ranks of two communicators, after reports of codes that broke so when
 * ranks were reordered; each also as it should be ("right"). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int world, size, rank;

static MPI_Comm torus(void)
{
    int dims[2] = {2, 0}, periods[2] = {1, 1};
    MPI_Comm made;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &made);
    return made;
}

static MPI_Comm ring(void)
{
    int before = (world + size - 1) % size, after = (world + 1) % size;
    MPI_Comm made;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &after, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 1, &made);
    return made;
}

/* ls1-mardyn, pull request 137: neighbours of the decomposition, asked in MPI_COMM_WORLD. */
static void neighbours_in_world(int right)
{
    int low, high, got = -1, got_too = -1; /* from anybody: it would wait for ever */
    MPI_Comm made = torus(), used = right ? made : MPI_COMM_WORLD;
    MPI_Request request[4];
    MPI_Comm_rank(made, &rank);
    MPI_Cart_shift(made, 1, 1, &low, &high);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, used, &request[0]);
    MPI_Irecv(&got_too, 1, MPI_INT, MPI_ANY_SOURCE, 1, used, &request[1]);
    MPI_Isend(&rank, 1, MPI_INT, high, 0, used, &request[2]);
    MPI_Isend(&rank, 1, MPI_INT, low, 1, used, &request[3]);
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
    if (right) /* a ring in the same communicator is none of its neighbours, and nothing mixed */
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 2, &got, 1, MPI_INT, (rank + size - 1) % size, 2, made,
                     MPI_STATUS_IGNORE);
}

/* DOLFINx, pull request 1617: ranks of the old communicator, used in the graph's. */
static void old_ranks_in_graph(int right)
{
    MPI_Comm made = ring();
    int got = -1, own;
    MPI_Comm_rank(made, &rank);
    own = right ? rank : world;
    MPI_Sendrecv(&own, 1, MPI_INT, (own + 1) % size, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, made,
                 MPI_STATUS_IGNORE);
}

/* Open MPI, issue 11756: data that a process has already, exchanged along the graph. */
static void own_data_in_graph(int right)
{
    MPI_Comm made = ring();
    int got = -1;
    if (right)
        MPI_Comm_rank(made, &rank);
    int *data = right ? &rank : &world;
    MPI_Neighbor_alltoall(data, 1, MPI_INT, &got, 1, MPI_INT, made);
}

/* Coordinates, a root and a place in a file by the rank in MPI_COMM_WORLD. */
static void coordinates(int right)
{
    int at[2];
    MPI_Comm made = torus();
    if (right)
        MPI_Comm_rank(made, &rank);
    MPI_Cart_coords(made, right ? rank : world, 2, at);
}

static void root(int right)
{
    int word = world == 0;
    MPI_Comm made = torus();
    if (right)
        MPI_Comm_rank(made, &rank);
    MPI_Bcast(&word, 1, MPI_INT, 0, made);
}

static void offset(int right, const char *path)
{
    MPI_File file;
    MPI_Comm made = torus();
    MPI_Comm_rank(made, &rank);
    MPI_File_open(made, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, (MPI_Offset)sizeof rank * (right ? rank : world), &rank, 1, MPI_INT,
                      MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    int right = !strcmp(argv[1], "right");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    neighbours_in_world(right);
    old_ranks_in_graph(right);
    own_data_in_graph(right);
    coordinates(right);
    root(right);
    offset(right, argv[2]);
    MPI_Finalize();
    return 0;
}
