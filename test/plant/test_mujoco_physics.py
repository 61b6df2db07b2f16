"""The plant against closed forms and against Pinocchio, which it does not know."""

from pathlib import Path

from mujoco_dynamics import energy_of
import numpy as np
import pinocchio
import pytest

from robotid_ros.exceptions import (
    ConfigurationError,
    ModelError,
    RobotStateError,
    UnknownNameError,
)
from robotid_ros.plant.mjcf import STOP_MARGIN
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import (
    ElasticDriveSettings,
    MotorSettings,
    NoiseSettings,
    PayloadSettings,
    SimulationSettings,
    StribeckSettings,
)

ROBOTS = sorted((Path(__file__).parents[2] / 'urdf').glob('*.urdf'))
SLIDER = """<robot name="slider"><link name="base"/>
<link name="cart"><inertial><mass value="2.0"/><inertia ixx="0.1" iyy="0.1" izz="0.1"
 ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-1000" upper="1000" effort="50" velocity="9"/></joint></robot>"""
ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><visual><geometry><mesh filename="package://none/none.stl"/></geometry></visual>
<inertial><origin xyz="0.2 0.01 0.02" rpy="0.1 0.2 0.3"/><mass value="3.0"/>
<inertia ixx="0.03" iyy="0.05" izz="0.06" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.1 0 0.05"/><mass value="1.5"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="tool"><inertial><origin xyz="0 0.05 0"/><mass value="0.4"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
<origin xyz="0 0 0.3" rpy="1.5707963267948966 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="100" velocity="3"/></joint>
<joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/>
<origin xyz="0.4 0 0" rpy="0 0.7 0"/><axis xyz="0 1 0"/>
<limit effort="100" velocity="3"/></joint>
<joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/>
<origin xyz="0.3 0 0" rpy="0 0 1"/></joint></robot>"""


def beside(text, parent, child):
    """Put one more joint into a description."""
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return text.replace('</robot>', f'<joint name="extra" type="fixed">{ends}</joint></robot>')


def settled(**changes):
    return SimulationSettings(**{'inertial_error': 0.0, **changes})


def pinocchio_model(physics):
    """Pinocchio's model of the plant's true URDF, with the joints in the plant's order."""
    full = pinocchio.buildModelFromXML(physics.urdf)
    return full, [full.joints[full.getJointId(name)].idx_v for name in physics.joints]


def test_free_fall():
    physics = Physics(SLIDER, settled(gravity=(-9.81, 0.0, 0.0)))
    for _ in range(1000):
        physics.step([0.0])
    np.testing.assert_allclose(physics.position, -9.81 / 2, rtol=1e-9)
    np.testing.assert_allclose(physics.velocity, -9.81, rtol=1e-9)


def test_energy_is_kept_without_friction_and_torque():
    physics = Physics(ARM, settled(initial_positions=(-0.6, 0.8), rotor_inertia=(0.05,)))
    start = energy_of(physics)
    for _ in range(2000):
        physics.step([0.0, 0.0])
        assert abs(energy_of(physics) - start) < 1e-5
    assert np.abs(physics.velocity).max() > 0.5


@pytest.mark.parametrize('speed', [0.05, 1.0, -2.0])
def test_sliding_takes_exactly_viscous_and_coulomb(speed):
    friction = 3.0 * speed + 5.0 * np.sign(speed)
    physics = Physics(SLIDER, settled(viscous=(3.0,), coulomb=(5.0,), rotor_inertia=(0.7,)))
    physics.set_state([0.0], [speed])
    for _ in range(500):
        physics.step([friction])
        np.testing.assert_allclose(physics.velocity, speed, rtol=1e-6)
    physics.step([friction + 2.7])
    np.testing.assert_allclose(physics.velocity, speed + 1e-3, rtol=1e-4)


@pytest.mark.parametrize('static', [0.0, 2.0])
def test_friction_changes_while_it_slides(static):
    stribeck = StribeckSettings(extra=(static,), velocity=(0.01,))
    physics = Physics(SLIDER, settled(viscous=(3.0,), coulomb=(5.0,), stribeck=stribeck))
    physics.set_state([0.0], [1.0])
    for factor in (1.0, 1.2, 0.5):
        physics.scale_friction([factor])
        for _ in range(100):
            physics.step([factor * 8.0])
            np.testing.assert_allclose(physics.velocity, 1.0, rtol=1e-6)
    with pytest.raises(ConfigurationError, match='friction_factor'):
        physics.scale_friction([1.0, 2.0])


def test_a_body_is_picked_up_in_motion_and_put_down_again():
    def kick(physics: Physics) -> float:
        physics.set_state([0.0], [0.3])
        physics.step([7.0])
        return float(physics.velocity[0]) - 0.3

    physics = Physics(SLIDER, settled())
    before, position = kick(physics), physics.position.copy()
    physics.carry(1.5)()
    np.testing.assert_array_equal(physics.position, position)
    np.testing.assert_allclose(physics.velocity[0], 0.3 + before, rtol=1e-12)
    np.testing.assert_allclose(kick(physics), 7e-3 / (2.0 + 1.5), rtol=1e-9)
    assert physics.true_parameters()[0].values['M'] == 3.5
    physics.carry(0.0)()
    np.testing.assert_allclose(kick(physics), before, rtol=1e-12)


def test_stiction_holds_at_rest_and_breaks_away():
    settings = settled(coulomb=(5.0,), stribeck=StribeckSettings(extra=(2.0,), velocity=(0.05,)))
    physics = Physics(SLIDER, settings)
    for _ in range(2000):
        physics.step([6.8])
    assert abs(physics.position[0]) < 1e-4, 'creeps at rest'
    for _ in range(500):
        physics.step([7.3])
    assert physics.velocity[0] > 0.1, 'does not break away'


def test_friction_stops_and_never_turns_back():
    physics = Physics(SLIDER, settled(coulomb=(5.0,)))
    physics.set_state([0.0], [0.5])
    for _ in range(400):
        physics.step([0.0])
        assert physics.velocity[0] > -1e-6
    # v²/(2 a) with a = Fc/m
    np.testing.assert_allclose(physics.position[0], 0.5**2 / (2 * 2.5), rtol=5e-3)
    np.testing.assert_allclose(physics.velocity, 0.0, atol=1e-6)


def test_offset_and_effort_limit_and_nan():
    physics = Physics(SLIDER, settled(offset=(1.0,), rotor_inertia=(0.0,)))
    physics.step([1.0])
    np.testing.assert_allclose(physics.velocity, 0.0, atol=1e-12)
    physics.step([1e6])
    np.testing.assert_allclose(physics.velocity, (50.0 - 1.0) / 2.0 * 1e-3, rtol=1e-9)
    physics.set_state([0.0], [0.0])
    physics.step([np.nan])
    np.testing.assert_allclose(physics.velocity, -0.5e-3, rtol=1e-9)


def test_coupled_motor_turns_with_both_joints():
    coupling = MotorSettings(matrix=(1.0, 1.0), Ia=(0.3,), Fv=(0.6,), Fc=(1.8,))
    plain = Physics(ARM, settled(gravity=(0.0, 0.0, 0.0)))
    coupled = Physics(ARM, settled(gravity=(0.0, 0.0, 0.0), coupling=coupling))
    N = np.array([[1.0, 1.0]])
    np.testing.assert_allclose(
        coupled.mass_matrix(), plain.mass_matrix() + 0.3 * N.T @ N, rtol=1e-12
    )
    torque = np.array([4.0, 3.0])
    for physics in (plain, coupled):
        physics.set_state([0.2, 0.5], [0.8, -0.3])
    before = plain.velocity
    plain.step([0.0, 0.0])
    coasting = plain.mass_matrix() @ (plain.velocity - before) / 1e-3
    coupled.step(torque)
    slope = (coupled.velocity - before) / 1e-3
    expected = torque + coasting - N.T @ (0.6 * N @ before + 1.8 * np.sign(N @ before))
    np.testing.assert_allclose(coupled.mass_matrix() @ slope, expected, atol=0.02)


@pytest.mark.parametrize('path', ROBOTS, ids=lambda p: p.stem)
def test_torque_balance_against_pinocchio(path):
    """What is recorded balances: RNEA at the samples gives the efforts, beside friction."""
    physics = Physics(path.read_text(), settled(rotor_inertia=(0.2,), inertial_error=0.1))
    model, order = pinocchio_model(physics)
    if model.nq != len(physics.joints):
        pytest.skip('joints that Pinocchio counts in another way')
    for name, column in zip(physics.joints, order, strict=True):
        dynamics = next(b.joint for b in physics.bodies if b.joint.name == name)
        model.armature[column] = 0.2
        model.damping[column], model.friction[column] = dynamics.damping, 0.0
    data, friction = (
        model.createData(),
        np.array(
            [
                next(b.joint.friction for b in physics.bodies if b.joint.name == n)
                for n in physics.joints
            ]
        ),
    )
    h, q, tau = physics.period, [physics.position], []
    rng = np.random.default_rng(0)
    physics.set_state(physics.position, 0.5 + rng.uniform(0.0, 0.5, len(physics.joints)))
    dq = [physics.velocity]
    scale = np.minimum(np.array(physics.effort_limit), 1e3)
    for _ in range(20):
        x = np.zeros(model.nq)
        x[order] = q[-1]
        hold = pinocchio.rnea(model, data, x, np.zeros(model.nv), np.zeros(model.nv))[order]
        tau.append(np.clip(hold + friction + 0.5, -scale, scale))
        physics.step(tau[-1])
        q.append(physics.position)
        dq.append(physics.velocity)
    for k in range(len(tau)):
        middle, speed, slope = (np.zeros(model.nv) for _ in range(3))
        middle[order] = (q[k] + q[k + 1]) / 2 - h / 8 * (dq[k + 1] - dq[k])
        speed[order], slope[order] = (dq[k] + dq[k + 1]) / 2, (dq[k + 1] - dq[k]) / h
        expected = pinocchio.rnea(model, data, middle, speed, slope)[order]
        expected += friction * np.sign(speed[order]) + [model.damping[c] * speed[c] for c in order]
        moving = np.all(np.sign(dq[k]) == np.sign(dq[k + 1]))
        if moving:
            np.testing.assert_allclose(tau[k], expected, atol=2e-3 * max(1.0, abs(tau[k]).max()))


def test_true_parameters_are_pinocchios():
    payload = PayloadSettings('tool', 1.0, (0.1, 0.0, 0.02), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01))
    physics = Physics(ARM, settled(inertial_error=0.2, payload=payload, rotor_inertia=(0.1,)))
    model, _ = pinocchio_model(physics)
    for truth in physics.true_parameters():
        body = model.inertias[model.getJointId(truth.name)]
        m, mx, my, mz, xx, xy, yy, xz, yz, zz = body.toDynamicParameters()
        expected = (xx, xy, xz, yy, yz, zz, mx, my, mz, m)
        np.testing.assert_allclose(list(truth.values.values())[:10], expected, atol=1e-12)
        assert truth.values['Ia'] == 0.1


def test_mass_matrix_is_pinocchios():
    physics = Physics(ARM, settled(initial_positions=(0.4, -1.2), inertial_error=0.1))
    full = pinocchio.buildModelFromXML(physics.urdf)
    q = np.array([0.4, np.cos(-1.2), np.sin(-1.2)])
    expected = pinocchio.crba(full, full.createData(), q)
    expected = np.triu(expected) + np.triu(expected, 1).T
    np.testing.assert_allclose(physics.mass_matrix(), expected, rtol=1e-9, atol=1e-12)


def test_seed_decides_the_deviation():
    first, same, other = (
        Physics(ARM, settled(inertial_error=0.1, seed=s)).true_parameters()[0].values['ZZ']
        for s in (3, 3, 4)
    )
    nominal = Physics(ARM, settled()).true_parameters()[0].values['ZZ']
    assert first == same != other
    assert 0.0 < abs(first / nominal - 1.0) < 0.5


def test_mimic_joint_follows():
    text = ARM.replace(
        '<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="0.5"/>'
    )
    physics = Physics(text, settled(gravity=(0.0, 0.0, 0.0)))
    assert physics.joints == ('shoulder',)
    for _ in range(300):
        physics.step([2.0])
    q = physics.data.qpos
    assert abs(q[0]) > 0.05
    np.testing.assert_allclose(q[1], 0.5 * q[0], atol=1e-4)


def test_two_arms_answer_to_their_own_joints():
    links = ''.join(
        f'<link name="{name}"><inertial><origin xyz="0.1 0 0"/><mass value="{mass}"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, mass in (('a1', 1.0), ('a2', 2.0), ('b1', 3.0), ('b2', 4.0))
    )
    joints = ''.join(
        f'<joint name="j{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        '<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="9" velocity="3"/></joint>'
        for parent, child in (('base', 'a1'), ('a1', 'a2'), ('base', 'b1'), ('b1', 'b2'))
    )
    text = f'<robot name="two"><link name="base"/>{links}{joints}</robot>'
    physics = Physics(text, settled(gravity=(0.0, 0.0, 0.0)))
    full, order = pinocchio_model(physics)
    expected = pinocchio.crba(full, full.createData(), np.zeros(4))[np.ix_(order, order)]
    np.testing.assert_allclose(physics.mass_matrix(), expected, atol=1e-9)


def test_locked_joint_is_part_of_its_link():
    physics = Physics(ARM, settled(), joints=('shoulder',), locked={'elbow': 0.5})
    full = pinocchio.buildModelFromXML(physics.urdf)
    q = np.array([0.0, np.cos(0.5), np.sin(0.5)])
    expected = pinocchio.crba(full, full.createData(), q)[0, 0]
    np.testing.assert_allclose(physics.mass_matrix(), [[expected]], rtol=1e-9)


@pytest.mark.parametrize(
    ('text', 'word'),
    [
        ('nonsense', 'XML'),
        ('<mujoco/>', 'URDF'),
        (SLIDER.replace('prismatic', 'floating'), 'movable'),
        (SLIDER.replace('prismatic', 'fixed'), 'movable'),
        (SLIDER.replace('value="2.0"', 'value="-2"'), 'negative'),
        (SLIDER.replace('<mass value="2.0"/>', ''), 'moves no mass'),
        (SLIDER.replace('xyz="1 0 0"', 'xyz="1 0"'), 'malformed'),
        (SLIDER.replace('1 0 0', '0 0 0'), "'rail' has no axis"),
        (SLIDER.replace('2.0', 'nan'), "'nan' must be 1 finite"),
        (SLIDER.replace('ixx="0.1"', 'ixx="inf"'), 'inf.* must be 6 finite'),
        (SLIDER.replace('"-1000"', '"2000"'), 'MuJoCo cannot'),
        (SLIDER.replace('"base"/>', '"base"/><link name="loose"/>', 1), '2 base links'),
        (ARM.replace('continuous', 'floating'), "'elbow' is floating"),
        (ARM.replace('0.4 0 0', 'nan 0 0'), 'finite'),
        (beside(SLIDER, 'cart', 'none'), "'extra' carries no link"),
        (beside(ARM, 'tool', 'upper'), "carry the link 'upper'"),
        (beside(ARM, 'tool', 'tool'), "carry the link 'tool'"),
        (beside(ARM, 'base', 'tool'), "carry the link 'tool'"),
    ],
)
def test_bad_descriptions_are_refused(text, word):
    with pytest.raises(ModelError, match=word):
        Physics(text, settled())


@pytest.mark.parametrize(
    ('changes', 'word'),
    [
        ({'payload': PayloadSettings(mass=1.0, link='none')}, "'none' is not in"),
        ({'viscous': (1e9,)}, 'brakes too fast'),
        ({'rotor_inertia': (0.01,), 'elastic': ElasticDriveSettings((1e9,))}, 'vibrates'),
    ],
)
def test_what_cannot_be_simulated_is_refused(changes, word):
    with pytest.raises(ModelError, match=word):
        Physics(SLIDER, settled(**changes))


def test_stiction_and_motors_are_among_the_true_parameters():
    settings = settled(
        coulomb=(3.0,),
        stribeck=StribeckSettings((2.0, 0.0), (0.1,)),
        coupling=MotorSettings((1.0, 2.0), (0.3,), (0.6,), (1.8,)),
    )
    upper, lower, motor = Physics(ARM, settings).true_parameters()
    assert {
        'Fc': 3.0,
        'Fs': 5.0,
        'Fsc': -2.0,
        'Fst': 2.0,
        'vs': 0.1,
    }.items() <= upper.values.items()
    assert not {'Fs', 'Fsc', 'Fst', 'vs', 'K'} & lower.values.keys()
    assert motor == ('motor_0', {'Ia': 0.3, 'Fv': 0.6, 'Fc': 1.8}, (1.0, 2.0))


@pytest.mark.parametrize('given', [{'joints': ('track',)}, {'locked': {'track': 0.0}}])
def test_joints_that_are_not_there_are_named(given):
    with pytest.raises(UnknownNameError, match="'track': use one of rail"):
        Physics(SLIDER, settled(), **given)


def test_a_stop_stands_at_zero_where_one_limit_alone_is_written():
    text = SLIDER.replace(' lower="-1000"', '')
    physics = Physics(text, settled(gravity=(-9.81, 0.0, 0.0)))
    for _ in range(500):
        physics.step([0.0])
    assert -2.0 * STOP_MARGIN < physics.position[0] < 0.0


def test_bad_settings_are_refused():
    motor, spring = MotorSettings((1.0, 1.0), (0.3,)), ElasticDriveSettings((1e3,))
    for word, changes in (
        ('viscous', {'viscous': (1.0, 2.0, 3.0)}),
        ('limits', {'initial_positions': (4.0, 0.0)}),
        ('has 1 values: give 2', {'initial_positions': (4.0,)}),
        ('rows of 2', {'coupling': MotorSettings((1.0, 1.0, 1.0))}),
        ('not go with couplings', {'rotor_inertia': (1.0,), 'elastic': spring, 'coupling': motor}),
        ('shoulder is elastic', {'rotor_inertia': (0.0,), 'elastic': spring}),
    ):
        with pytest.raises(ConfigurationError, match=word):
            Physics(ARM, settled(**changes))


def test_ripple_turns_with_the_joint():
    noise = NoiseSettings(ripple=(1.5,), ripple_order=10.0)
    physics = Physics(SLIDER, settled(noise=noise))
    physics.set_state([np.pi / 20], [0.0])
    physics.step([0.0])
    np.testing.assert_allclose(physics.velocity, 1.5 / 2.0 * 1e-3, rtol=1e-3)


def test_divergence_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    physics = Physics(SLIDER, settled(limit_effort=False))
    with pytest.raises(RobotStateError, match='diverged'):
        for _ in range(1000):
            physics.step([-1e6 * physics.velocity[0] + 1e-3])
    assert list(tmp_path.iterdir()) == []
