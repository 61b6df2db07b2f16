"""Which joints of a robot the names in a file stand for."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
import re

from ...core.model.missing_joints import beginning, matching_names, without_beginning

# Names that have to differ by the same affix: one alone may end like another by chance.
MIN_PAIRS = 2
_DIGITS = '0123456789'


def match_names(found: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """
    Return which joint each name in a file is, {} where that is not certain.

    The same names, but for case, signs and the word joint; else names that differ by one prefix or
    suffix, at last without the words that all names of the file begin with: `ur10e_elbow` is
    `ur5_elbow`. Names that are no joint are left out.

    Parameters
    ----------
    found : in the file
    known : joints of the robot

    """
    shorter = without_beginning(found)
    matched = _same(found, known)
    for names in ({name: name for name in found}, shorter):
        for shape in (str, simplified):
            matched = matched or _by_affix({shape(n): names[n] for n in names}, known, shape)
    return {} if _counts_otherwise(found, matched, known) else matched


def numbers_in(names: Sequence[str]) -> list[int]:
    """Return the numbers of names that differ in one number only, [] for others."""
    if len(set(names)) < 2:
        return []
    start = len(beginning(names).rstrip(_DIGITS))
    stop = len(beginning([name[:start:-1] for name in names]).rstrip(_DIGITS))
    middles = [name[start : len(name) - stop] for name in names]
    return [int(text) for text in middles] if all(map(str.isdecimal, middles)) else []


def simplified(name: str) -> str:
    """Return a name without case, signs and the word joint."""
    return re.sub(r'[^a-z0-9]|joint', '', name.lower())


def _same(found: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Match names that are equal, then those of the others that are spelt otherwise."""
    same = {name: name for name in found if name in known}
    free = {joint: simplified(joint) for joint in known if joint not in same}
    left = {name: simplified(name) for name in found if name not in same}
    for name, text in left.items():
        alike = [joint for joint, other in free.items() if other == text]
        if len(alike) == 1 and list(left.values()).count(text) == 1:
            same[name] = alike[0]
    return same


def _by_affix(
    found: dict[str, str], known: Sequence[str], shape: Callable[[str], str]
) -> dict[str, str]:
    """Match most of the names, {in a shape: name}, by one affix, where no other does as well."""
    shapes = [shape(joint) for joint in known]
    joints = {text: joint for text, joint in zip(shapes, known, strict=True) if text}
    if '' in found or max(Counter(shapes).values(), default=0) > 1:
        return {}
    pairs = matching_names(list(joints), list(found))
    others = [text for text in joints if text not in dict(pairs)]
    as_well = matching_names(others, [text for _, text in pairs])
    few = len(pairs) < min(MIN_PAIRS, len(known)) or 2 * len(pairs) < len(found)
    if few or len(as_well) == len(pairs) or _only_count(pairs, found, shapes):
        return {}
    return {found[text]: joints[joint] for joint, text in pairs}


def _only_count(
    pairs: Sequence[tuple[str, str]], found: Collection[str], shapes: Sequence[str]
) -> bool:
    """Whether mere numbers meet joints of which few have one: `J[1]` is no `wrist_1`."""
    if not all(map(str.isdecimal, found)):
        return False
    kinds = [re.sub(r'\d+', '#', text) for text in shapes]
    alike = kinds.count(re.sub(r'\d+', '#', pairs[0][0]))
    return len(pairs) < len(found) or 2 * alike <= len(shapes)


def _counts_otherwise(found: Sequence[str], matched: dict[str, str], known: Sequence[str]) -> bool:
    """Whether names are counted from another number: `joint_0` is `joint_1`."""
    if len(matched) == len(found) or not numbers_in(found):
        return False
    left = [joint for joint in known if joint not in matched.values()]
    return any(numbers_in([*matched.values(), joint]) for joint in left)
