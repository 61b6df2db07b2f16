"""What the names of columns say: quantity, unit, measured or commanded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import re

from .units import FACTORS, unit_in_name

Key = int | str | None

WORDS: Mapping[str, frozenset[str]] = {
    'time': frozenset(
        't time times timestamp timestamps stamp clock secs sec seconds timems timeus timens nsec '
        'nsecs nanosec nanosecs nanoseconds zeit'.split()
    ),
    'position': frozenset(
        'q pos position positions ang angle angles theta th qpos jpos jointpos jointposition '
        'jointpositions jointangle jointangles'.split()
    ),
    'velocity': frozenset(
        'dq qd qdot vel velo velocity velocities speed speeds omega qvel dtheta thetadot jvel '
        'jointvel jointvelocity jointvelocities'.split()
    ),
    'acceleration': frozenset(
        'ddq qdd qddot acc accel acceleration accelerations qacc ddtheta'.split()
    ),
    'effort': frozenset(
        'tau torque torques effort efforts moment moments trq torq jtau qfrc force '
        'forces jointtorque jointtorques jointeffort'.split()
    ),
    'current': frozenset('current currents curr iq amps'.split()),
    'temperature': frozenset('temperature temperatures temp temps'.split()),
    'name': frozenset('name names'.split()),
}
REFERENCE = frozenset(
    'target ref reference desired des d cmd command commanded setpoint sp goal nominal set '
    'planned action'.split()
)
MEASURED = frozenset(
    'actual act meas measured msr fbk feedback real present raw state states obs observation '
    'sensor sen rec record recorded log logs logged'.split()
)
NEUTRAL = frozenset(
    'joint joints j axis axes link l field header data all abs robot value values id no m '
    'jointstate jointstates motor drive actuator est estimated filtered filt left right'.split()
)
# Other quantities: of the tool, of the model, of a drive's health.
OTHER = frozenset(
    'ext external err error errors diff tcp pose cart cartesian ee eef voltage std limit '
    'limits max min pred predicted model sim imu base orientation quat dtau mode status '
    'ft wrench index seq scaling scale factor contact'.split()
)
UNIT_WORDS = frozenset('s ms us ns rad deg rev rpm nm n a mm cm ncm dot ps per'.split())
WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+')
# A derivative where it is in front, d_theta, and what is desired behind, theta_d.
_DERIVATIVES = re.compile(r'\b(dd?) (?:q|theta|th)\b')
BRACKETS = re.compile(r'[\[(]\s*([^\[\](){}\d][^\[\](){}]*)[\])]\s*$')


@dataclass(frozen=True)
class Meaning:
    """
    What a name says.

    Attributes
    ----------
    quantity : a key of `WORDS` but 'current', which is an 'effort'
    reference : it is commanded, not measured
    current : it is a current
    unit : canonical, '' where the name has none; one for each column between commas
    score : higher where more of its words are known

    """

    quantity: str
    reference: bool
    current: bool
    unit: str
    score: int


def understand(pattern: str) -> Meaning | None:
    """Return what a pattern says, None where that is nothing or something else."""
    bracketed = BRACKETS.search(pattern)
    text = pattern[: bracketed.start()] if bracketed else pattern
    text = re.sub(r'\{\w+\}', ' ', text)
    raw = tuple(word.lower() for word in WORD.findall(text))
    raw = tuple(_DERIVATIVES.sub(r'\1q', ' '.join(raw)).split())
    words = set(raw)
    found = [quantity for quantity, known in WORDS.items() if words & known]
    if 'current' in found and len(found) > 1:
        found.remove('current')  # the present one
    if words & OTHER or not found:
        return _observed(words)
    quantity = _one_quantity(found, words)
    if quantity is None:
        return None
    current = quantity == 'current'
    quantity = 'effort' if current else quantity
    unit = (
        unit_in_name(raw, bracketed.group(1) if bracketed else '', quantity)
        if (quantity in FACTORS)
        else ''
    )
    known = WORDS[quantity] | REFERENCE | MEASURED | NEUTRAL | WORDS['current']
    score = len(words & MEASURED) - 2 * len(words - known - UNIT_WORDS)
    return Meaning(quantity, bool(words & REFERENCE), current, unit, score)


def _observed(words: set[str]) -> Meaning | None:
    """`observation.state` and `action` are the positions of LeRobot's data sets."""
    if words in ({'observation', 'state'}, {'action'}):
        return Meaning('position', words == {'action'}, False, '', 0)
    return None


def _one_quantity(found: Sequence[str], words: set[str]) -> str | None:
    """Choose between several: `q_dot` is a velocity, `header.stamp` a time."""
    if 'time' in found and len(found) > 1 and words & WORDS['time'] <= {'t', 'sec', 's'}:
        found = [quantity for quantity in found if quantity != 'time']
    if found in (['position', 'velocity'], ['position', 'acceleration']):
        found = found[words & WORDS['position'] <= {'ang', 'angle'} :]  # ang_vel
    if len(found) > 1:
        return None
    if found == ['position'] and words & {'dot', 'ddot'}:
        return 'acceleration' if words & {'ddot', 'd'} else 'velocity'
    return found[0]
