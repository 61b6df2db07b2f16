"""
Randomise an arm in MuJoCo as far as a recording leaves it open: randomize.py ARM.xml RANGES.

For MJX give each `mjx.put_model(model)` another draw; `jax.tree.map` stacks these models.
"""

import sys

import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_path(sys.argv[1])
draws = np.load(f'{sys.argv[2]}/draws.npz')
bodies = [model.body(name).id for name in draws['bodies']]
dofs = [model.joint(name).dofadr[0] for name in draws['joints']]


def randomize(number: np.int64) -> None:
    """Make the model one of the robots that the recording leaves possible."""
    for name, key in (('mass', 'mass'), ('ipos', 'center'), ('inertia', 'moments')):
        getattr(model, f'body_{name}')[bodies] = draws[key][number]
    model.body_iquat[bodies] = draws['axes'][number]
    for name in ('armature', 'damping', 'frictionloss'):
        getattr(model, f'dof_{name}')[dofs] = draws[name][number]
    mujoco.mj_setConst(model, mujoco.MjData(model))


for episode, number in enumerate(np.random.default_rng().permutation(len(draws['mass']))[:3]):
    randomize(number)
    print(f'episode {episode}: {model.body_mass[bodies].sum():.3f} kg')
