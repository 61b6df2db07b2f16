"""Products of rows for every candidate: what they are fitted to, and what they are judged by."""

import dataclasses

from ..arrays import Array
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters
from ..model.robot import Robot
from ..model.robot_builder import with_friction
from ..signals.preparation import MAX_CUTOFF_SHARE
from ..signals.samples import SignalSettings
from ..signals.uniform_recording import UniformRecording
from .block_grams import block_edges, block_grams, BlockGrams, Columns, rows_of_joints
from .candidates import (
    BANDS,
    Candidate,
    CUTOFF_RATIO,
    FRICTION,
    LOAD,
    PLAIN,
    PLAIN_CUTOFF,
    ripple_terms,
    SPRING,
    Terms,
)
from .cross_validation import fit_candidate
from .ripple_orders import ripple_orders

# A band needs room below the Nyquist frequency, and rows enough for each parameter: a short
# recording that is low-passed far tells little.
LARGEST_BAND, FEWEST_ROWS = 0.2, 6.0
# Cut-off of the positions over the band in which candidates are judged: what lies in that band is
# to pass the filter of the positions whole.
JUDGING = 2.0

Training = dict[tuple[float, float, str], BlockGrams]


@dataclasses.dataclass(frozen=True)
class CandidateGrams:
    """
    Products of rows for every candidate.

    Attributes
    ----------
    even : the recording
    signals : what is not chosen
    edges : of its blocks in time (K + 1,) [s]
    columns : of all candidates
    judging : rows that candidates are judged by
    training : rows that they are fitted to, by cut-off, band and rows
    plain : those of plain least squares

    """

    even: UniformRecording
    signals: SignalSettings
    edges: Array
    columns: Columns
    judging: BlockGrams
    training: Training
    plain: BlockGrams

    def fit(self, candidate: Candidate) -> Array:
        """Return the parameters of each joint's columns, (n, b + f)."""
        return fit_candidate(candidate, self.columns, self.training[candidate.signals])

    def with_columns(self, columns: Columns, candidate: Candidate) -> 'CandidateGrams':
        """Return the products of other columns, with the filters of one candidate only."""
        even, signals, edges = self.even, self.signals, self.edges
        cutoff, band = candidate.cutoff, candidate.band
        found = block_grams(even, columns, signals, cutoff, band, edges)
        training = {
            (cutoff, band, rows): products
            for rows, products in found.items()
            if signals.rows in ('auto', rows)
        }
        judging = judging_grams(even, columns, signals, edges)
        return dataclasses.replace(self, columns=columns, training=training, judging=judging)

    def ripples(self, candidate: Candidate, values: Array) -> list[Terms]:
        """Return terms for the ripple that a candidate with some parameters leaves, by joint."""
        band, cutoff = candidate.band, candidate.cutoff
        rows = rows_of_joints(self.even, self.columns, self.signals, cutoff, band, values)
        return [ripple_terms(ripple_orders(own, band)) for own in rows]


def judging_band(even: UniformRecording) -> float:
    """Return the band [Hz] in which candidates are compared."""
    return min(PLAIN_CUTOFF, LARGEST_BAND * even.rate)


def judging_grams(
    even: UniformRecording, columns: Columns, signals: SignalSettings, edges: Array
) -> BlockGrams:
    """Return the products of the rows that candidates are judged by."""
    band = judging_band(even)
    return block_grams(even, columns, signals, JUDGING * band, band, edges)['all']


def all_columns(robot: Robot) -> Columns:
    """Return the columns of every friction that a joint may get, without a load."""
    bare = with_friction(robot, ((),) * robot.n)
    options = [*FRICTION, *robot.friction, (LOAD, SPRING)]
    terms = tuple(dict.fromkeys(term for terms in options for term in terms))
    return Columns(bare, base_parameters(bare), terms)


def observe_candidates(
    even: UniformRecording, robot: Robot, settings: IdentificationSettings
) -> CandidateGrams:
    """Return the products of all filters and rows that are open; none where rows are too few."""
    columns, edges, signals = all_columns(robot), block_edges(even), settings.signals
    band, filters = judging_band(even), _filters(even, signals)
    parameters = columns.base.rank + len(PLAIN) * robot.n
    training: Training = {}
    for cutoff, own in dict.fromkeys((*filters, (band, band))):
        found = block_grams(even, columns, signals, cutoff, own, edges)
        if (cutoff, own) == (band, band):
            plain = found['all']
        for rows, products in found.items():
            enough = products.counts.sum() >= FEWEST_ROWS * parameters
            if enough and (cutoff, own) in filters and signals.rows in ('auto', rows):
                training[cutoff, own, rows] = products
    judging = judging_grams(even, columns, signals, edges)
    return CandidateGrams(even, signals, edges, columns, judging, training, plain)


def _filters(even: UniformRecording, signals: SignalSettings) -> list[tuple[float, float]]:
    """Return what is open: cut-offs of the positions with bands of W and the torques."""
    rate, band = even.rate, judging_band(even)
    if signals.cutoff:
        return [(signals.cutoff, min(signals.band or signals.cutoff, signals.cutoff))]
    bands = [signals.band] if signals.band else [b for b in BANDS if b <= LARGEST_BAND * rate]
    pairs = [(min(CUTOFF_RATIO * b, MAX_CUTOFF_SHARE * rate), b) for b in bands]
    return pairs if signals.band else [*pairs, (band, band)]
