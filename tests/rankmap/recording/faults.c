/* What programs do that a library before them has to bear: the sum is the same with and without. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm comm;

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

int main(int argc, char **argv)
{
    const char *what = argv[1];
    int tags[4] = {0, 1, 2, 3}, given;
    long sum = 0, all;
    pthread_t threads[4];
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Session session;
    MPI_Group group;
    if (!strcmp(what, "sessions")) {
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
    if (!strcmp(what, "full")) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_FSIZE, &none);
    }
    if (!strcmp(what, "fork")) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            exit(3);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
        sum += system("exit 4") >> 8;
    }
    if (!strcmp(what, "threads") && given == MPI_THREAD_MULTIPLE) {
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
    if (!strcmp(what, "sessions")) {
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
        return 6;
    }
#endif
    MPI_Finalize();
    return 6;
}
