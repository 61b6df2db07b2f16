"""Randomise an arm in Isaac Lab (mdp 2.3) by ranges.yaml of `robotid export --format ranges`."""

from pathlib import Path

from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
import yaml


def terms(path: str, asset: str = 'robot') -> dict[str, EventTermCfg]:
    """Return terms of the event manager: `vars(events).update(terms('ranges/ranges.yaml'))`."""
    ranges, found = yaml.safe_load(Path(path).read_text()), {}

    def add(name, function, entity, known, **keys):
        limits = {field: known[key] for field, key in keys.items() if key in known}
        drawn = {f'{k}_distribution_params': (v['low'], v['high']) for k, v in limits.items()}
        params = {'asset_cfg': entity, 'operation': 'abs', **drawn}
        if drawn:  # what was not identified has no range
            found[name] = EventTermCfg(func=function, mode='startup', params=params)

    joint, gains = mdp.randomize_joint_parameters, mdp.randomize_actuator_gains
    for name, own in ranges['joints'].items():
        entity = SceneEntityCfg(asset, joint_names=[name])
        add(f'{name}_joint', joint, entity, own, armature='armature', friction='frictionloss')
        add(f'{name}_servo', gains, entity, own, stiffness='kp', damping='kv')
    for name, own in ranges.get('bodies', {}).items():
        entity = SceneEntityCfg(asset, body_names=[name])
        add(f'{name}_mass', mdp.randomize_rigid_body_mass, entity, own, mass='mass')
    return found
