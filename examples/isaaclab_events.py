"""Randomise an arm in Isaac Lab (mdp 2.3) by ranges.yaml of `robotid export --format ranges`."""

from pathlib import Path

from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
import yaml


def terms(path: str, asset: str = 'robot') -> dict[str, EventTermCfg]:
    """Return terms of the event manager: `vars(events).update(terms('ranges/ranges.yaml'))`."""
    ranges, found = yaml.safe_load(Path(path).read_text()), {}

    def add(name, function, entity, **limits):
        drawn = {f'{k}_distribution_params': (v['low'], v['high']) for k, v in limits.items()}
        params = {'asset_cfg': entity, 'operation': 'abs', **drawn}
        found[name] = EventTermCfg(func=function, mode='startup', params=params)

    for name, joint in ranges['joints'].items():
        limits = {'armature': joint['armature'], 'friction': joint['frictionloss']}
        entity = SceneEntityCfg(asset, joint_names=[name])
        add(f'{name}_joint', mdp.randomize_joint_parameters, entity, **limits)
        if 'kp' in joint:  # a servo that was identified from commands
            gains = {'stiffness': joint['kp'], 'damping': joint['kv']}
            add(f'{name}_servo', mdp.randomize_actuator_gains, entity, **gains)
    for name, body in ranges.get('bodies', {}).items():
        entity = SceneEntityCfg(asset, body_names=[name])
        add(f'{name}_mass', mdp.randomize_rigid_body_mass, entity, mass=body['mass'])
    return found
