"""Run scripts for Isaac Lab where it is not installed: names that keep what they are given."""

import sys
from types import ModuleType, SimpleNamespace
from unittest import mock


def run(text, path):
    """Return the names that a script leaves; what Isaac Lab builds are plain namespaces."""
    names = ('', '.sim', '.actuators', '.assets', '.envs', '.managers')
    modules = {f'isaaclab{name}': ModuleType(f'isaaclab{name}') for name in names}
    modules['isaaclab'].sim = modules['isaaclab.sim']
    modules['isaaclab.sim'].UsdFileCfg = SimpleNamespace
    modules['isaaclab.actuators'].ImplicitActuatorCfg = SimpleNamespace

    class ArticulationCfg(SimpleNamespace):
        InitialStateCfg = SimpleNamespace

    modules['isaaclab.assets'].ArticulationCfg = ArticulationCfg
    modules['isaaclab.envs'].mdp = SimpleNamespace(
        randomize_actuator_gains='randomize_actuator_gains',
        randomize_joint_parameters='randomize_joint_parameters',
        randomize_rigid_body_mass='randomize_rigid_body_mass',
    )
    modules['isaaclab.managers'].EventTermCfg = SimpleNamespace
    modules['isaaclab.managers'].SceneEntityCfg = lambda name, **of: SimpleNamespace(
        name=name, **of
    )
    values = {'__file__': path}
    with mock.patch.dict(sys.modules, modules):
        exec(compile(text, path, 'exec'), values)
    return values
