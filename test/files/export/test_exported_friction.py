"""Formats with damping and dry friction alone get those nearest to the identified friction."""

import dataclasses
from xml.etree import ElementTree

from identified_models import of_description, ROOT, saved
import mujoco
from mujoco_dynamics import Simulated
import numpy as np
import pytest
from sdf_model import model_of

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.collect_results import save
from robotid_ros.files.export.identified_model import read_identified_model, urdf
from robotid_ros.files.export.simulators import mjcf, sdf
from robotid_ros.files.results import read_results, write_results

from .test_mjcf import GRIPPER

ARM = (ROOT / 'urdf' / 'arm3.urdf').read_text()
RATE, DURATION = 200.0, 20.0
LAWS = {
    'viscous and Coulomb': (('viscous', 'coulomb', 'offset'), {}),
    'negative root': (('viscous', 'coulomb', 'root_viscous', 'offset'), {'Fr': -1.2}),
    'Stribeck': (('viscous', 'coulomb', 'stribeck', 'offset'), {'Fst': 1.0}),
    'two directions': (('asymmetric_coulomb', 'asymmetric_viscous'), {'Fcp': 3.0, 'Fvp': 1.6}),
}
SYMBOLS = {'Fv': 1.5, 'Fc': 2.0, 'off': 0.2, 'Fcm': 2.0, 'Fvm': 1.3}


def motion(time, seed=0):
    """Return a motion of three joints that is often slow."""
    rng = np.random.default_rng(seed)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, 3)) * 0.25
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    return s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


@pytest.fixture(scope='module', params=LAWS)
def model(request, tmp_path_factory):
    """Identify an arm from a recording, and read its results."""
    terms, values = LAWS[request.param]
    robot = build_robot(ARM, RobotSettings(friction={'default': terms}, rotor_inertia=False))
    chi = np.array(robot.prior)
    for symbol, value in {**SYMBOLS, **values}.items():
        for k in (1, 2, 3):
            if symbol in {p.symbol for p in robot.parameters}:
                chi[robot.column(f'{symbol}{k}')] = value
    time = np.arange(RATE * DURATION) / RATE
    states = motion(time)
    tau = inverse_dynamics(robot, chi, *states)
    tau += 0.02 * np.random.default_rng(1).normal(size=tau.shape)
    recording = Recording(robot.joints, time, states[0], tau)
    folder = tmp_path_factory.mktemp('results')
    save(identify(recording, robot, IdentificationSettings(essential=False)), recording, folder)
    return read_identified_model(folder)


def of_mjcf(model, q, dq, ddq):
    """Return the torques of the actuators by MuJoCo's inverse dynamics with dry friction on."""
    simulated = Simulated(mjcf(model)[0], model.robot)
    bias = simulated.model.actuator_biasprm[:, 0]
    return np.array([simulated.efforts(*state) for state in zip(q, dq, ddq, strict=True)]) - bias


def of_bodies(model, damping, dry, q, dq, ddq):
    """Return the torques of the identified bodies with <dynamics>, and the offset that is told."""
    kept = [not p.symbol.startswith(('F', 'off')) for p in model.robot.parameters]
    tau = inverse_dynamics(model.robot, np.where(kept, model.chi, 0.0), q, dq, ddq)
    offset = [plain.offset for plain in model.plain_friction.values()]
    return tau + np.array(damping) * dq + np.array(dry) * np.sign(dq) + offset


def of_urdf(model, *states):
    """Return those of a URDF."""
    joints = ElementTree.fromstring(urdf(model)[0]).findall('joint/dynamics')
    columns = ([float(j.get(key)) for j in joints] for key in ('damping', 'friction'))
    return of_bodies(model, *columns, *states)


def of_sdf(model, *states):
    """Return those of SDFormat."""
    joints = model_of(sdf(model)[0])[1].findall('joint/axis/dynamics')
    columns = ([float(j.findtext(key)) for j in joints] for key in ('damping', 'friction'))
    return of_bodies(model, *columns, *states)


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


@pytest.mark.parametrize('read', [of_mjcf, of_urdf, of_sdf])
def test_exported_torques_differ_by_no_more_than_is_stated(model, read):
    """On the motion of the recording, slow samples included."""
    model = model if read is of_urdf else model.for_simulation
    states = motion(np.arange(RATE * DURATION)[100::7] / RATE)
    tau = inverse_dynamics(model.robot, model.chi, *states)
    found = read(model, *states)
    for j, plain in enumerate(model.plain_friction.values()):
        moving = np.abs(states[1][:, j]) > 0.02
        missed = rms((found - tau)[moving, j])
        size = rms(tau[moving, j])
        assert missed <= 1.03 * plain.rms + 0.002 * size
        if plain.exact:
            assert missed <= 1e-6 * size
        else:
            assert plain.relative > 0.005


def test_the_residual_is_stated_in_every_file(model):
    plain = model.plain_friction
    for write in (mjcf, sdf, urdf):
        text, notes = write(model)
        written = plain if write is urdf else model.for_simulation.plain_friction
        told = [note for note in notes if 'RMS difference at the recorded speeds: ' in note]
        sizes = {
            f'{joint} {100 * each.relative:.2g} % ({each.rms:.2g} N·m)': each.exact
            for joint, each in written.items()
        }
        assert len(told) == (not all(sizes.values())) and all(note in text for note in told)
        assert all((size in ''.join(told)) != exact for size, exact in sizes.items())


def drift(model):
    """Return how far MuJoCo is off within a second of the identified torques (RMS of all)."""
    simulated = mujoco.MjModel.from_xml_string(mjcf(model)[0])
    simulated.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    simulated.actuator_ctrllimited[:] = 0
    data, h, errors = mujoco.MjData(simulated), simulated.opt.timestep, []
    time = h * np.arange(round(DURATION / h))
    middle = motion(time + 0.5 * h)
    tau = inverse_dynamics(model.robot, model.chi, *middle)
    q, dq, _ = motion(time)
    for k in range(len(time)):
        if k % round(1.0 / h) == 0:
            data.qpos[:], data.qvel[:], data.qacc_warmstart[:] = q[k], dq[k], 0.0
        errors.append(data.qpos - q[k])
        data.ctrl[:] = tau[k]
        mujoco.mj_step(simulated, data)
    return rms(errors)


def test_what_simulators_get_keeps_the_motion_better(model):
    """What is nearest in torque drifts more; where friction is plain both are the same."""
    known = model.plain_friction
    nearest = {j: dataclasses.replace(each, simulated=None) for j, each in known.items()}
    results = dataclasses.replace(model.results, plain_friction=nearest)
    before, after = drift(dataclasses.replace(model, results=results)), drift(model)
    if all(each.exact for each in known.values()):
        assert after == before < 3e-3
    else:
        assert after < before


def test_the_results_keep_it(model, tmp_path):
    write_results(model.results, tmp_path)
    assert read_results(tmp_path).plain_friction == model.results.plain_friction
    assert [*model.results.plain_friction] == [*model.robot.joints]
    assert all(each.recorded for each in model.plain_friction.values())


def test_results_of_earlier_versions_say_which_speeds_count(model, tmp_path):
    older = dataclasses.replace(model.results, plain_friction={})
    again = dataclasses.replace(model, results=older)
    note = ''.join(note for note in mjcf(again)[1] if 'RMS difference' in note)
    differ = sum(not each.exact for each in again.plain_friction.values())
    assert note.count(' % (') == differ
    assert 'all speeds up to the limit, as the recorded ones are not' in note or not differ
    known = model.plain_friction
    for joint, each in again.plain_friction.items():
        assert each.exact == known[joint].exact and not each.recorded


def test_dry_friction_is_whole_at_low_speeds_in_mujoco(tmp_path):
    """A joint that creeps has all of it, also where it is light, and one at rest stays there."""
    robot = build_robot(
        ARM, RobotSettings(friction={'default': ('coulomb',)}, rotor_inertia=False)
    )
    chi = np.array(robot.prior)
    chi[[robot.column(f'Fc{k}') for k in (1, 2, 3)]] = 8.0, 60.0, 20.0
    model = read_identified_model(saved(tmp_path, robot, chi))
    text = mjcf(model)[0]
    simulated = Simulated(text, robot)
    q, dq, ddq = (
        np.array([0.1, 0.2, 0.3]),
        np.array([0.02, -0.03, 0.02]),
        np.array([1.0, 4.0, -3.0]),
    )
    expected = inverse_dynamics(robot, chi, q[None], dq[None], ddq[None])[0]
    np.testing.assert_allclose(simulated.efforts(q, dq, ddq), expected, rtol=1e-9)
    physics = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(physics)
    for _ in range(500):
        mujoco.mj_step(physics, data)
    assert np.abs(data.qpos).max() < 1e-3 and np.abs(data.qvel).max() < 1e-4


def test_a_joint_that_mimics_another_has_no_friction_beside_it(tmp_path):
    """The friction of both is identified as that of the joint that is followed."""
    model = of_description(tmp_path, GRIPPER)
    joints = {j.get('name'): j for j in ElementTree.fromstring(urdf(model)[0]).findall('joint')}
    assert joints['follower'].find('dynamics').attrib == {'damping': '0.0'}
    leader = joints['one'].find('dynamics').attrib
    assert float(leader['damping']) == model.chi[model.robot.column('Fv1')]


def test_an_offset_and_a_spring_without_a_place_are_named(tmp_path):
    friction = {'default': ('viscous', 'coulomb', 'offset', 'spring')}
    robot = build_robot(ARM, RobotSettings(friction=friction, rotor_inertia=False))
    chi = np.array(robot.prior)
    chi[[robot.column(f'off{k}') for k in (1, 2, 3)]] = 0.5, -0.25, 0.0
    model = read_identified_model(saved(tmp_path, robot, chi))
    offsets = 'constant torques (offset) are left out: joint_1 0.5 N·m, joint_2 -0.25 N·m'
    springs = 'springs of the joints (spring) are left out: joint_1, joint_2, joint_3'
    assert {offsets, springs} <= {*urdf(model)[1]}
    assert offsets in sdf(model)[1] and springs not in sdf(model)[1]
    assert not {offsets, springs} & {*mjcf(model)[1]}
