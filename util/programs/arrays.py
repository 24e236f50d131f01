"""mpi4py with NumPy: broadcasts and allreduces of arrays, as in data analysis. Prints a digest of the results."""
import hashlib

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
digest = hashlib.sha256()
for turn in range(120):
    for count in (1, 1000, 100_000):
        array = numpy.arange(count, dtype="d") * (turn + 1) if world.rank == turn % world.size else numpy.empty(count, "d")
        world.Bcast(array, root=turn % world.size)
        digest.update(array.tobytes())
        whole = numpy.full(count, world.rank + turn, dtype="i8")  # integers: their sum does not depend on the order
        total = numpy.empty_like(whole)
        world.Allreduce(whole, total)
        digest.update(total.tobytes())
digests = world.allgather(digest.hexdigest())
if world.rank == 0:
    print("answer", digests[0], len(set(digests)))
