"""A simulated UR10 with a body at a force-torque sensor, by MuJoCo and its sensors."""

from pathlib import Path

import mujoco
import numpy as np
import pinocchio

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.pinocchio_model import body_frame
from robotid_ros.plant.physics import Physics
from robotid_ros.simulation_settings import SimulationSettings

URDF = (Path(__file__).resolve().parents[2] / 'urdf' / 'ur10.urdf').read_text()
ROBOT = build_robot(URDF, RobotSettings(rotor_inertia=False, friction={'default': ('viscous',)}))
TOOL = body_frame(ROBOT, 'tool0')
MASS, CENTRE = 2.5, np.array([0.03, -0.02, 0.1])
INERTIA = (0.02, 0.001, -0.002, 0.025, 0.003, 0.015)  # ixx ixy ixz iyy iyz izz
CENTRAL = np.array([MASS, *CENTRE, *INERTIA])
# The base stands askew by 3 degrees, which its description does not say.
TILT = pinocchio.exp3(np.radians([3.0, 0.0, 0.0]))


class SensorArm:
    """The simulated arm of a motion (N, n): efforts, and what sensors at the tool measure."""

    def __init__(self, carries=True, tilt=TILT):
        spec = mujoco.MjSpec.from_string(Physics(URDF, SimulationSettings(), ROBOT.joints).urdf)
        place = TOOL.placement
        xx, xy, xz, yy, yz, zz = np.array(INERTIA) * (1.0 if carries else 1e-9)
        body = spec.body('wrist_3_link').add_body(
            name='held', pos=place[:3, 3], mass=MASS if carries else 1e-9, ipos=CENTRE,
            quat=pinocchio.Quaternion(place[:3, :3]).coeffs()[[3, 0, 1, 2]],
            fullinertia=[xx, yy, zz, xy, xz, yz], explicitinertial=True,
        )  # fmt: skip
        body.add_site(name='sensor')
        for kind in ('FORCE', 'TORQUE'):
            spec.add_sensor(
                name=kind, type=getattr(mujoco.mjtSensor, f'mjSENS_{kind}'), objname='sensor',
                objtype=mujoco.mjtObj.mjOBJ_SITE,
            )  # fmt: skip
        spec.option.gravity = tilt @ [0.0, 0.0, -9.81]
        self.model = spec.compile()
        self.model.dof_damping[:] = self.model.dof_frictionloss[:] = 0.0
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        self.dof = [self.model.joint(name).dofadr[0] for name in ROBOT.joints]

    def measure(self, q, dq, ddq):
        effort, wrench, data = np.empty_like(q), np.empty((len(q), 6)), self.data
        for k in range(len(q)):
            data.qpos[self.dof], data.qvel[self.dof], data.qacc[self.dof] = q[k], dq[k], ddq[k]
            mujoco.mj_inverse(self.model, data)
            effort[k], wrench[k] = data.qfrc_inverse[self.dof], data.sensordata
        return effort, wrench
