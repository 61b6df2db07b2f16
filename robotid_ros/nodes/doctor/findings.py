"""What the doctor looked at, by the code of a finding."""

from ...core.findings import Finding

SUBJECTS = {
    **{'F10': 'network', 'F11': 'topics', 'F12': 'controller', 'F13': 'DIDIM', 'F14': 'hardware'},
    **{'F15': 'joint states', 'F16': 'timing', 'F17': 'clock', 'F18': 'efforts'},
    **{'F19': 'description', 'F20': 'other clients', 'F21': 'disk'},
}


def subject_of(found: Finding) -> str:
    """Return what was looked at; findings of the model are about the description."""
    return SUBJECTS[found.code[:3]] if len(found.code) > 4 else 'description'
