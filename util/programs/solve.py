"""Solves 2,000 equations of random numbers with ScaLAPACK's pdgesv. Checks the residual, prints some of the solution."""
import ctypes
import sys

import numpy

from blocks import SIDE, columns, deal, gather, library, rows, world

COUNT = 2000
scalapack = library("scalapack-openmpi")


def integer(value):
    """Fortran passes all arguments by reference."""
    return ctypes.byref(ctypes.c_int(value))


def descriptor(width, part):
    return (ctypes.c_int * 9)(1, grid.value, COUNT, width, SIDE, SIDE, 0, 0, max(1, part.shape[0]))


grid = ctypes.c_int()
scalapack.Cblacs_get(0, 0, ctypes.byref(grid))
scalapack.Cblacs_gridinit(ctypes.byref(grid), b"Row", rows, columns)
random = numpy.random.default_rng(1)
matrix, right = random.standard_normal((COUNT, COUNT)), random.standard_normal((COUNT, 1))
factors, solution = deal(matrix), deal(right)
pivots, problem = (ctypes.c_int * (COUNT + SIDE))(), ctypes.c_int()
scalapack.pdgesv_(integer(COUNT), integer(1), factors.ctypes, integer(1), integer(1), descriptor(COUNT, factors), pivots,
                  solution.ctypes, integer(1), integer(1), descriptor(1, solution), ctypes.byref(problem))
x = gather(solution, COUNT, 1)
if world.rank == 0:
    most = COUNT * numpy.finfo("d").eps * numpy.linalg.norm(matrix, numpy.inf) * numpy.linalg.norm(x, numpy.inf)
    if problem.value or numpy.linalg.norm(matrix @ x - right, numpy.inf) > most:
        sys.exit(f"pdgesv's solution is wrong: info {problem.value}")
    print("answer", *map(float, x[:: COUNT // 10, 0]), float(numpy.linalg.norm(x)))
