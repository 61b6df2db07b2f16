"""What the names of columns say: quantity, unit, measured or commanded, and which joint."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
import functools
import itertools
import re
from types import MappingProxyType
from typing import Any, NamedTuple
import unicodedata

from ...core.setup.joint_choice import matching_names, without_beginning
from .units import (
    ALIASES,
    BRACKETS_ONLY,
    canonical,
    CURRENTS,
    FACTORS,
    is_unit,
    quantity_of,
    WITHOUT_VALUE,
)

COLUMN_NAMES: Mapping[str, frozenset[str]] = {
    'time': frozenset(
        't time times timestamp timestamps stamp clock secs sec seconds timems timeus timens nsec '
        'nsecs nanosec nanosecs nanoseconds ts date datetime elapsed duration ipoc '
        'datum '
        'zeit zeitstempel temps tiempo tempo'.split()
    ),
    'position': frozenset(
        'q pos position positions ang angle angles theta th qpos jpos '
        'winkel lage posicion angulo posizione angolo posicao'.split()
    ),
    'velocity': frozenset(
        'dq qd qdot vel velo velocity velocities speed speeds omega qvel dtheta thetadot jvel '
        'geschwindigkeit drehzahl winkelgeschwindigkeit vitesse velocidad velocita '
        'velocidade'.split()
    ),
    'acceleration': frozenset(
        'ddq qdd qddot acc accel acceleration accelerations qacc ddtheta '
        'beschleunigung aceleracion accelerazione'.split()
    ),
    'effort': frozenset(
        'tau tao torque torques eff effort efforts moment moments trq torq jtau qfrc force forces '
        'drehmoment kraft couple par coppia momento'.split()
    ),
    'current': frozenset(
        'current currents curr cur iq amps strom courant corriente corrente'.split()
    ),
    'temperature': frozenset('temperature temperatures temp temperatur temperatura'.split()),
    'name': frozenset('name names'.split()),
}
REFERENCE = frozenset(
    'target ref reference desired des d cmd command commanded setpoint sp goal nominal set '
    'planned action soll sollwert consigne cible deseada desiderata'.split()
)
MEASURED = frozenset(
    'actual act meas measured msr fbk feedback real present raw state states obs observation '
    'sensor sen rec record recorded log logs logged ist istwert mesure medida misurata'.split()
)
NEUTRAL = frozenset(
    'joint joints j axis axes link l field header data all abs robot value values id no m '
    'jointstate jointstates motor drive actuator est estimated filtered filt left right '
    'gelenk achse antrieb axe articulation articulacion eje giunto asse junta'.split()
)
# Other quantities: of the tool, of the model, of a drive's health.
OTHER = frozenset(
    'ext external err error errors diff tcp pose cart cartesian ee eef voltage std limit '
    'limits max min pred predicted model sim imu base orientation quat dtau mode status '
    'ft wrench index seq scaling scale factor contact '
    'spannung schleppfehler fehler'.split()
)
UNIT_WORDS = frozenset('s ms us ns rad deg rev rpm nm n a mm cm ncm dot ps per'.split())
# Names that say more than their words.
IDIOMS: Mapping[frozenset[str], tuple[str, bool]] = {
    frozenset(('observation', 'state')): ('position', False),  # of LeRobot
    frozenset(('action',)): ('position', True),
    frozenset(('axis', 'act')): ('position', False),  # of KUKA's controllers
    frozenset(('x', 'value')): ('time', False),  # of LabVIEW
}
WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+')
_QUANTITIES = frozenset[str]().union(*COLUMN_NAMES.values())
_KNOWN = _QUANTITIES | REFERENCE | MEASURED | NEUTRAL | OTHER
_SHORTEST = 3  # of the parts of a compound


@functools.cache
def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without accents; of a compound both parts."""
    plain = unicodedata.normalize('NFKD', text).encode('ascii', 'ignore').decode()
    found = list[str]()
    for word in map(str.lower, WORD.findall(plain)):
        if word in _KNOWN:
            found.append(word)
        else:
            cuts = range(_SHORTEST, len(word) - _SHORTEST + 1)
            pairs = ((word[:k], word[k:]) for k in cuts)
            found += next((p for p in pairs if p[1] in _QUANTITIES and p[0] in _KNOWN), (word,))
    return tuple(found)


Key = int | str | None

# A derivative where it is in front, d_theta, and what is desired behind, theta_d.
_DERIVATIVES = re.compile(r'\b(dd?) (?:q|theta|th)\b')
# A unit between brackets: no index, but per mille.
BRACKETS = re.compile(r'[\[(]\s*([^\[\](){}\d][^\[\](){}]*|[\d.]+ ?%|100 ?ns|1/[a-z]+)[\])]\s*$')


class Meaning(NamedTuple):
    """
    What a name says: key of `COLUMN_NAMES` but 'current', whether it is commanded, and a current.

    `unit` is canonical, '' where the name has none; one for each column between commas. `score` is
    higher where more of its words are known.
    """

    quantity: str
    reference: bool
    current: bool
    unit: str
    score: int


NOTHING = Meaning('', False, False, '', 0)


@functools.cache
def understand(pattern: str) -> Meaning | None:
    """Return what a pattern says, None where that is nothing or something else."""
    bracketed = BRACKETS.search(pattern)
    inside = bracketed.group(1) if bracketed else ''
    text = re.sub(r'\{\w+\}', ' ', pattern[: bracketed.start()] if bracketed else pattern)
    raw = tuple(_DERIVATIVES.sub(r'\1q', ' '.join(words_of(text))).split())
    words = set(raw)
    found = [quantity for quantity, known in COLUMN_NAMES.items() if words & known]
    if words & OTHER:
        return None
    if not found and (idiom := IDIOMS.get(frozenset(words))):
        return Meaning(*idiom, False, '', 0)
    # Of several: `current position`, `q_dot`, `header.stamp`, `ang_vel`.
    if 'current' in found and len(found) > 1:
        found.remove('current')
    if 'time' in found and len(found) > 1 and words & COLUMN_NAMES['time'] <= {'t', 'sec', 's'}:
        found.remove('time')
    if found in (['position', 'velocity'], ['position', 'acceleration']):
        found = found[words & COLUMN_NAMES['position'] <= {'ang', 'angle'} :]
    if found == ['position'] and words & {'dot', 'ddot'}:
        found = ['acceleration' if words & {'ddot', 'd'} else 'velocity']
    quantity = found[0] if found else inside and quantity_of(inside)
    if not quantity or len(found) > 1:
        return None
    unit, current = canonical(inside) if inside else '', quantity == 'current'
    if found:
        quantity = 'effort' if current else quantity
        # Without one in brackets, what the name ends with; `rad_s`, `rad_per_s`: rad/s.
        units = {*FACTORS.get(quantity, ())} | WITHOUT_VALUE.get(quantity, frozenset())
        ends = [word for word in raw if word != 'per'][-2:]
        texts = ('/'.join(ends), ''.join(ends), *ends[-1:])
        if unit not in units:
            known = (ALIASES.get(text, text) for text in texts)
            unit = next((each for each in known if each in units - {*BRACKETS_ONLY}), '')
    strange = (
        words
        - COLUMN_NAMES[quantity]
        - COLUMN_NAMES['current']
        - REFERENCE
        - MEASURED
        - NEUTRAL
        - UNIT_WORDS
    )
    score = len(words & MEASURED) - 2 * len(strange) - (not found)
    current |= not found and unit in CURRENTS
    return Meaning(quantity, bool(words & REFERENCE), current, unit, score)


def is_unknown_unit(text: str) -> bool:
    """Return whether what stands in brackets behind a name is neither a unit nor a known word."""
    return not (is_unit(text) or set(words_of(text)) & _KNOWN)


# Names that have to differ by the same affix: one alone may end like another by chance.
MIN_PAIRS = 2
_NUMBER = re.compile(r'\d+')
# What a name in lower case may have or not: signs and the word joint.
_FRILLS = re.compile('[^a-z0-9]|joint')


def match_joint_names(found: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """
    Return which joint each name in a file is, {} where that is not certain.

    The same names as the `known` joints, but for case, signs and the word joint; else names that
    differ by one prefix or suffix, at last without the words that all names of the file begin
    with: `ur10e_elbow` is `ur5_elbow`. Names that are no joint are left out.
    """
    plain = {name: _FRILLS.sub('', name.lower()) for name in (*found, *known)}
    matched = {name: name for name in found if name in known}
    free = [joint for joint in known if joint not in matched]
    left = [name for name in found if name not in matched]
    texts = [plain[name] for name in left]
    for name in left:
        alike = [joint for joint in free if plain[joint] == plain[name]]
        if len(alike) == 1 and texts.count(plain[name]) == 1:
            matched[name] = alike[0]
    if not matched:
        matched = _by_affix({plain[name]: name for name in found}, known)
    if not matched:
        shorter = without_beginning(found).items()
        matched = _by_affix({_FRILLS.sub('', k.lower()): name for k, name in shorter}, known)
    if len(matched) < len(found) and numbers_in(found):
        # Counted from another number: `joint_0` is `joint_1`.
        left_out = [joint for joint in known if joint not in matched.values()]
        if any(numbers_in([*matched.values(), joint]) for joint in left_out):
            return {}
    return matched


def numbers_in(names: Sequence[str]) -> list[int]:
    """Return the numbers of names that differ in one number only, [] for others."""
    if len({_NUMBER.sub('#', name) for name in names}) != 1:
        return []
    differ = [n for n in zip(*map(_NUMBER.findall, names), strict=True) if len(set(n)) > 1]
    return [int(text) for text in differ[0]] if len(differ) == 1 else []


def _by_affix(found: dict[str, str], known: Sequence[str]) -> dict[str, str]:
    """Match most of the names, {without frills: name}, by one affix; `J[1]` is no `wrist_1`."""
    shapes = [_FRILLS.sub('', joint.lower()) for joint in known]
    joints = {text: joint for text, joint in zip(shapes, known, strict=True) if text}
    if '' in found or max(Counter(shapes).values(), default=0) > 1:
        return {}
    pairs = matching_names(list(joints), list(found))
    own, others = {text for _, text in pairs}, [text for text in joints if text not in dict(pairs)]
    few = len(pairs) < min(MIN_PAIRS, len(known)) or 2 * len(pairs) < len(found)
    # Other joints that the names are as well, and of two arms in a file, which one is the robot?
    as_well = matching_names(others, [text for _, text in pairs])
    twins = matching_names(list(joints), [text for text in found if text not in own])
    if few or len(pairs) in (len(as_well), len(twins)):
        return {}
    if all(map(str.isdecimal, found)):
        kinds = [_NUMBER.sub('#', text) for text in (pairs[0][0], *shapes)]
        if 2 * (kinds.count(kinds[0]) - 1) <= len(shapes) or len(pairs) < len(found):
            return {}
    return {found[text]: joints[joint] for joint, text in pairs}


# What says more of a column than which joint it is of.
_SAY_MORE = (REFERENCE | MEASURED | OTHER).union(
    *(COLUMN_NAMES[q] for q in ('position', 'velocity', 'effort', 'time', 'temperature'))
)
_PATH = re.compile(r'(.*[/.])?(?P<joint>[^/.\[\]]+)[/.][A-Za-z_]+$')
_PART, _IN_PATH = re.compile(r'[^_./ :\[\]()-]+'), re.compile(r'(^|[/.])\{joint\}[/.]')
# What is put behind a name that was there before, here and by pandas, and its first number.
_REPEATED = re.compile(r' \(\{i\}\)$|\.\{i\}$')
_SECOND = {' ({i})': 2, '.{i}': 1}
EMPTY: Mapping[str, tuple[str, Key]] = MappingProxyType({})


class Selection(NamedTuple):
    """
    Columns of one quantity, of one pattern such as `q{i}`.

    Members are the number or name of a joint (None: neither) and its column; `meaning` is what
    their names say, if anything.
    """

    pattern: str
    members: tuple[tuple[Key, str], ...]
    meaning: Meaning = NOTHING


def group(
    names: Iterable[str], joints: Sequence[str], places: Mapping[str, tuple[str, Key]] = EMPTY
) -> list[Selection]:
    """Group columns that mean something by names that differ in the joint, or only the unit."""
    # Patterns that each name may follow and the joint in it, the likeliest first. That is one of
    # the robot's, a number, what stands before the last part of a path, or all neighbours in a
    # part that say nothing else: `arm.base.position`, `Lage_ist_X`.
    spelt = {_FRILLS.sub('', joint.lower()) for joint in joints}
    every = dict[str, list[tuple[str, Key]]]()
    for name in names:
        if name in places:
            every[name] = [places[name]]
            continue
        known, silent = list[tuple[str, Key]](), list[tuple[str, Key]]()
        if path := _PATH.match(name):
            start, stop = path.span('joint')
            silent.append((f'{name[:start]}{{joint}}{name[stop:]}', path['joint']))
        bracketed = BRACKETS.search(name)
        parts = [*_PART.finditer(name, 0, bracketed.start() if bracketed else len(name))]
        said = [not _SAY_MORE.isdisjoint(words_of(part[0])) for part in parts]
        for i, k in itertools.combinations_with_replacement(range(len(parts)), 2):
            start, stop = parts[i].start(), parts[k].end()
            text, option = name[start:stop], f'{name[:start]}{{joint}}{name[stop:]}'
            whole = i == 0 or said[i - 1] or name[parts[i - 1].end()] in '/.'
            whole &= k + 1 == len(parts) or said[k + 1] or name[stop] in '/.'
            if _FRILLS.sub('', text.lower()) in spelt:
                known.append((option, text))
            elif whole and not any(said[i : k + 1]) and not {*'/.'} & {*text}:
                silent.append((option, text))
        numbers: list[tuple[str, Key]] = [
            (f'{name[: number.start()]}{{i}}{name[number.end() :]}', int(number[0]))
            for number in reversed([*_NUMBER.finditer(name)])
        ]
        options = dict.fromkeys([*known, *(numbers or [(name, None)]), *silent])
        every[name] = [option for option in options if understand(option[0])]
    # Names that are joints', in another spelling or with an affix, come first; where no joint is
    # known numbers come before words. Of these the pattern that most columns follow.
    words: dict[str, list[str]] = defaultdict(list)
    for pattern, key in itertools.chain.from_iterable(every.values()):
        if isinstance(key, str) and (key in joints or not key.isdecimal()):
            words[pattern].append(key)
    named: set[tuple[str, Key]] = {
        (pattern, key) for pattern in words for key in match_joint_names(words[pattern], joints)
    }
    for name, own in every.items():
        numbered = _NUMBER.search(name) and name not in places
        every[name] = [o for o in own if o in named] or [
            o for o in own if not (isinstance(o[1], str) and numbered) or _IN_PATH.search(o[0])
        ]
    counts = Counter(pattern for own in every.values() for pattern, _ in own)
    groups: dict[str, list[tuple[Key, str]]] = defaultdict(list)
    for name, own in every.items():
        if own:
            pattern, key = max(own, key=lambda option: counts[option[0]])
            groups[pattern].append((key, name))
    families: dict[Any, list[tuple[str, Selection]]] = defaultdict(list)
    for pattern, members in groups.items():
        if (meaning := understand(pattern)) is None:
            continue
        members.sort(key=lambda m: m[0] if isinstance(m[0], int) else 0)
        bare, kind, repeated = pattern, meaning, _REPEATED.search(pattern)
        if repeated and meaning.quantity != 'time' and members[0][0] == _SECOND[repeated[0]]:
            bare = pattern[: repeated.start()]
        if meaning.unit and (bracketed := BRACKETS.search(bare)):
            bare, kind = bare[: bracketed.start()].rstrip(), meaning._replace(unit='any')
        alike = COLUMN_NAMES.get(meaning.quantity, frozenset())
        spoken = tuple(meaning.quantity if w.lower() in alike else w for w in WORD.findall(bare))
        family = spoken, tuple(WORD.split(bare)), kind._replace(score=0)
        families[family].append((bare, Selection(pattern, tuple(members), meaning)))
    result = list[Selection]()
    for alternatives in families.values():
        all_of = [(m, part.meaning.unit) for _, part in alternatives for m in part.members]
        first = min((key for (key, _), _ in all_of if isinstance(key, int)), default=0) - 1
        rows = [((first if key is None else key, name), unit) for (key, name), unit in all_of]
        # Or they are of the same joints.
        if len(alternatives) == 1 or len({key for (key, _), _ in rows}) < len(rows):
            result += [part for _, part in alternatives]
            continue
        rows.sort(key=lambda row: row[0][0] if isinstance(row[0][0], int) else 0)
        units = [unit for _, unit in rows]
        unit = units[0] if len(set(units)) == 1 else ','.join(units)
        bare, one = alternatives[0]
        columns = tuple(member for member, _ in rows)
        result.append(Selection(bare, columns, one.meaning._replace(unit=unit)))
    return result
