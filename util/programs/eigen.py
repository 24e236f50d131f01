"""Computes all eigenvalues and eigenvectors of a symmetric matrix with ELPA. Checks the result, prints some of the values."""
import ctypes
import sys

import numpy

from blocks import SIDE, column, columns, deal, gather, library, row, rows, world

COUNT = 800
elpa = library("elpa")
elpa.elpa_allocate.restype = ctypes.c_void_p
problem = ctypes.c_int()


def check(what):
    if problem.value:
        sys.exit(f"ELPA's {what} failed: {problem.value}")


random = numpy.random.default_rng(1).standard_normal((COUNT, COUNT))
matrix = random + random.T
part, values = deal(matrix), numpy.empty(COUNT)
vectors = numpy.empty_like(part)

problem.value = elpa.elpa_init(20200417)  # version of the interface
check("elpa_init")
handle = ctypes.c_void_p(elpa.elpa_allocate(ctypes.byref(problem)))
check("elpa_allocate")
settings = {"na": COUNT, "nev": COUNT, "local_nrows": part.shape[0], "local_ncols": part.shape[1], "nblk": SIDE,
            "mpi_comm_parent": world.py2f(), "process_row": row, "process_col": column}
for name, value in settings.items():
    elpa.elpa_set_integer(handle, name.encode(), value, ctypes.byref(problem))
    check(f"setting {name}")
problem.value = elpa.elpa_setup(handle)
check("elpa_setup")
elpa.elpa_eigenvectors_a_h_a_d(handle, part.ctypes, values.ctypes, vectors.ctypes, ctypes.byref(problem))
check("elpa_eigenvectors")
v = gather(vectors, COUNT, COUNT)
if world.rank == 0:
    most = COUNT * numpy.finfo("d").eps * numpy.linalg.norm(matrix, numpy.inf)
    if abs(matrix @ v - v * values).max() > most or abs(v.T @ v - numpy.eye(COUNT)).max() > 1e-10:
        sys.exit("ELPA's vectors are wrong")
    print("answer", *map(float, values[:: COUNT // 10]), float(values[-1]))
