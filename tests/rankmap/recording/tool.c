/* SPDX-License-Identifier: Apache-2.0 */
/* Another tool between program and MPI, as many sites load one. */
#include <mpi.h>

int MPI_Sendrecv(const void *sb, int sn, MPI_Datatype st, int to, int stag, void *rb, int rn, MPI_Datatype rt,
                 int from, int rtag, MPI_Comm c, MPI_Status *s)
{
    return PMPI_Sendrecv(sb, sn, st, to, stag, rb, rn, rt, from, rtag, c, s);
}
