"""One thread of linear algebra, so that the same seed gives the same result."""

import os


def limit_blas_threads() -> None:
    """
    Let this process and its children use one thread, if NumPy is not imported there yet.

    Sums of several threads differ in the last bit, and a search makes another trajectory of it;
    its matrices are too small for threads anyway.
    """
    os.environ |= dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), '1')
