/* SPDX-License-Identifier: Apache-2.0 */
/* What programs do that a library before them has to bear: the sum is the same with and without. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm comm;
static const char *what;

static int is(const char *name)
{
    return strcmp(what, name) == 0;
}

/* Messages around the ring, with a tag of this thread's. */
static void *around(void *tag)
{
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        int got = -1, turn = i * rank;
        MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % size, *(int *)tag, &got, 1, MPI_INT, (rank + size - 1) % size,
                     *(int *)tag, comm, MPI_STATUS_IGNORE);
        sum += got;
    }
    return (void *)sum;
}

/* Children that end by exit, by exec after fork and vfork, and of a shell: 3 + 4 + 5. */
static long children(void)
{
    int status = -1;
    long sum = 0;
    pid_t child = fork();
    if (child == 0)
        exit(3);
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 4", NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
    return sum + WEXITSTATUS(status) + (system("exit 5") >> 8);
}

/* A communicator that is freed while a request on it goes on: one message around, 50 times. */
static long with_a_freed_communicator(void)
{
    MPI_Comm gone;
    MPI_Request requests[2];
    long sum = 0;
    int out, in;
    MPI_Comm_dup(comm, &gone);
    MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 0, gone, &requests[0]);
    MPI_Recv_init(&in, 1, MPI_INT, (rank + size - 1) % size, 0, gone, &requests[1]);
    MPI_Comm_free(&gone);
    for (out = 0; out < 50; out++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        sum += in;
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return sum;
}

/* The classes of errors that the program makes on purpose, where MPI is told to return them. */
static long errors_returned(void)
{
    MPI_Comm other;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    int sent = 1, class, sum = 0, codes[4];
    MPI_Comm_dup(comm, &other);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    codes[0] = MPI_Send(&sent, 1, MPI_INT, size + 7, 0, other);
    codes[1] = MPI_Send(&sent, -1, MPI_INT, rank, 0, other);
    codes[2] = MPI_Isend(&sent, 1, none, rank, 0, other, &(MPI_Request){0});
    codes[3] = MPI_Bcast(&sent, 1, MPI_INT, -5, other);
    for (int i = 0; i < 4; i++) {
        MPI_Error_class(codes[i], &class);
        sum += class * (i + 1);
    }
    MPI_Comm_free(&other);
    return sum;
}

/* No memory but what is free in small pieces already; a new call site then. */
static long without_memory(void)
{
    static void *held[1 << 16];
    int tag = 9, many = 0;
    long sum = (long)around(&tag);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &limit);
    for (size_t room = 1 << 26; room >= 64; room /= 2)
        while (many < 1 << 16 && (held[many] = malloc(room)))
            many++;
    for (int i = 0; i < 50; i++) {
        int got = -1, turn = i;
        MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, comm,
                     MPI_STATUS_IGNORE);
        sum += got;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    while (many--)
        free(held[many]);
    return sum;
}

static void finalize(void)
{
    MPI_Finalize();
}

static void refuse(int resource)
{
    struct rlimit none = {0, 0};
    setrlimit(resource, &none);
}

int main(int argc, char **argv)
{
    int tags[4] = {0, 1, 2, 3}, given, number = 0;
    long sum = 0, all;
    pthread_t threads[4];
    what = argv[1];
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Session session;
    MPI_Group group;
    if (is("sessions")) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, "faults", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Group_free(&group);
    } else
#endif
    {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
        comm = MPI_COMM_WORLD;
    }
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (is("children"))
        sum += children();
    if (is("freed"))
        sum += with_a_freed_communicator();
    if (is("errors"))
        sum += errors_returned();
    if (is("memory"))
        sum += without_memory();
    if (is("elsewhere") && (chdir("/") || clearenv() || close(0)))
        return 7;
    if (is("reads") && rank == 0 && scanf("%d", &number) == 1)
        sum += number;
    if (is("threads") && given == MPI_THREAD_MULTIPLE) {
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, around, &tags[i]);
        for (int i = 0; i < 4; i++) {
            void *part;
            pthread_join(threads[i], &part);
            sum += (long)part;
        }
    } else
        for (int i = 0; i < 4; i++)
            sum += (long)around(&tags[i]);
    MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("sum %ld\n", all);
    fflush(stdout);
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    if (is("sessions")) {
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
        return 6;
    }
#endif
    if (is("full"))
        refuse(RLIMIT_FSIZE);
    if (is("files"))
        refuse(RLIMIT_NOFILE);
    if (is("killed") || is("broken") || is("waits"))
        MPI_Barrier(comm);
    if (is("waits"))
        sleep(600);
    if (is("killed") && rank == 1)
        raise(SIGKILL);
    if (is("broken") && rank == 1)
        *(volatile int *)argv[2] = 0;
    if (is("late"))
        atexit(finalize);
    else
        MPI_Finalize();
    return 6;
}
