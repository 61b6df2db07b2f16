"""Columns of one quantity: names that differ in the number or the name of a joint."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
import dataclasses
import re

from .column_names import BRACKETS, Key, Meaning, understand
from .column_words import MEASURED, OTHER, REFERENCE, WORD, WORDS, words_of
from .joint_matching import match_names, simplified

# What says more of a column than which joint it is of.
_QUANTITIES = ('position', 'velocity', 'effort', 'time', 'temperature')
_SAY_MORE = (REFERENCE | MEASURED | OTHER).union(*(WORDS[q] for q in _QUANTITIES))
_NUMBER = re.compile(r'\d+')
_PATH = re.compile(r'(.*[/.])?(?P<joint>[^/.\[\]]+)[/.][A-Za-z_]+$')
# What is put behind a name that was there before, here and by pandas, and its first number.
_REPEATED = re.compile(r' \(\{i\}\)$|\.\{i\}$')
_SECOND = {' ({i})': 2, '.{i}': 1}


@dataclasses.dataclass(frozen=True)
class Group:
    """Columns of one pattern, such as `q{i}`: (number, name of a joint or None, column) each."""

    pattern: str
    meaning: Meaning
    members: tuple[tuple[Key, str], ...]


def group(names: Iterable[str], joints: Sequence[str]) -> list[Group]:
    """
    Group columns whose names differ in the number or the name of a joint only.

    Parameters
    ----------
    names : of columns
    joints : that may be named

    """
    spelt = {simplified(joint) for joint in joints}
    likely = {name: _candidates(name, joints) for name in names}
    every = {name: dict.fromkeys([*likely[name], *_remainders(name, spelt)]) for name in likely}
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
            members.sort(key=lambda member: _order(member[0]))
            result.append(Group(pattern, meaning, tuple(members)))
    return _merged(result)


def _merged(groups: Iterable[Group]) -> list[Group]:
    """Join groups whose names differ in their unit only, and names with their repetitions."""
    families: dict[tuple[str, Meaning], list[Group]] = defaultdict(list)
    for found in groups:
        families[_family(found)].append(found)
    return [one for parts in families.values() for one in _joined(parts)]


def _family(found: Group) -> tuple[str, Meaning]:
    """Return what groups have in common that are one quantity of several joints."""
    pattern, meaning = _bare(found), found.meaning
    if meaning.unit and BRACKETS.search(found.pattern):
        meaning = dataclasses.replace(meaning, unit='any')
    # Torques of some joints and forces of others are one quantity.
    words = WORDS.get(meaning.quantity, frozenset())
    alike = (meaning.quantity if w[0].lower() in words else w[0] for w in WORD.finditer(pattern))
    return WORD.sub(lambda _: next(alike), pattern), dataclasses.replace(meaning, score=0)


def _bare(found: Group) -> str:
    """Return a pattern without unit, and without what says that a name is repeated."""
    pattern, meaning = found.pattern, found.meaning
    repeated = _REPEATED.search(pattern)
    if repeated and meaning.quantity != 'time' and found.members[0][0] == _SECOND[repeated[0]]:
        pattern = pattern[: repeated.start()]
    bracketed = BRACKETS.search(pattern)
    return pattern[: bracketed.start()].rstrip() if meaning.unit and bracketed else pattern


def _joined(parts: Sequence[Group]) -> Sequence[Group]:
    """Return one group of several that hold different joints, else these."""
    members = [(key, name, part.meaning.unit) for part in parts for key, name in part.members]
    first = min((key for key, _, _ in members if isinstance(key, int)), default=0) - 1
    numbered = [(first if key is None else key, name, unit) for key, name, unit in members]
    if len(parts) == 1 or len({key for key, _, _ in numbered}) < len(numbered):
        return parts
    numbered.sort(key=lambda member: _order(member[0]))
    units = [unit for _, _, unit in numbered]
    unit = units[0] if len(set(units)) == 1 else ','.join(units)
    meaning = dataclasses.replace(parts[0].meaning, unit=unit)
    return [Group(_bare(parts[0]), meaning, tuple((key, name) for key, name, _ in numbered))]


def _named(options: Iterable[tuple[str, Key]], joints: Sequence[str]) -> set[tuple[str, Key]]:
    """Return those options whose names are joints', in another spelling or with an affix."""
    names: dict[str, list[str]] = defaultdict(list)
    for pattern, key in options:
        if isinstance(key, str) and (key in joints or not key.isdecimal()):
            names[pattern].append(key)
    return {(pattern, key) for pattern in names for key in match_names(names[pattern], joints)}


def _order(key: Key) -> int:
    return key if isinstance(key, int) else 0


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


def _remainders(name: str, spelt: Set[str] = frozenset()) -> list[tuple[str, Key]]:
    """
    Split off the quantity at one end of a name: `shoulder_pan.position`, `Lage_ist_X`.

    What remains says nothing else, such as `target_shoulder`, or is a joint that is known.
    """
    found: list[tuple[str, Key]] = []
    for start, stop in _remaining_spans(name):
        joint = name[start:stop]
        words = {word.lower() for word in WORD.findall(joint)}
        if simplified(joint) in spelt or not words & _SAY_MORE:
            found.append((f'{name[:start]}{{joint}}{name[stop:]}', joint))
    return [option for option in found if understand(option[0])]


def _remaining_spans(name: str) -> Iterator[tuple[int, int]]:
    """Yield what a name is without its first or last word, or those that say what it is."""
    for match in (
        re.match(r'(?P<quantity>[A-Za-z]+)[_./ :-]+(?P<joint>.+)$', name),
        re.match(r'\W*(?P<joint>\w.*)[_./ :-]+(?P<quantity>[A-Za-z]+)$', name),
    ):
        if match and match.group('quantity').lower() not in REFERENCE | MEASURED:
            yield match.span('joint')
    parts = list(re.finditer(r'[^_./ :-]+', name))
    silent = [k for k, part in enumerate(parts) if _SAY_MORE.isdisjoint(words_of(part[0]))]
    if silent and len(silent) < len(parts):
        yield parts[silent[0]].start(), parts[silent[-1]].end()
