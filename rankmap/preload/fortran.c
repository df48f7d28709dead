/* SPDX-License-Identifier: Apache-2.0 */
/* Fortran's bindings: they call the MPI library by its PMPI_ names, where the calls are counted.
 * Here is only kept where the program called the binding, which else would be the same place for
 * the whole program. Each argument of a Fortran call is an address; those behind the last one
 * are passed on and not looked at. Names: mpif.h's and `use mpi`, `use mpi_f08` of Open MPI, and
 * the same of MPICH, whose calls with a buffer end in f08ts. */
#define ALL(what) what a, what b, what c, what d, what e, what f, what g, what h, what i, what j, \
                  what k, what l, what m
#define FORTRAN_NAME(name)                                                                     \
    void name(ALL(void *));                                                                 \
    EXPORT void name(ALL(void *))                                                           \
    {                                                                                          \
        void *outer = fortran_site;                                                            \
        fortran_site = outer ? outer : __builtin_return_address(0);                            \
        REAL(name)(ALL());                                                                  \
        fortran_site = outer;                                                                  \
    }
#define FORTRAN(name)                                                                          \
    FORTRAN_NAME(mpi_##name##_)                                                                \
    FORTRAN_NAME(mpi_##name##_f08_)                                                            \
    FORTRAN_NAME(mpi_##name##_f08ts_)

FORTRAN(send) FORTRAN(bsend) FORTRAN(ssend) FORTRAN(rsend) FORTRAN(isend) FORTRAN(ibsend)
FORTRAN(issend) FORTRAN(irsend) FORTRAN(sendrecv) FORTRAN(sendrecv_replace) FORTRAN(isendrecv)
FORTRAN(isendrecv_replace) FORTRAN(send_init) FORTRAN(bsend_init) FORTRAN(ssend_init)
FORTRAN(rsend_init) FORTRAN(put) FORTRAN(rput) FORTRAN(get) FORTRAN(rget) FORTRAN(accumulate)
FORTRAN(raccumulate) FORTRAN(get_accumulate) FORTRAN(fetch_and_op) FORTRAN(compare_and_swap)
FORTRAN(bcast) FORTRAN(gather) FORTRAN(gatherv)
FORTRAN(scatter) FORTRAN(scatterv) FORTRAN(allgather) FORTRAN(allgatherv) FORTRAN(alltoall)
FORTRAN(alltoallv) FORTRAN(alltoallw) FORTRAN(reduce) FORTRAN(allreduce)
FORTRAN(reduce_scatter) FORTRAN(reduce_scatter_block) FORTRAN(scan) FORTRAN(exscan)
FORTRAN(barrier) FORTRAN(neighbor_allgather) FORTRAN(neighbor_allgatherv)
FORTRAN(neighbor_alltoall) FORTRAN(neighbor_alltoallv) FORTRAN(neighbor_alltoallw)
FORTRAN(ibcast) FORTRAN(igather) FORTRAN(igatherv) FORTRAN(iscatter) FORTRAN(iscatterv)
FORTRAN(iallgather) FORTRAN(iallgatherv) FORTRAN(ialltoall) FORTRAN(ialltoallv)
FORTRAN(ialltoallw) FORTRAN(ireduce) FORTRAN(iallreduce) FORTRAN(ireduce_scatter)
FORTRAN(ireduce_scatter_block) FORTRAN(iscan) FORTRAN(iexscan) FORTRAN(ibarrier)
FORTRAN(ineighbor_allgather) FORTRAN(ineighbor_allgatherv) FORTRAN(ineighbor_alltoall)
FORTRAN(ineighbor_alltoallv) FORTRAN(ineighbor_alltoallw)
