! SPDX-License-Identifier: Apache-2.0
! Every process says which rank it gets, in a grid or in the world, and whether all calls agree.
! BINDING is 1 for mpif.h, 2 for the module mpi, 3 for mpi_f08.
program topologies
#if BINDING == 2
  use mpi
#elif BINDING == 3
  use mpi_f08
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
#if BINDING == 3
  type(MPI_Comm) :: grid, row, ring
  type(MPI_Request) :: request
#else
  integer :: grid, row, ring, request
#endif
  integer :: world, ranks, rank, low, high, got, same, in_row, total, dims(2), at(2), near(4), ierr
  integer :: from(1), to(1), weights(2)
  logical :: periods(2), keep(2), good
  character(len=16) :: what

  call get_command_argument(1, what)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, world, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (what == 'world') then
    rank = world
    world = launched_as()
    low = modulo(rank - 1, ranks)
    high = modulo(rank + 1, ranks)
    call MPI_Irecv(got, 1, MPI_INTEGER, low, 7, MPI_COMM_WORLD, request, ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, high, 7, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, row, ierr)
    call MPI_Comm_rank(row, in_row, ierr)
    total = rank
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    good = got == low .and. in_row == rank / 2 .and. total == ranks * (ranks - 1) / 2
  else
    dims = 0
    periods = (/ .true., .false. /)
    keep = (/ .false., .true. /)
    call MPI_Dims_create(ranks, 2, dims, ierr)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, what /= 'keep', grid, ierr)
    call MPI_Comm_rank(grid, rank, ierr)
    call MPI_Cart_coords(grid, rank, 2, at, ierr)
    call MPI_Cart_rank(grid, at, same, ierr)
    call MPI_Cart_sub(grid, keep, row, ierr)
    call MPI_Comm_rank(row, in_row, ierr)
    call MPI_Cart_shift(grid, 0, 1, low, high, ierr)
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, high, 0, got, 1, MPI_INTEGER, low, 0, grid, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, near, 1, MPI_INTEGER, grid, ierr)
    good = got == low .and. same == rank .and. in_row == at(2) .and. near(1) == low
    good = good .and. rank == at(1) * dims(2) + at(2)
    call MPI_Comm_free(grid, ierr)
    from = modulo(world - 1, ranks)
    to = modulo(world + 1, ranks)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, from, MPI_UNWEIGHTED, 1, to, &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, what /= 'keep', ring, ierr)
    call MPI_Comm_rank(ring, total, ierr)
    call MPI_Dist_graph_neighbors(ring, 1, from, weights(1:1), 1, to, weights(2:2), ierr)
    good = good .and. total == rank .and. from(1) == modulo(rank - 1, ranks)
    call MPI_Comm_free(ring, ierr)
  end if
  call MPI_Comm_free(row, ierr)
  print '(a,i0,a,i0,a,i0)', 'process ', world, ' rank ', rank, ' good ', merge(1, 0, good)
  call MPI_Finalize(ierr)

contains

  integer function launched_as()
    character(len=16) :: text
    integer :: missing
    call get_environment_variable('PMI_RANK', text, status=missing)
    if (missing /= 0) call get_environment_variable('OMPI_COMM_WORLD_RANK', text)
    read (text, *) launched_as
  end function
end program
