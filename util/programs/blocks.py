"""Matrices distributed over a grid of processes as in ScaLAPACK and ELPA: block-cyclic, column-major."""
import ctypes
import ctypes.util
import sys

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
SIDE = 32  # of a block
rows, columns = sorted(MPI.Compute_dims(world.size, 2))
row, column = divmod(world.rank, columns)


def library(name):
    """Finds the library's path: the number at the end of the name depends on the release."""
    found = ctypes.util.find_library(name)
    if not found:
        sys.exit(f"lib{name}.so is missing: docs/PROGRAMS.md lists the packages")
    return ctypes.CDLL(found)


def own(count, place, places):
    """The rows or columns, out of `count`, of a place in the grid."""
    index = numpy.arange(count)
    return index[index // SIDE % places == place]


def deal(matrix):
    height, width = matrix.shape
    return numpy.asfortranarray(matrix[numpy.ix_(own(height, row, rows), own(width, column, columns))])


def gather(part, height, width):
    """The whole matrix in process 0, and nothing in the other processes."""
    parts = world.gather(part)
    if world.rank:
        return None
    matrix = numpy.empty((height, width))
    for rank, piece in enumerate(parts):
        r, c = divmod(rank, columns)
        matrix[numpy.ix_(own(height, r, rows), own(width, c, columns))] = piece
    return matrix
