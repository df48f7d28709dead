/* SPDX-License-Identifier: Apache-2.0 */
/* What calls cost: the least of many batches, in nanoseconds a call. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { BATCHES = 60, BATCHES_OF_TWO = 15, CALLS = 5000 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void ping_pong(int rank)
{
    int word = 0, other = 1 - rank;
    for (int i = 0; i < CALLS / 2; i++) {
        if (rank == 0)
            MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    }
}

/* Messages to oneself: no other process disturbs. Eight calls a turn, and one that waits. */
static void message_rate(int rank)
{
    int out[4] = {0}, in[4];
    MPI_Request r[8];
    for (int i = 0; i < CALLS / 9; i++) {
        for (int k = 0; k < 4; k++)
            MPI_Irecv(&in[k], 1, MPI_INT, rank, k, MPI_COMM_WORLD, &r[k]);
        for (int k = 0; k < 4; k++)
            MPI_Isend(&out[k], 1, MPI_INT, rank, k, MPI_COMM_WORLD, &r[4 + k]);
        MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
    }
}

static void exchange(int rank)
{
    int out = 0, in;
    for (int i = 0; i < CALLS; i++)
        MPI_Sendrecv(&out, 1, MPI_INT, rank, 0, &in, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void reduction(int rank)
{
    double one = rank, sum;
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
}

static void measure(const char *name, void (*work)(int), int rank, int batches)
{
    double least = 1e9;
    for (int i = 0; i < batches; i++) {
        double start = seconds();
        work(rank);
        double took = seconds() - start;
        least = took < least ? took : least;
    }
    if (rank == 0)
        printf("%s %.2f\n", name, 1e9 * least / CALLS);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 2)
        measure("ping-pong", ping_pong, rank, BATCHES_OF_TWO);
    else {
        measure("Isend,Irecv,Waitall", message_rate, rank, BATCHES);
        measure("Sendrecv", exchange, rank, BATCHES);
        measure("Allreduce", reduction, rank, BATCHES);
    }
    MPI_Finalize();
    return 0;
}
