"""
Randomise an arm in MuJoCo as far as a recording leaves it open: randomize.py ARM.xml RANGES.

For MJX give each `mjx.put_model(model)` another draw; `jax.tree.map` stacks these models. Hold
commands of servos back by `draws['delay'][number]` seconds.
"""

import sys

import mujoco
import numpy as np

model, draws = mujoco.MjModel.from_xml_path(sys.argv[1]), np.load(f'{sys.argv[2]}/draws.npz')
bodies = [model.body(name).id for name in draws.get('bodies', ())]
dofs = [model.joint(name).dofadr[0] for name in draws['joints']]
servos = [model.actuator(name).id for name in draws['joints']] if 'kp' in draws else []
of_bodies = {'mass': 'mass', 'ipos': 'center', 'inertia': 'moments', 'iquat': 'axes'}
for episode, number in enumerate(np.random.default_rng(0).permutation(len(draws['armature']))[:3]):
    for name, key in of_bodies.items() if bodies else ():
        getattr(model, f'body_{name}')[bodies] = draws[key][number]
    for name in {'armature', 'damping', 'frictionloss'} & draws.keys():
        getattr(model, f'dof_{name}')[dofs] = draws[name][number]
    if servos:
        kp, kv, bias = (draws[name][number] for name in ('kp', 'kv', 'bias'))
        model.actuator_gainprm[servos, 0] = kp
        model.actuator_biasprm[servos, :3] = np.column_stack([kp * bias, -kp, -kv])
    mujoco.mj_setConst(model, mujoco.MjData(model))
    mass, armature = model.body_mass.sum(), model.dof_armature.sum()
    print(f'episode {episode}: {mass:.3f} kg, {armature:.4g} kg·m²')
