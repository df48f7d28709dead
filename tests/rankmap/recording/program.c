/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose messages anyone can work out: the tests do, in Python. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned state;
static unsigned draw(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* Each rank sends to random others; everybody draws everybody's numbers, so receivers know. */
static void random_messages(int rank, int size, int many, unsigned seed, int together)
{
    char *out = calloc(1, 1 << 16), *in = malloc(1 << 16);
    MPI_Request *requests = malloc(sizeof *requests * (size_t)(2 * many * size));
    int posted = 0;
    state = seed;
    for (int i = 0; i < many; i++)
        for (int from = 0; from < size; from++) {
            int to = (int)draw((unsigned)size), bytes = (int)draw(5000);
            if (to == rank)
                MPI_Irecv(in, bytes, MPI_CHAR, from, i, MPI_COMM_WORLD, &requests[posted++]);
            if (from == rank)
                MPI_Isend(out, bytes, MPI_CHAR, to, i, MPI_COMM_WORLD, &requests[posted++]);
            if (!together) {
                MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
                posted = 0;
            }
        }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    free(out), free(in), free(requests);
}

static void halo(int staged)
{
    int size, dims[2] = {0, 0}, periods[2] = {0, 0}, low[2], high[2];
    static double cells[8][500];
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int d = 0; d < 2; d++)
        MPI_Cart_shift(grid, d, 1, &low[d], &high[d]);
    for (int step = 0; step < 5; step++) {
        MPI_Request r[8];
        for (int d = 0; d < 2 && !staged; d++) {
            MPI_Irecv(cells[2 * d], 500, MPI_DOUBLE, low[d], 0, grid, &r[4 * d]);
            MPI_Irecv(cells[2 * d + 1], 500, MPI_DOUBLE, high[d], 0, grid, &r[4 * d + 1]);
            MPI_Isend(cells[4 + 2 * d], 500, MPI_DOUBLE, low[d], 0, grid, &r[4 * d + 2]);
            MPI_Isend(cells[5 + 2 * d], 500, MPI_DOUBLE, high[d], 0, grid, &r[4 * d + 3]);
        }
        if (!staged)
            MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
        for (int d = 0; d < 2 && staged; d++) {
            MPI_Sendrecv(cells[4], 500, MPI_DOUBLE, low[d], 1, cells[0], 500, MPI_DOUBLE, high[d], 1,
                         grid, MPI_STATUS_IGNORE);
            MPI_Sendrecv(cells[5], 500, MPI_DOUBLE, high[d], 2, cells[1], 500, MPI_DOUBLE, low[d], 2,
                         grid, MPI_STATUS_IGNORE);
        }
    }
    MPI_Comm_free(&grid);
}

/* Wavefronts over a grid from each corner, three pieces of two octants from each. */
static void sweep(int rank, int size)
{
    int dims[2] = {0, 0};
    static double in[2][500], out[500];
    MPI_Dims_create(size, 2, dims);
    int at[2] = {rank / dims[1], rank % dims[1]}, stride[2] = {dims[1], 1};
    for (int corner = 0; corner < 4; corner++)
        for (int piece = 0; piece < 6; piece++) {
            MPI_Request requests[2];
            int posted = 0;
            for (int d = 0; d < 2; d++) {
                int step = corner >> (1 - d) & 1 ? -1 : 1, from = at[d] - step;
                if (from >= 0 && from < dims[d])
                    MPI_Recv(in[d], 500, MPI_DOUBLE, rank - step * stride[d], piece, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
            }
            for (int d = 0; d < 2; d++) {
                int step = corner >> (1 - d) & 1 ? -1 : 1, to = at[d] + step;
                if (to >= 0 && to < dims[d])
                    MPI_Isend(out, 500, MPI_DOUBLE, rank + step * stride[d], piece, MPI_COMM_WORLD,
                              &requests[posted++]);
            }
            MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
        }
}

static void collectives(int rank, int size)
{
    MPI_Comm row;
    int *counts = malloc(sizeof(int) * (size_t)size), *places = calloc((size_t)size, sizeof(int));
    char *out = calloc(1, 100000), *in = malloc(100000);
    double one = 1, sum;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    for (int i = 0; i < 3; i++)
        MPI_Alltoall(out, 700, MPI_CHAR, in, 700, MPI_CHAR, row);
    for (int i = 0; i < size; i++)
        counts[i] = i == rank ? 0 : 10 * (i + rank);
    MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Bcast(out, 4000, MPI_CHAR, size - 1, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(out, 30, MPI_CHAR, in, 30, MPI_CHAR, 1 % size, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&row);
    free(counts), free(places), free(out), free(in);
}

static void one_sided(int rank, int size)
{
    static double memory[100], own[100];
    MPI_Win window;
    MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(own, 5, MPI_DOUBLE, (rank + 1) % size, 0, 5, MPI_DOUBLE, window);
    MPI_Get(own + 50, 7, MPI_DOUBLE, (rank + 1) % size, 10, 7, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void persistent(int rank, int size)
{
    static int out[10], in[10];
    MPI_Request r[2];
    MPI_Send_init(out, 10, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in, 10, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < 4; i++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left)) {}
}

/* Start up, work between messages, for longer the higher the rank, and put away. */
static void work(int rank)
{
    sleep_ms(200);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_ms(100 * (1 + rank));
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_ms(200);
}

/* Receive a message from any rank, in one of four ways, and answer it. */
static void serve(int way)
{
    char in[100];
    MPI_Request request;
    MPI_Message message;
    int done = 0;
    if (way == 0)
        MPI_Recv(in, 100, MPI_CHAR, MPI_ANY_SOURCE, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (way == 1 || way == 2)
        MPI_Irecv(in, 100, MPI_CHAR, MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &request);
    if (way == 1)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    while (way == 2 && !done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (way == 3) {
        MPI_Mprobe(MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in, 100, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    }
    MPI_Send(in, 10, MPI_CHAR, in[0], way, MPI_COMM_WORLD);
}

static void ask(int rank, int way)
{
    char out[100] = {(char)rank};
    MPI_Send(out, 100, MPI_CHAR, 0, way, MPI_COMM_WORLD);
    MPI_Recv(out, 10, MPI_CHAR, 0, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 serves all others, the last time from within a barrier; receives that get nothing. */
static void any_rank(int rank, int size)
{
    char in[2];
    MPI_Request requests[2], barrier;
    for (int way = 0; way < 4; way++)
        for (int i = 1; i < size; i++)
            if (!rank)
                serve(way);
            else if (i == rank)
                ask(rank, way);
    MPI_Irecv(in, 1, MPI_CHAR, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 1, 1, MPI_CHAR, (rank + 1) % size, 9, MPI_COMM_WORLD, &requests[1]);
    MPI_Cancel(&requests[0]);
    MPI_Cancel(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank)
        ask(rank, 0);
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    for (int i = 1; i < size && !rank; i++)
        serve(0);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size;
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "together") || !strcmp(what, "alone"))
        random_messages(rank, size, 20, (unsigned)atoi(argv[2]), !strcmp(what, "together"));
    if (!strcmp(what, "halo") || !strcmp(what, "staged"))
        halo(!strcmp(what, "staged"));
    if (!strcmp(what, "work"))
        work(rank);
    if (!strcmp(what, "sweep"))
        sweep(rank, size);
    if (!strcmp(what, "any"))
        any_rank(rank, size);
    if (!strcmp(what, "collectives"))
        collectives(rank, size);
    if (!strcmp(what, "onesided"))
        one_sided(rank, size);
    if (!strcmp(what, "persistent"))
        persistent(rank, size);
    if (!strcmp(what, "control")) {
        collectives(rank, size);
        MPI_Pcontrol(1);
        persistent(rank, size);
        MPI_Pcontrol(0);
        collectives(rank, size);
    }
    if (!strcmp(what, "abort") && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0)
        printf("the program's own words\n");
    if (!strcmp(what, "leave")) {
        persistent(rank, size);
        exit(4);
    }
    MPI_Finalize();
    return argc > 2 ? atoi(argv[2]) : 0;
}
