# mpi
