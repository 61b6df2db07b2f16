"""The rows of `strangers_logs.py`: what was seen on logs, how to make one, what is asked now."""

from collections.abc import Callable
import dataclasses
from functools import partial

from disturbances import DISTURBANCES
import log_effects as effects
from log_effects import Case, case
import mujoco
import numpy as np
import pinocchio

from robotid_ros.core.pipeline.identification import Identification
from robotid_ros.files.export.identified_model import identified_urdf

# Largest residual over the baseline's.
WORST = 1.02
# Least share of true parameters inside ±3 σ, where all is well, and where errors are no noise:
# rounded positions, friction at rest, which may take any value.
INSIDE, COARSE = 0.95, 0.8
CONSISTENT = 1.1  # largest residual of what `identified.urdf` predicts over that of the estimate


@dataclasses.dataclass(frozen=True)
class Row:
    """
    A class of logs, what was seen of it, how to make one, and what is asked of it now.

    `most` is the largest ratio to the baseline's residual, `inside` the least share of truths;
    `says` has to be found in a warning or in the error that refuses the log, `silent` in none.
    """

    what: str
    before: str
    make: Callable[[], Case]
    most: float | None = WORST
    inside: float | None = None
    says: str = ''
    silent: str = ''
    check: Callable[[Case, Identification], str] | None = None


def consistent(_: Case, result: Identification) -> str:
    """Compare what standard and base parameters leave of the fit."""
    ratio = result.standard.residual / result.standard.base_residual
    return f'{"" if ratio <= CONSISTENT else "not "}identified.urdf leaves {ratio:.2f} × the base'


def loads(_: Case, result: Identification) -> str:
    """Load the description that is written."""
    text = identified_urdf(result.robot, result.standard.value)
    try:
        pinocchio.buildModelFromXML(text)
        mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError) as error:
        return f'not loaded: {error}'
    return 'identified.urdf loads in Pinocchio and MuJoCo'


def measured_only(made: Case, result: Identification) -> str:
    """Compare the residual that is shown with the noise of the log."""
    shown = result.fitted.total_residual()
    noise = effects.plain_run(effects.SEED).noise
    least = np.linalg.norm(noise) / np.linalg.norm(made.logs[0].effort)
    good = shown < 2.0 * least
    return f'{"" if good else "not only noise: "}{100 * shown:.1f} % left, noise {100 * least:.1f}'


def spring(made: Case, result: Identification) -> str:
    """Tell which joints got a spring, and whether these are right."""
    each = result.robot.joints, range(1, result.robot.n + 1)
    names, truth = result.estimate.names, made.truth or {}
    # A spring that is shrunk is there where it is told from zero.
    seen = np.abs(result.estimate.value) > 3.0 * result.estimate.sigma
    springs = {name for name, is_seen in zip(names, seen, strict=True) if is_seen}
    chosen = [joint for joint, k in zip(*each, strict=True) if {f'Kq{k}', f'Dqa{k}'} & springs]
    right = chosen == [joint for joint in result.robot.joints if 'Kq' in truth.get(joint, {})]
    return f'{"" if right else "not right: "}a spring at {", ".join(chosen) or "none"}'


def several() -> Case:
    """Cut a log in three."""
    made, thirds = case(), ((0.0, 10.0), (10.0, 20.0), (20.0, 30.0))
    log = made.logs[0]
    return dataclasses.replace(made, logs=tuple(log.between(*third) for third in thirds))


def tool_of_many() -> Case:
    """Put joints on the robot that nobody recorded."""
    made = case()
    return dataclasses.replace(made, urdf=effects.with_gripper(made.urdf))


def fast_clock() -> Case:
    """Let the stamps run 10 % fast."""
    made = case(known=False)
    log = made.logs[0]
    return dataclasses.replace(
        made, logs=(dataclasses.replace(log, time=1.1 * log.time),), clock=1.0 / 1.1
    )


def disturbed(what: str, before: str, name: str, says: str) -> Row:
    """Return the row of a disturbance of the first joint."""
    return Row(
        what, before, partial(effects.of_first_joint, DISTURBANCES[name][0]), None, says=says
    )


EVERY_OTHER = partial(effects.rows, kept=np.arange(6000) % 2 == 0)
DELAY = 'removed, see'
ROWS = (
    Row('positions repeated in a fifth of the rows', 'cut-off 40 Hz; 2.4 × the baseline',
        partial(case, effects.repeated), inside=COARSE),
    Row('positions polled at 60 Hz', 'cut-off 40 Hz; 1.3 × the baseline',
        partial(case, effects.polled), inside=COARSE),
    Row('positions of 4096 counts a turn', 'cut-off 40 Hz; 1.2 × the baseline',
        partial(case, effects.quantised), inside=COARSE),
    Row('a gap of 4 s', 'residual 33 % shown, 5 % of what was measured',
        partial(case, lambda log: effects.rows(log, np.abs(log.time - 14.0) > 2.0)),
        inside=INSIDE, says='Nothing was recorded for 4', check=measured_only),
    Row('a short log, 5 s', '2040 % on its own fit',
        partial(case, lambda log: log.between(10.0, 15.0)), silent='sign', inside=COARSE),
    Row('a short log, 4 s, in which a joint turns one way', 'the same',
        partial(case, lambda log: log.between(0.0, 4.0)),
        says=r'(does not excite|Smaller than their σ).* ?Fc2'),
    Row('a joint that moves for 5 of 30 s', '577 % on a half log; signs and units blamed',
        partial(case, window=effects.mostly_stands), silent='sign', inside=COARSE),
    Row('all joints stand for a third of the time', '2.7 %, 1.6 with friction that is smooth',
        partial(case, window=effects.stops), inside=COARSE),
    Row('efforts 15 ms late', 'removed where it made it worse',
        partial(case, effects.delayed), inside=INSIDE, says=r' 1[45]\.\d+ ms ± .*removed, see'),
    Row('no delay, friction with the load', '"-34 ms … removed"',
        partial(case, effort=effects.loaded, known=False), silent=DELAY),
    Row('efforts without gravity', 'MZ2R 0.009 instead of 4.43, not a word',
        partial(case, effort=lambda of: of.clean - effects.gravity_torque(of)), inside=INSIDE,
        says='lack gravity', silent=DELAY),
    Row('robot on a slope of 45°', 'told on one robot of two; "-45 ms … removed"',
        partial(case, effort=effects.tilted, known=False), None, silent=DELAY,
        says=r'Gravity along \(6\.\d+, -?0\.\d+, -[67]\.\d+\)'),
    Row('friction of harmonic drives', '5.3 %, 3.5 with the right terms',
        partial(case, effort=effects.harmonic, known=False), 0.75),
    Row('a rigid robot, nothing wrong', '"an elastic transmission would explain 18 %"', case,
        inside=INSIDE, silent=f'elastic|changed|unexplained|{DELAY}'),
    Row('consistent standard parameters', 'identified.urdf: 10 % where the base leaves 3.5',
        case, check=consistent),
    Row('URDF with fingers, a wheel and another arm, not logged', 'identify stops; does not load',
        tool_of_many, inside=INSIDE, says='lacks finger_joint', check=loads),
    disturbed('friction −40 % in half of the log', 'Fc −20 to −32 %, no warning',
              'friction -40 % from the middle', 'friction changed: joint_1'),
    disturbed('payload added in the middle', 'ZZ2 +30 %, no warning',
              'payload of 15 % from the middle',
              'the load beyond joints changed|the last link carries another load'),
    disturbed('effort × 1.3 from the middle', 'parameters +30 %, no warning',
              'effort x 1.3 from the middle', 'scale of efforts changed: joint_1'),
    disturbed('effort of joint 1 × 1000', 'ZZ1R +101,000 %, no warning',
              'effort x 1000', r'effort of joint_1 is (99\d|100\d) times'),
    Row('spring at a joint', '20.7 % left, 14.7 with the spring',
        effects.sprung, inside=INSIDE, silent='unexplained', check=spring),
    Row('stamps 10 % fast', 'parameters +21 %, no warning', fast_clock, None,
        says=r'reception of their messages .*\(\+10 %\)'),
    Row('equal stamps in pairs', 'ZeroDivisionError',
        partial(case, partial(effects.stamped, step=0.01)), inside=INSIDE),
    Row('stamps rounded to 10 ms, 100 Hz', 'ZeroDivisionError',
        partial(case, lambda log: effects.stamped(EVERY_OTHER(log), 0.01)), inside=INSIDE),
    Row('stamps rounded to 100 ms', 'ZeroDivisionError',
        partial(case, partial(effects.stamped, step=0.1)), inside=COARSE),
    Row('90 % of the messages missing', '"no joint moves faster than 0.02 rad/s"',
        partial(case, effects.lost), inside=COARSE, says='Messages are missing'),
    Row('90 % missing in bursts', '"no joint moves faster than 0.02 rad/s"',
        partial(case, effects.lost_in_bursts), None, says='(?i)record without losses'),
    Row('three logs of one robot', 'must be merged by hand', several, inside=INSIDE,
        says='3 logs were identified together', check=spring),
)  # fmt: skip
