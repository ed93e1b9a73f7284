"""Points per second of Devito on the grid of the `seismic` benchmark, to compare with it.

    python3 -m venv venv && venv/bin/pip install devito==4.8.23
    DEVITO_LANGUAGE=openmp DEVITO_ARCH=gcc OMP_NUM_THREADS=1 venv/bin/python benches/peers/devito_acoustic.py
    cargo bench -p ft-benches --bench seismic -- order/8

Run the two in turn, several times each, with nothing else on the machine, and compare the best of each: the line "all"
here with the throughput ("Gelem/s") there. Both count the points of the whole grid, absorbing layers included.

Options: --shape 1080x1080 (the whole grid), --steps 600, --order 8, --repeats 5.

The equation, order, precision (f32), velocity, spacing and time step are those of the benchmark. The boundary is a
plain damping term over 40 points, as in Devito's own examples, which is cheaper and absorbs less than matched layers;
every point pays for it. One source, no receivers.
"""

import argparse
import statistics

import numpy as np
from devito import Eq, Function, Grid, Operator, SparseTimeFunction, TimeFunction, configuration, solve

VELOCITY = 3000.0
SPACING = 10.0
TIME_STEP = 0.0012
PEAK_FREQUENCY = 15.0
DAMPED_POINTS = 40


def ricker(samples):
    a = (np.pi * PEAK_FREQUENCY * (np.arange(samples) * TIME_STEP - 1.5 / PEAK_FREQUENCY)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def depth(points):
    """How deep in a layer each point is, from 0 to 1."""
    from_edge = np.minimum(np.arange(points), np.arange(points)[::-1])
    return np.clip(1 - from_edge / DAMPED_POINTS, 0, None)


def damping(shape):
    """Rises with the square of the depth in the layer, to 0.02 per time step."""
    return 0.02 / TIME_STEP / VELOCITY**2 * np.maximum.outer(*map(depth, shape)) ** 2


def build(shape, order, steps):
    extent = [(points - 1) * SPACING for points in shape]
    grid = Grid(shape=shape, extent=extent, dtype=np.float32)
    slowness = Function(name="m", grid=grid, space_order=order)
    slowness.data[:] = 1 / VELOCITY**2
    damp = Function(name="damp", grid=grid, space_order=order)
    damp.data[:] = damping(shape)
    u = TimeFunction(name="u", grid=grid, time_order=2, space_order=order)
    update = Eq(u.forward, solve(slowness * u.dt2 - u.laplace + damp * u.dt, u.forward))
    source = SparseTimeFunction(name="src", grid=grid, npoint=1, nt=steps + 2)
    source.coordinates.data[0, :] = [length / 2 for length in extent]
    source.data[:, 0] = ricker(steps + 2)
    injection = source.inject(field=u.forward, expr=source * grid.stepping_dim.spacing**2 / slowness)
    return Operator([update, injection], subs=grid.spacing_map), u


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", type=lambda text: tuple(map(int, text.split("x"))), default=(1080, 1080))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--order", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    configuration["log-level"] = "ERROR"

    operator, u = build(options.shape, options.order, options.steps)
    updates = options.shape[0] * options.shape[1] * options.steps / 1e9
    rates = []
    for _ in range(options.repeats):
        u.data[:] = 0
        sections = [section.time for section in operator.apply(time_M=options.steps, dt=TIME_STEP).values()]
        assert np.isfinite(u.data).all() and np.abs(u.data).max() > 0
        rates.append(updates / sum(sections))
        print(f"order {options.order}: all {rates[-1]:.3f}, stencil alone {updates / max(sections):.3f} Gpoints/s")
    print(f"order {options.order}: best {max(rates):.3f}, median {statistics.median(rates):.3f} Gpoints/s")


if __name__ == "__main__":
    main()
