"""
Randomise an arm in MuJoCo as far as a recording leaves it open: randomize.py ARM.xml RANGES.

`robotid export results --format mjcf -o ARM.xml`, then `--format ranges -o RANGES`. For MJX give
each `mjx.put_model(model)` another draw, and stack these models with `jax.tree.map`.
"""

import sys

import mujoco
import numpy as np

model = mujoco.MjModel.from_xml_path(sys.argv[1])
draws = np.load(f'{sys.argv[2]}/draws.npz')
bodies = [model.body(name).id for name in draws['bodies']]
dofs = [model.joint(name).dofadr[0] for name in draws['joints']]


def randomize(number: int) -> None:
    """Make the model one of the robots that the recording leaves possible."""
    model.body_mass[bodies], model.body_ipos[bodies] = (
        draws['mass'][number],
        draws['center'][number],
    )
    model.body_inertia[bodies] = draws['moments'][number]
    model.body_iquat[bodies] = draws['axes'][number]
    for name in ('armature', 'damping', 'frictionloss'):
        getattr(model, f'dof_{name}')[dofs] = draws[name][number]
    mujoco.mj_setConst(model, mujoco.MjData(model))


rng = np.random.default_rng()
for episode in range(3):
    randomize(int(rng.integers(len(draws['mass']))))
    print(f'episode {episode}: {model.body_mass[bodies].sum():.3f} kg')
