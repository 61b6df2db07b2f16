"""
Randomise an arm in MuJoCo as far as a recording leaves it open: randomize.py ARM.xml RANGES.

For MJX give each `mjx.put_model(model)` another draw; `jax.tree.map` stacks these models. Commands
of servos are to be held back by `draws['delay'][number]` seconds.
"""

import sys

import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_path(sys.argv[1])
draws = np.load(f'{sys.argv[2]}/draws.npz')
bodies = [model.body(name).id for name in draws.get('bodies', ())]
dofs = [model.joint(name).dofadr[0] for name in draws['joints']]
servos = [model.actuator(name).id for name in draws['joints']] if 'kp' in draws else []


def randomize(number: np.int64) -> None:
    """Make the model one of the robots that the recording leaves possible."""
    for name, key in (
        ('mass', 'mass'),
        ('ipos', 'center'),
        ('inertia', 'moments'),
        ('iquat', 'axes'),
    ):
        if key in draws:
            getattr(model, f'body_{name}')[bodies] = draws[key][number]
    for name in ('armature', 'damping', 'frictionloss'):
        if name in draws:
            getattr(model, f'dof_{name}')[dofs] = draws[name][number]
    if servos:
        kp, kv, bias = (draws[name][number] for name in ('kp', 'kv', 'bias'))
        model.actuator_gainprm[servos, 0] = kp
        model.actuator_biasprm[servos, :3] = np.column_stack([kp * bias, -kp, -kv])
    mujoco.mj_setConst(model, mujoco.MjData(model))


for episode, number in enumerate(np.random.default_rng().permutation(len(draws['armature']))[:3]):
    randomize(number)
    print(
        f'episode {episode}: {model.body_mass.sum():.3f} kg, {model.dof_armature.sum():.4g} kg·m²'
    )
