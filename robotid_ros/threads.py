"""Limits of threads of linear algebra, so that the same seed gives the same result."""

import os


def limit_blas_threads() -> None:
    """
    Let this process and its children use one thread, if NumPy is not imported there yet.

    Sums of several threads differ in the last bit, and an optimiser then finds another trajectory;
    its matrices are too small to gain from threads.
    """
    os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')
