"""Stochastic gradient descent with data on all processes: each step sums a gradient of 200,000 numbers. Prints the loss."""
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
inputs, hidden = 400, 500
random = numpy.random.default_rng(1)
first, second = random.standard_normal((inputs, hidden)) / 20, random.standard_normal((hidden, 1)) / 20
truth = random.standard_normal((inputs, 1))
own = numpy.random.default_rng(100 + world.rank)
loss = numpy.zeros(1)
for step in range(150):
    x = own.standard_normal((16, inputs))
    inner = numpy.tanh(x @ first)
    wrong = inner @ second - x @ truth / 20
    gradient = numpy.concatenate([(x.T @ ((wrong @ second.T) * (1 - inner**2))).ravel(), (inner.T @ wrong).ravel()])
    total = numpy.empty_like(gradient)
    world.Allreduce(gradient, total)
    total /= 16 * world.size
    first -= 0.05 * total[: inputs * hidden].reshape(inputs, hidden)
    second -= 0.05 * total[inputs * hidden :].reshape(hidden, 1)
    world.Allreduce(numpy.array([(wrong**2).mean()]), loss)
if world.rank == 0:
    print("answer", repr(float(loss[0]) / world.size))
