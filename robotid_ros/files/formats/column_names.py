"""What the names of columns say: quantity, joint, unit, measured or commanded."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import re

from .joint_matching import match_names
from .units import FACTORS, unit_in_name

Key = int | str | None

WORDS: Mapping[str, frozenset[str]] = {
    'time': frozenset(
        't time timestamp timestamps stamp clock secs sec seconds timems timeus timens nsec nsecs '
        'nanosec nanosecs nanoseconds'.split()
    ),
    'position': frozenset(
        'q pos position positions angle angles theta th qpos jpos jointpos jointposition '
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
    'name': frozenset('name names'.split()),
}
REFERENCE = frozenset(
    'target ref reference desired des d cmd command commanded setpoint sp goal nominal set '
    'planned action'.split()
)
MEASURED = frozenset(
    'actual act meas measured msr fbk feedback real present raw state states obs observation '
    'sensor'.split()
)
NEUTRAL = frozenset(
    'joint joints j axis axes link l field header data robot value values id no m jointstate '
    'jointstates motor drive actuator est estimated filtered filt left right'.split()
)
# Other quantities: of the tool, of the model, of a drive's health.
OTHER = frozenset(
    'ext external err error errors diff tcp pose cart cartesian ee eef temperature temp voltage '
    'std limit limits max min pred predicted model sim imu base orientation quat dtau mode status '
    'ft wrench index seq scaling scale factor contact'.split()
)
UNIT_WORDS = frozenset('s ms us ns rad deg rev rpm nm n a mm cm ncm dot ps'.split())
_WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+')
_BRACKETS = re.compile(r'[\[(]\s*([^\[\](){}\d][^\[\](){}]*)[\])]\s*$')
_NUMBER = re.compile(r'\d+')
_PATH = re.compile(r'(.*[/.])?(?P<joint>[^/.\[\]]+)[/.][A-Za-z_]+$')


@dataclass(frozen=True)
class Meaning:
    """
    What a name says.

    Attributes
    ----------
    quantity : a key of `WORDS` but 'current', which is an 'effort'
    reference : it is commanded, not measured
    current : it is a current
    unit : canonical, '' where the name has none
    score : higher where more of its words are known

    """

    quantity: str
    reference: bool
    current: bool
    unit: str
    score: int


@dataclass(frozen=True)
class Group:
    """Columns of one pattern, such as `q{i}`: (number, name of a joint or None, column) each."""

    pattern: str
    meaning: Meaning
    members: tuple[tuple[Key, str], ...]


def understand(pattern: str) -> Meaning | None:
    """Return what a pattern says, None where that is nothing or something else."""
    bracketed = _BRACKETS.search(pattern)
    text = pattern[: bracketed.start()] if bracketed else pattern
    text = re.sub(r'\{\w+\}', ' ', text)
    raw = tuple(word.lower() for word in _WORD.findall(text))
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
    if len(found) > 1:
        return None
    if found == ['position'] and words & {'dot', 'ddot'}:
        return 'velocity' if 'dot' in words else 'acceleration'
    return found[0]


def group(names: Iterable[str], joints: Sequence[str]) -> list[Group]:
    """
    Group columns whose names differ in the number or the name of a joint only.

    Parameters
    ----------
    names : of columns
    joints : that may be named

    """
    likely = {name: _candidates(name, joints) for name in names}
    every = {name: dict.fromkeys([*likely[name], *_remainders(name)]) for name in likely}
    named = _named((option for options in every.values() for option in options), joints)
    found = {name: [o for o in every[name] if o in named] or likely[name] for name in likely}
    counts = Counter(pattern for options in found.values() for pattern, _ in options)
    groups: dict[str, list[tuple[Key, str]]] = defaultdict(list)
    for name, options in found.items():
        if options:
            pattern, key = max(options, key=lambda option: counts[option[0]])
            groups[pattern].append((key, name))
    result = []
    for pattern, members in groups.items():
        meaning = understand(pattern)
        if meaning is not None:
            result.append(Group(pattern, meaning, tuple(sorted(members, key=_order))))
    return result


def _named(options: Iterable[tuple[str, Key]], joints: Sequence[str]) -> set[tuple[str, Key]]:
    """Return those options whose names are joints', in another spelling or with an affix."""
    names: dict[str, list[str]] = defaultdict(list)
    for pattern, key in options:
        if isinstance(key, str) and (key in joints or not key.isdecimal()):
            names[pattern].append(key)
    return {(pattern, key) for pattern in names for key in match_names(names[pattern], joints)}


def _order(member: tuple[Key, str]) -> tuple[int, str]:
    return (member[0], '') if isinstance(member[0], int) else (0, '')


def _candidates(name: str, joints: Sequence[str]) -> list[tuple[str, Key]]:
    """Return patterns that a name may follow, the likeliest first."""
    found: list[tuple[str, Key]] = []
    for joint in sorted(joints, key=len, reverse=True):
        match = re.search(rf'(?<![^\W_]){re.escape(joint)}(?![^\W_])', name)
        if match:
            found.append((f'{name[: match.start()]}{{joint}}{name[match.end() :]}', joint))
            break
    numbers = list(_NUMBER.finditer(name))
    for match in reversed(numbers):
        pattern = f'{name[: match.start()]}{{i}}{name[match.end() :]}'
        found.append((pattern, int(match.group())))
    found += [] if numbers else [(name, None)]
    if path := _PATH.match(name):
        pattern = f'{name[: path.start("joint")]}{{joint}}{name[path.end("joint") :]}'
        found.append((pattern, path['joint']))
    found += [] if numbers else _remainders(name)
    return [option for option in dict.fromkeys(found) if understand(option[0])]


def _remainders(name: str) -> list[tuple[str, Key]]:
    """Split off the quantity at one end of a name: `shoulder_pan.position`."""
    found: list[tuple[str, Key]] = []
    for match in (
        re.match(r'(?P<quantity>[A-Za-z]+)[_./ :-]+(?P<joint>.+)$', name),
        re.match(r'\W*(?P<joint>\w.*)[_./ :-]+(?P<quantity>[A-Za-z]+)$', name),
    ):
        if match is None or match.group('quantity').lower() in REFERENCE | MEASURED:
            continue
        start, stop = match.span('joint')
        pattern = f'{name[:start]}{{joint}}{name[stop:]}'
        words = {word.lower() for word in _WORD.findall(match.group('joint'))}
        if not words & (REFERENCE | MEASURED | OTHER) and not any(
            words & WORDS[q] for q in ('position', 'velocity', 'effort', 'time')
        ):
            found.append((pattern, match.group('joint')))
    return [option for option in found if understand(option[0])]
