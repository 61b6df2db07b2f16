"""Payloads and drive gains from torques of MuJoCo, which carries the payload as a body."""

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.pinocchio_model import body_frame
from robotid_ros.core.parameters.carried_body import carrying
from robotid_ros.core.parameters.physical_consistency import pseudo_inertia
from robotid_ros.core.payload.payload import (
    _product,
    depends_on_links,
    identify_drive_gains,
    identify_payload,
    KnownArm,
    Payload,
    payload_from_recordings,
    payload_notes,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe, Rows
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import ConfigurationError, RecordingError, UnknownNameError
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import PayloadSettings, SimulationSettings

from ..replay.arms import planar_urdf

mujoco = pytest.importorskip('mujoco')
URDF = (Path(__file__).resolve().parents[3] / 'urdf' / 'ur10.urdf').read_text()
ROBOT = build_robot(URDF, RobotSettings(rotor_inertia=False, friction={'default': ('viscous',)}))
BODY = PayloadSettings(
    link='wrist_3_link', mass=4.0, com=(0.03, -0.02, 0.1),
    inertia=(0.02, 0.001, -0.002, 0.025, 0.003, 0.015),
)  # fmt: skip
SETTINGS = SignalSettings(cutoff=20.0, standstill=0.0)


def at_the_joint(body=BODY):
    """Return the payload's standard parameters at the frame of the last joint."""
    c, m = np.array(body.com), body.mass
    xx, xy, xz, yy, yz, zz = body.inertia
    J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    J = J + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([*J[0], *J[1, 1:], J[2, 2], *(m * c), m])


def session(payload=None, seed=0, noise=0.0, viscous=0.0):
    """Return what the arm records on sums of sines."""
    rng = np.random.default_rng(seed)
    time = np.arange(4000) / 200.0
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, ROBOT.n)) * 0.5
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = s @ a + c @ b, c * w @ a - s * w @ b, -(s * w**2) @ a - c * w**2 @ b
    settings = SimulationSettings() if payload is None else SimulationSettings(payload=payload)
    model = mujoco.MjModel.from_xml_string(Physics(URDF, settings, ROBOT.joints).urdf)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    dof = [model.joint(name).dofadr[0] for name in ROBOT.joints]
    tau = np.empty_like(q)
    for k in range(len(time)):
        data.qpos[dof], data.qvel[dof], data.qacc[dof] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse[dof]
    tau = tau + viscous * dq + noise * rng.normal(size=tau.shape)
    return Recording(ROBOT.joints, time, q, tau)


@pytest.fixture(scope='module')
def recordings():
    return session(noise=0.3, viscous=2.0), session(BODY, 1, 0.3, viscous=3.0)


def estimate(recording):
    base = base_parameters(ROBOT)
    return base, fit(observe(prepare(recording, ROBOT, SETTINGS), ROBOT, base))


def test_payload_is_found_though_friction_changed(recordings):
    (base, empty), (_, loaded) = map(estimate, recordings)
    found = identify_payload(ROBOT, base, empty, loaded)
    assert np.all(np.isfinite(found.sigma))
    assert np.all(np.abs(found.value - at_the_joint()) < 4.0 * found.sigma)
    assert found.mass == pytest.approx(BODY.mass, rel=0.02)
    np.testing.assert_allclose(found.centre_of_mass, BODY.com, atol=5e-3)


def test_exact_data_give_the_payload():
    (base, empty), (_, loaded) = map(estimate, (session(), session(BODY)))
    found = identify_payload(ROBOT, base, empty, loaded)
    np.testing.assert_allclose(found.value, at_the_joint(), atol=5e-3)
    assert found.consistent
    np.testing.assert_array_equal(found.value, found.unconstrained)


def test_what_a_planar_arm_does_not_show_is_open():
    """To add it to the payload changes no torque."""
    robot = build_robot(planar_urdf(), RobotSettings())
    base, own = base_parameters(robot), slice(robot.first_columns[-1], None)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, robot.n))
    W, chi = regressor(robot, q, dq, ddq), np.array(robot.prior)
    valid = np.ones(W.shape[:2], dtype=bool)
    loaded = chi.copy()
    loaded[own][:10] += at_the_joint()
    one, two = (
        fit(
            Rows(
                base.names, base.units, robot.joints, W[:, :, base.columns], W @ parameters,
                valid, np.arange(200.0)
            )
        )
        for parameters in (chi, loaded)
    )  # fmt: skip
    found = identify_payload(robot, base, one, two)
    open_, columns = found.undetermined, W[:, :, own][:, :, :10]
    assert open_.shape[1] == 10 - np.linalg.matrix_rank(columns.reshape(-1, 10)) > 0
    assert np.linalg.matrix_rank(open_) == open_.shape[1]
    np.testing.assert_allclose(columns @ open_, 0.0, atol=1e-6)
    np.testing.assert_allclose(columns @ (found.unconstrained - at_the_joint()), 0.0, atol=1e-6)


def test_terms_that_nearly_cancel_are_nothing():
    """Base parameters are known to 1e-7 or so: what they leave open is rounded no better."""
    columns = np.array([[1.0, 1.0], [1.0001, 1.01]])
    for sign in (1.0, -1.0):
        row = np.array([[1.0, -sign]])
        np.testing.assert_allclose(_product(row, np.diag([1.0, sign]) @ columns), [[0.0, -0.01]])


@pytest.mark.parametrize('unit', [1e-6, 1.0, 1e6])
def test_what_cancels_does_so_in_any_unit(unit):
    rows, columns = np.array([[1.0, -1.0], [1.0, 0.0]]), np.array([[1.0, 1e-12], [1.0001, 1.0]])
    expected = [[0.0, -1.0], [1.0, 0.0]]
    np.testing.assert_allclose(_product(rows, unit * columns) / unit, expected)
    np.testing.assert_allclose(_product(unit * rows, columns) / unit, expected)


def test_what_is_wrong_with_a_payload_is_said():
    value, open_ = at_the_joint(), np.zeros((10, 0))
    covariance, hidden = np.diag((0.01 * value) ** 2), np.eye(10)[:, [2]]
    assert payload_notes(Payload('tool', value, covariance, open_, value), 'j6', '') == []
    (note,) = payload_notes(Payload('tool', value, covariance, hidden, value), 'j6', '')
    assert note.values['parameters'] == ('XZ',) and note.joints == ('j6',)
    for over, said in ((2.0, {'inexact': 'inertias'}), (4.0, {'advice': 'the arm'})):
        wrong = value.copy()
        wrong[0] = -1.0
        covariance[0, 0] = ((value[0] - wrong[0]) / over) ** 2
        (note,) = payload_notes(Payload('tool', value, covariance, open_, wrong), 'j6', 'the arm')
        assert select([note], 'payload_impossible') and note.values.items() >= said.items()


@pytest.mark.parametrize('over_sigma, said', [(2.0, True), (4.0, False)])
def test_a_mass_counts_that_stands_out_of_its_sigma(over_sigma, said):
    covariance = np.diag((at_the_joint() / over_sigma) ** 2)
    found = Payload('tool', at_the_joint(), covariance, np.zeros((10, 0)), at_the_joint())
    assert bool(select(payload_notes(found, 'j6', ''), 'payload_uncertain')) == said


def test_a_payload_is_told_in_any_frame_of_its_link():
    """The same body at tool0, where MuJoCo has it on wrist_3_link."""
    (base, empty), (_, loaded) = map(estimate, (session(), session(BODY)))
    tool = body_frame(ROBOT, 'tool0')
    found = identify_payload(ROBOT, base, empty, loaded, tool)
    at_joint = identify_payload(ROBOT, base, empty, loaded)
    places = pinocchio.Data(ROBOT.model)
    pinocchio.framesForwardKinematics(ROBOT.model, places, pinocchio.neutral(ROBOT.model))
    flange, wrist = (
        places.oMf[ROBOT.model.getFrameId(name)] for name in ('tool0', 'wrist_3_link')
    )
    expected = flange.actInv(wrist.act(at_joint.centre_of_mass))
    assert (found.frame, tool.body, at_joint.frame) == ('tool0', 'tool0', 'wrist_3_joint')
    assert np.linalg.norm(expected - at_joint.centre_of_mass) > 0.05
    np.testing.assert_allclose(found.centre_of_mass, expected, atol=1e-9)
    np.testing.assert_allclose(found.central[4:], at_joint.central[4:], atol=1e-9)
    np.testing.assert_allclose(found.sigma[9], at_joint.sigma[9], rtol=1e-9)


def test_a_frame_that_no_joint_moves_is_refused():
    with pytest.raises(ConfigurationError, match="'base_link' moves with none of the joints"):
        body_frame(ROBOT, 'base_link')
    with pytest.raises(UnknownNameError, match='tool9'):
        body_frame(ROBOT, 'tool9')


def test_an_identified_arm_takes_the_place_of_a_recording(recordings):
    (base, empty), (_, loaded) = map(estimate, recordings)
    spread = np.diag(empty.sigma**2)
    known = KnownArm(empty.names, empty.value, spread, spread)
    found = identify_payload(ROBOT, base, known, loaded)
    assert np.all(np.abs(found.value - at_the_joint()) < 4.0 * found.sigma)
    assert found.mass == pytest.approx(BODY.mass, rel=0.03)


def test_the_friction_of_an_identified_arm_is_chosen_already(recordings):
    """Of a robot whose friction is open: with it, the recording alone is identified."""
    robot = build_robot(URDF, RobotSettings(rotor_inertia=False))
    base = base_parameters(robot)
    empty = fit(observe(prepare(recordings[0], robot, SETTINGS), robot, base))
    known = KnownArm(empty.names, empty.value, empty.covariance, empty.classical)
    steps = []
    settings = IdentificationSettings(signals=SETTINGS)
    found = payload_from_recordings(known, recordings[1], robot, settings, steps.append)[0]
    assert steps == ['identifying, loaded']
    assert found.mass == pytest.approx(BODY.mass, rel=0.03)


def test_drive_gains_are_found(recordings):
    gains = np.array([40.0, 0.5, 2.0, 10.0, 1.0, 3.0])
    empty, loaded = (dataclasses.replace(r, effort=r.effort / gains) for r in recordings)
    found = identify_drive_gains(ROBOT, empty, loaded, at_the_joint(), SETTINGS)
    assert found.joints == ROBOT.joints
    assert np.all(np.abs(found.value - gains) < 4.0 * found.sigma)
    np.testing.assert_allclose(found.value[:5], gains[:5], rtol=0.1)


def test_gains_scale_with_the_payload_that_is_told(recordings):
    one, twice = (
        identify_drive_gains(ROBOT, *recordings, k * at_the_joint(), SETTINGS) for k in (1.0, 2.0)
    )
    np.testing.assert_allclose(twice.value, 2.0 * one.value, rtol=1e-9)


@pytest.mark.parametrize('second, share', [(0, 1.0), (1, 0.0)])
def test_no_payload_gives_no_gain(recordings, second, share):
    loaded, payload = recordings[second], share * at_the_joint()
    with pytest.raises(RecordingError, match='payload loads'):
        identify_drive_gains(ROBOT, recordings[0], loaded, payload, SETTINGS)


def test_other_models_are_refused(recordings):
    base, empty = estimate(recordings[0])
    other = dataclasses.replace(empty, names=tuple(reversed(empty.names)))
    with pytest.raises(ConfigurationError, match='same model'):
        identify_payload(ROBOT, base, empty, other)


def test_a_payload_is_a_body_that_can_exist():
    """In much noise least squares finds none; the nearest that exists is nearer to the truth."""
    rod = dataclasses.replace(
        BODY, mass=0.5, com=(0.0, 0.0, 0.05), inertia=(1e-4, 0.0, 0.0, 1e-4, 0.0, 1e-4)
    )
    (base, empty), (_, loaded) = map(estimate, (session(noise=0.5), session(rod, 1, 0.5)))
    found = identify_payload(ROBOT, base, empty, loaded)
    assert not found.consistent and np.linalg.eigvalsh(pseudo_inertia(found.value))[0] > 0.0
    error, free = (
        np.abs(x - at_the_joint(rod)) / found.sigma for x in (found.value, found.unconstrained)
    )
    assert found.distance < 3.0 and error.max() < 4.0
    assert np.linalg.norm(error) < np.linalg.norm(free)


def test_exchanged_recordings_are_no_payload(recordings):
    (base, empty), (_, loaded) = map(estimate, recordings)
    found = identify_payload(ROBOT, base, loaded, empty)
    assert found.distance > 3.0 and 0.0 < found.mass < found.sigma[9]


def test_parameters_that_err_alike_do_not_stop_it():
    """Covariances of which no root exists; what they are of, no payload changes."""
    (base, empty), (_, loaded) = map(estimate, (session(), session(BODY)))
    start = int(ROBOT.first_columns[-1])
    carried = base.matrix[:, start : start + 10].any(axis=1)
    one, two = np.flatnonzero(depends_on_links(ROBOT, base) & ~carried)[:2]
    apart, alike = np.eye(base.rank), np.eye(base.rank)
    alike[one, two] = alike[two, one] = 1.0
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(alike)
    found, expected = (
        identify_payload(
            ROBOT, base, empty, dataclasses.replace(loaded, classical=C - empty.classical)
        ).value
        for C in (alike, apart)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_what_is_known_badly_counts_less():
    """One base parameter of the loaded arm is wrong, and its variance says so."""
    (base, empty), (_, loaded) = map(estimate, (session(), session(BODY)))
    k = int(np.argmax(np.abs(loaded.value - empty.value)))
    wrong, variance = np.array(loaded.value), np.array(loaded.classical)
    wrong[k] += 10.0
    variance[k, k] += 1e4
    spoiled = dataclasses.replace(loaded, value=wrong, classical=variance, covariance=variance)
    found = identify_payload(ROBOT, base, empty, spoiled)
    np.testing.assert_allclose(found.value, at_the_joint(), atol=1e-2)


def test_an_arm_that_carries_a_body_has_the_torques_of_pinocchios():
    frame = 'wrist_2_link'
    model = ROBOT.model.copy()
    place = model.frames[model.getFrameId(frame)]
    c, moments = np.array(BODY.com), np.zeros((3, 3))
    moments[np.triu_indices(3)] = BODY.inertia
    moments = moments + np.triu(moments, 1).T
    body = pinocchio.Inertia(BODY.mass, c, moments)
    model.inertias[place.parentJoint] += place.placement.act(body)
    central = np.array([BODY.mass, *BODY.com, *BODY.inertia])
    chi = carrying(ROBOT, ROBOT.prior, frame, central)
    rng, data = np.random.default_rng(1), model.createData()
    for q, dq, ddq in rng.normal(size=(5, 3, 6)):
        tau = regressor(ROBOT, q[None], dq[None], ddq[None]).reshape(6, -1) @ chi
        viscous = regressor(ROBOT, q[None], dq[None], ddq[None]).reshape(6, -1) @ np.where(
            [p.symbol == 'Fv' for p in ROBOT.parameters], chi, 0.0
        )
        np.testing.assert_allclose(
            tau - viscous, pinocchio.rnea(model, data, q, dq, ddq), rtol=1e-9
        )


@pytest.mark.parametrize(
    'central',
    [(-1.0,) + (0.0,) * 9, (0.0, 0.1) + (0.0,) * 8, (1.0, 0, 0, 0, 1.0, 0, 0, 0.1, 0, 0.1)],
)
def test_what_no_body_is_cannot_be_carried(central):
    with pytest.raises(ConfigurationError):
        carrying(ROBOT, ROBOT.prior, '', np.array(central))
