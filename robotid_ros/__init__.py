"""
Dynamic parameters of robots: from a log of positions and efforts to a model that can be used.

    import robotid_ros as rid

    robot = rid.load_robot('arm.urdf')
    result = rid.identify('log.csv', robot)

The names below are the library; they are imported when they are first used, so that this import
costs next to nothing. Their meaning changes with a new major version only.
"""

from importlib import import_module
from typing import Any, TYPE_CHECKING

__version__ = '0.1.0'

# Names of the library, by the module that has them.
_NAMES = {
    'library': (
        *('load', 'from_arrays', 'load_robot', 'identify', 'validate', 'design'),
        *('save_design', 'InverseDynamics'),
    ),
    'simulated_session': ('simulate',),
    'files.collect_results': ('save',),
    'core.findings': ('Finding', 'render', 'Severity'),
    'core.model.robot': ('Robot',),
    'core.signals.recording': ('Recording',),
    'core.pipeline.identification': ('Identification',),
    'core.verdict': ('judge', 'Verdict'),
    'core.regression.validation': ('Validation',),
    'core.excitation.design': ('Design',),
    'exceptions': ('RobotIdError',),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = ['__version__', *_MODULES]

if TYPE_CHECKING:
    from .core.excitation.design import Design as Design
    from .core.findings import Finding as Finding, render as render, Severity as Severity
    from .core.model.robot import Robot as Robot
    from .core.pipeline.identification import Identification as Identification
    from .core.regression.validation import Validation as Validation
    from .core.signals.recording import Recording as Recording
    from .core.verdict import judge as judge, Verdict as Verdict
    from .exceptions import RobotIdError as RobotIdError
    from .files.collect_results import save as save
    from .library import (
        design as design,
        from_arrays as from_arrays,
        identify as identify,
        InverseDynamics as InverseDynamics,
        load as load,
        load_robot as load_robot,
        save_design as save_design,
        validate as validate,
    )
    from .simulated_session import simulate as simulate


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = getattr(import_module(f'.{_MODULES[name]}', __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
