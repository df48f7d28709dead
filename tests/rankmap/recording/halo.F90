! SPDX-License-Identifier: Apache-2.0
! Exchange of edges on a grid of 3 columns of ranks, periodic: BINDING is 1 for mpif.h, 2, 3 for f08.
program halo
#if BINDING == 2
  use mpi
#elif BINDING == 3
  use mpi_f08
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer, parameter :: bytes = 1000, steps = 5
  integer :: ranks, side, step, ierr, faces(4)
#if BINDING == 3
  type(MPI_Comm) :: grid
  type(MPI_Request) :: requests(8)
#else
  integer :: grid, requests(8)
#endif
  logical :: periods(2)
  character :: out(bytes, 4), in(bytes, 4)

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 2, (/ ranks / 3, 3 /), periods, .false., grid, ierr)
  call MPI_Cart_shift(grid, 0, 1, faces(1), faces(2), ierr)
  call MPI_Cart_shift(grid, 1, 1, faces(3), faces(4), ierr)
  out = 'x'
  do step = 1, steps
    do side = 1, 4
      call MPI_Irecv(in(1, side), bytes, MPI_CHARACTER, faces(side), 0, grid, requests(side), ierr)
    end do
    do side = 1, 4
      call MPI_Isend(out(1, side), bytes, MPI_CHARACTER, faces(side), 0, grid, requests(4 + side), &
                     ierr)
    end do
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE, ierr)
  end do
  call MPI_Finalize(ierr)
end program
