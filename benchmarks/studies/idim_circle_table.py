"""The table of the circle: errors of both families of Fourier series, and which is better."""

import numpy as np
from scipy.stats import t as student

FAMILIES = ('ffs', 'mfs')
OURS, PAPER = 'as configured', 'as Wu et al.'
# Of the interval for the ratio of the families.
CONFIDENCE = 0.95


class Table:
    """Errors of each way and family, a design (draws, n + 1), and how the robot followed."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[np.ndarray]] = {}
        self.tracking: dict[str, list[np.ndarray]] = {family: [] for family in FAMILIES}

    def show(self) -> None:
        """Print it, with the standard deviations of designs and of draws."""
        print('  RMS of q − q_r in each period, all joints [mrad]')
        for family, values in self.tracking.items():
            print(f'    {family} ', *(f'{x:7.3f}' for x in np.mean(values, axis=0)))
        print(
            '  RMS of the torque by joint [N·m], of all joints [%], of that σ of designs and of '
            'the draws of one'
        )
        for way in (OURS, PAPER):
            for family in FAMILIES:
                found = np.array(self.rows[way, family])
                mean, total = found.mean(axis=(0, 1)), found[:, :, -1]
                listed = ' '.join(f'{x:7.4f}' for x in mean[:-1])
                spread = total.mean(axis=1).std(ddof=1), np.sqrt(total.var(axis=1, ddof=1).mean())
                print(
                    f'    {way:14s} {family} {listed}  {mean[-1]:6.3f} % '
                    f'({spread[0]:.3f}, {spread[1]:.3f})'
                )
            print(f'    {"":14s} {self.difference(way)}')

    def ratio(self, way: str) -> tuple[float, float, float]:
        """
        Return the ratio of FFS to MFS and its interval, by pairs of designs.

        The draws of a design are no new designs: each counts by their mean.
        """
        ffs, mfs = (
            np.log(np.array(self.rows[way, family])[:, :, -1].mean(axis=1)) for family in FAMILIES
        )
        gap = ffs - mfs
        reach = student.ppf(0.5 + 0.5 * CONFIDENCE, len(gap) - 1) * gap.std(ddof=1)
        reach /= np.sqrt(len(gap))
        return tuple(float(np.exp(gap.mean() + k * reach)) for k in (0.0, -1.0, 1.0))

    def difference(self, way: str) -> str:
        """Say which family is better."""
        ratio, low, high = self.ratio(way)
        said = 'mfs is better' if low > 1.0 else 'ffs is better' if high < 1.0 else 'no difference'
        interval = f'{low:.3f} to {high:.3f} at {100 * CONFIDENCE:.0f} %'
        return f'error of ffs over that of mfs {ratio:.3f} ({interval}): {said}'
