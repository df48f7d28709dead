/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks send a note to and fro; a word to stop has a receive of its own tag, posted before or
 * after all that, or is taken by a receive of any tag. */
#include <mpi.h>
#include <string.h>

enum { NOTE = 5, ANSWER = 6, STOP = 9, TIMES = 4 };

int main(int many, char **words)
{
    int rank, stop = 1;
    static char note[3000];
    MPI_Request last = MPI_REQUEST_NULL;
    MPI_Init(&many, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int tag = strcmp(words[1], "any") == 0 ? MPI_ANY_TAG : STOP;
    if (rank == 1 && strcmp(words[1], "early") == 0)
        MPI_Irecv(&stop, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &last);
    for (int i = 0; i < TIMES; i++)
        if (rank == 0) {
            MPI_Send(note, sizeof note, MPI_CHAR, 1, NOTE, MPI_COMM_WORLD);
            MPI_Recv(note, sizeof note, MPI_CHAR, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(note, sizeof note, MPI_CHAR, 0, NOTE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(note, sizeof note, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
        }
    if (rank == 0)
        MPI_Send(&stop, 1, MPI_INT, 1, STOP, MPI_COMM_WORLD);
    else {
        if (last == MPI_REQUEST_NULL)
            MPI_Irecv(&stop, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &last);
        MPI_Wait(&last, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
