"""
The codes of findings: severity, text and reason of each, in one table.

Texts are templates of a finding's values. `{joint}` is its first joint, `{joints}` are all. A part
in double brackets is left out where one of its values is missing, and repeated for the items of
tuples: '[[{joints} {shares:.0%}]]' gives 'j1 3 %, j2 4 %'. Only edges render them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import re
import string
from typing import Any

import numpy as np

from ..exceptions import FEW, shortened
from .findings import Finding, Severity

OK, INFO, WARNING, ERROR = Severity
# Of a template: a part in double brackets, a value with its format.
_PART, _SPEC = re.compile(r'\[\[(.*?)\]\]', re.DOTALL), re.compile(r'\{(\w+)[^}]*\}')


@dataclasses.dataclass(frozen=True)
class Code:
    """
    What a code stands for.

    Attributes
    ----------
    code : stable, by stage: F1 input, F2 signals, F3 motion, F4 efforts and model, F5 parameters,
        F6 result, F7 session, F8 design of a motion, F9 fleet, F10 to F21 a live robot
    name : for programs
    severity : of its findings, where they do not say another
    seen, means, remedy : templates: what was seen, what it means for the result, what to do
    why : why it matters, for `robotid explain`

    """

    code: str
    name: str
    severity: Severity
    seen: str
    why: str
    means: str = ''
    remedy: str = ''

    def texts(self) -> dict[str, str]:
        """Return its sentences, with the names of values in braces."""
        templates = {'seen': self.seen, 'means': self.means, 'remedy': self.remedy}
        plain = {
            k: _SPEC.sub(r'{\1}', _PART.sub(r'\1', t.replace('{tried}', '')))
            for k, t in templates.items()
        }
        plain = {k: f'{t}.' if t else '' for k, t in plain.items()}
        remedy = plain.pop('remedy')
        return {**plain, 'why': self.why, 'remedy': remedy}


# What a remedy left when it was tried, `{tried}` in templates.
TRIED = (
    '[[ (tried with {tried_with}: residual of {tried_on} on parts that were not fitted '
    '{before:.3p} → {after:.3p})]]'
)
EXPLAINS = (
    'The model leaves {residual:.0%} of the effort of {joint} unexplained: {what} explains '
    '{share:.0%} of what the joint alone leaves (residual on parts that were not fitted '
    '{before:.2p} → {after:.2p})'
)
LACKS = (
    'The model lacks a torque that the robot has: parameters of this and other joints are biased.'
)
CHANGES = '[[{joints} {shares:+.0%} from {since:.1f} s on]][[{joints} {drifts:+.0%} gradually]]'
WEIGHTS = '[[{joints} {efforts:.3g} (description: {weights:.3g} {units})]]'

# fmt: off
_TABLE = (
    Code('F001', 'of_earlier_version', WARNING, '{text}',
         'Files of earlier versions hold sentences only.'),
    # --- F1: input ---
    Code('F101', 'columns_found', INFO,
         "Columns of '{table}' were found by {how}: [[{quantities} {columns}]][[; {alike} look "
         'alike]][[; {in_si} without a unit count as SI]]',
         'A column that is taken for another quantity or unit makes every parameter wrong.',
         remedy='If they are others, name them by --columns and --units'),
    Code('F102', 'unit_assumed', INFO, '{quantity} counts as {unit}, for {reason}',
         'A wrong unit of positions or times scales velocities and inertias.',
         remedy='If it is another, give it by --units'),
    Code('F103', 'time_unit_assumed', INFO, 'The stamps {columns} count as {unit}, {reason}',
         'A wrong unit of times scales velocities by a factor and inertias by its square.',
         remedy='If it is another, give it by --units'),
    Code('F104', 'velocities_left_out', INFO,
         'The velocities are in {unit}, whose size nothing says: they are left out',
         'Velocities are computed from positions anyway; measured ones only help to find units.'),
    Code('F105', 'efforts_zero', INFO, '{column} is 0 throughout: the efforts are {taken}',
         'Some drivers log a column of torques that they do not measure.'),
    Code('F106', 'names_matched', INFO,
         'Names of joints differ from those of the robot: [[{words} is {joints}]]',
         'A wrong match mixes up the joints.'),
    Code('F107', 'joints_left_out', INFO, '{words} left out: not among the joints of the robot',
         'Only joints of the robot description can be identified.'),
    Code('F108', 'joints_by_order', INFO,
         'No name of a joint is known to the robot, their order counts: [[{words} is {joints}]]',
         'A log of another order mixes up the joints.',
         remedy='If the order is another, give it by --joints'),
    Code('F109', 'joints_by_number', INFO, '{columns} counted as {joints} of {count} joints',
         'A log of another part of the robot mixes up the joints.',
         remedy='If they are others, name them by --joints'),
    Code('F110', 'tables_joined', INFO,
         'The tables of {tables} are one log[[; {left_out} left out, of another length]]',
         'Files of a folder that are of several logs do not belong together.'),
    Code('F111', 'rows_of_other_joints', INFO,
         'Rows of other joints, or of the same in another order, are left out: [[{sets} ({counts} '
         'rows)]]', 'Where publishers share a topic, a column is of another joint in each row.',
         remedy='To use them, record a bag'),
    Code('F113', 'rows_sorted', INFO,
         'The rows are not in the order of their stamps: they are sorted',
         'Derivatives need samples in order of time.'),
    Code('F114', 'rows_interpolated', INFO,
         'Positions and efforts are in different rows: they are interpolated',
         'An interpolated effort has less noise than a measured one, and is late or early.'),
    Code('F115', 'rows_without_states', INFO,
         '{count} rows without positions and efforts are left out', 'They hold something else.'),
    Code('F116', 'rows_without_time', INFO,
         '{count} rows without a time, or with one far from all others, are left out',
         'A sample without its time cannot be used.'),
    Code('F117', 'stamps_from_rate', INFO, 'Stamps follow from the rate of the file, {rate:g} Hz',
         'A rate that is off scales velocities and inertias.'),
    Code('F118', 'stamps_coarse', INFO,
         'The stamps change every {step:.3g} s only, for several rows each: they are spread '
         'evenly, {rate:.6g} Hz', 'Samples that were not taken evenly get wrong times.',
         remedy='If the rate is another, give it by --rate'),
    Code('F119', 'trials_joined', INFO,
         "The times of '{path}' start again within it: they are taken for trials one after "
         'another, {gap:g} s apart',
         'Trials of different robots or loads do not belong together.'),
    Code('F120', 'metadata_missing', INFO,
         'metadata.yaml is missing: the data files are read themselves',
         'A recorder that was killed leaves none.'),
    Code('F121', 'metadata_damaged', WARNING,
         'metadata.yaml is damaged ({reason}): the data files are read themselves',
         'The disk or a copy may have damaged more of the recording.', remedy='Check the disk'),
    Code('F122', 'files_missing', WARNING, 'Of the recording {files} is missing',
         'What it held is missing in the result.', remedy='Copy the whole folder'),
    Code('F123', 'messages_missing', WARNING,
         "'{file}' promises {promised} messages, {count} were found",
         'The recording lost its end, or parts.', remedy='Check the disk, or copy it again'),
    Code('F124', 'cut_short', WARNING,
         'The recording was cut short: it is read up to its last whole message',
         'A recorder that was killed leaves a file without its index.',
         remedy='mcap recover writes the index'),
    Code('F125', 'damaged_parts', WARNING,
         "Damaged parts of '{file}' were left out: {parts}, with {count} messages[[ from "
         '{start:.2f} to {stop:.2f} s]]',
         'Gaps are bridged or left out; parameters of a joint that moved then are less certain.',
         remedy='Check the disk'),
    Code('F126', 'messages_left_out', WARNING,
         '{count} messages of {topic} were left out: {reason}',
         'Something publishes what is no joint state.', remedy='Correct the publisher'),
    Code('F127', 'write_ahead_log', WARNING, "'{file}' was not merged",
         'Its messages, the last ones, are missing.',
         remedy='Run sqlite3 {database} .dump to merge it'),
    Code('F128', 'options_of_tables', INFO,
         'Columns, units and rate are of tables: they are passed over for a bag',
         'A bag says itself what its fields are.'),
    Code('F129', 'topic_chosen', INFO, 'The joint states of {topic} count, not those of {others}',
         'Several publishers may be of several robots.',
         remedy='If these are the wrong ones, name joints of another topic by --joints'),
    Code('F130', 'states_of_fields', INFO,
         'There are no sensor_msgs/JointState: those of {topic} are taken',
         'Fields of a custom message were matched by their names.'),
    Code('F131', 'no_stamps', WARNING,
         'The joint states carry no stamps: the times of reception count',
         'Times of reception jitter and are late, which blurs accelerations.',
         remedy='Let the publisher stamp its messages'),
    Code('F132', 'commands_as_efforts', INFO,
         "The joint states report {what} of {joints}: the controller's commands are taken for it",
         'A drive that does not follow its command, by friction or a limit, makes parameters '
         'wrong.'),
    Code('F133', 'efforts_of_topic', INFO, 'The efforts are those of {topic}',
         'Measured currents or torques may be published elsewhere than joint states.'),
    Code('F134', 'several_publishers', INFO,
         '{groups} come from different publishers: they are interpolated',
         'Clocks of publishers may differ.'),
    Code('F135', 'update_rate', INFO,
         "The states of '{controller}' come at {rate:.4g} Hz, its parameter update_rate is "
         '{stated}: its updates are taken to be as frequent as its states',
         'DIDIM simulates the controller at its update rate.'),
    Code('F136', 'sets_of_joints', WARNING,
         'Joint states name different sets of joints: [[{sets} {counts} times]]',
         'Several publishers share a topic.', remedy='Name the joints by --joints'),
    Code('F137', 'stamps_backward', WARNING, '{count} stamps jump back',
         'Two publishers share a topic, or a clock was set.',
         remedy='Stop the other publisher, or leave the clock alone while recording'),
    Code('F138', 'stamps_twice', INFO, '{count} stamps repeat: the same state was published twice',
         'The publisher is faster than what it reads.'),
    Code('F139', 'messages_lost', INFO, '{count} messages are missing in {gaps} gaps',
         'Gaps are bridged where they are short, else left out.'),
    Code('F140', 'other_robot', WARNING,
         'The parameters are of {identified}, the recording of {recorded}',
         'Parameters of one robot do not predict another one.',
         remedy='Give the parameters of the robot that was recorded'),
    # --- F2: signals ---
    Code('F201', 'clock_jumped', WARNING,
         'The clock of the stamps jumped by {jump:+.6g} s after {since:.2f} s: this is taken '
         'back by the times of reception',
         'What was estimated of a jump is less exact than stamps.',
         remedy='Set the clock before recording'),
    Code('F202', 'stamps_far_off', WARNING, '{count} samples with stamps far off were left out',
         'The clock of the stamps fails at times.', remedy='Check the driver'),
    Code('F203', 'clock_drifts', WARNING,
         'The stamps span {stamped:.1f} s, the reception of their messages {received:.1f} s '
         '({share:+.0%})', 'Velocities are off by as much as the stamps, inertias by twice that.',
         means='This is right if a bag was replayed at another speed. Else the clock of the '
         'stamps is wrong, and inertias by {inertia:.0%}',
         remedy='Record with stamps of the system clock'),
    Code('F204', 'simulated_time', INFO,
         'The stamps span {stamped:.1f} s of simulated time, the reception of their messages '
         '{received:.1f} s ({share:+.0%})',
         'This is right if the simulation was not as fast as real time.'),
    Code('F205', 'stamps_rounded', INFO,
         '{count} samples have the stamp of the one before: the stamps are rounded to {step:.3g '
         'ms}, the samples were spread evenly between them',
         'Rounded stamps make velocities noisy.'),
    Code('F206', 'stamps_jitter', INFO,
         'The stamps jitter by {jitter:.2f ms}, the samples have {share:.0%} of its variance: '
         'the rest was taken out', 'Stamps that are off the samples make accelerations noisy.'),
    Code('F207', 'samples_not_finite', INFO, '{count} samples that are not numbers were left out',
         'A sensor or a bus fails at times.'),
    Code('F208', 'stamps_repeated', INFO,
         '{count} samples with repeated or older stamps were left out',
         'The same state was published twice, or by two publishers.'),
    Code('F209', 'spikes', INFO, '{count} spikes in the {quantity} of {joint} were left out',
         'A single wrong value makes large accelerations.'),
    Code('F210', 'samples_repeated', INFO,
         '{count} samples repeat the one before them: they are left out',
         'A driver that hangs publishes its last state again.'),
    Code('F211', 'angles_unwrapped', INFO, 'The position of {joints} jumps by 2π: it is unwrapped',
         'Encoders of one turn start again.'),
    Code('F212', 'gaps_interpolated', WARNING,
         'Messages are missing all over, {rate:.3g} come in a second: gaps of up to '
         '{longest:.2f} s were interpolated', 'Accelerations within the gaps are guessed.',
         remedy='Record without losses for better accelerations'),
    Code('F213', 'gap_left_out', INFO,
         'Nothing was recorded for {duration:.2f} s at {since:.2f} s: left out',
         'What the robot did then is not in the result.'),
    Code('F214', 'gaps_left_out', INFO,
         'Nothing was recorded for {duration:.2f} s in {count} gaps: left out',
         'What the robot did then is not in the result.'),
    Code('F215', 'mostly_gaps', WARNING,
         'Nothing was recorded for {duration:.2f} s in {count} gaps, which is {share:.0%} of the '
         'time: left out', 'Filters have transients at the ends of each burst.',
         means='The parameters are those of a few short bursts and may be far off',
         remedy='Record without losses'),
    Code('F216', 'samples_missing', INFO,
         '{count} of {total} samples are missing: they are interpolated',
         'A few missing samples cost hardly any accuracy.'),
    Code('F217', 'effort_clipped', WARNING,
         'The effort of {joint} is clipped in {share:.1%} of the samples: these are left out',
         'A drive at its limit does not show the torque that the motion needs.',
         remedy='Run a slower trajectory'),
    Code('F218', 'effort_steps', WARNING, 'The effort of {joint} comes in steps of {step:.3g}',
         'Rounding is the same at the same effort; averaging does not remove it.',
         means='Rounding is no noise: errors may be larger than σ says',
         remedy='Record efforts with more digits'),
    Code('F219', 'periods_averaged', INFO, 'The periods of {period:g} s were averaged',
         'An average of periods has less noise.'),
    Code('F221', 'efforts_held', INFO,
         'The efforts are commands that were held: they belong {delay:.2f ms} before their stamps',
         'A command counts from when it is set until the next one.'),
    Code('F222', 'delay_removed', INFO,
         'The efforts are {delay:.2f ms} ± {sigma:.2f ms} behind the positions: this delay is '
         'removed, see signals.time_offset', 'A delay looks like friction or inertia.'),
    Code('F223', 'delay_too_long', WARNING,
         'The efforts are {delay:.2f ms} ± {sigma:.2f ms} behind the positions: too long for a '
         'bus, so it is not removed', 'A delay looks like friction or inertia.',
         remedy='Record both from one clock'),
    Code('F224', 'joint_delay_removed', WARNING,
         'The effort of {joint} is {delay:.0f ms} ± {sigma:.0f ms} behind its position, others '
         '{common:.0f ms}: its delay is removed', 'A delay looks like friction or inertia.',
         remedy='Record all efforts from one clock'),
    Code('F225', 'joint_delay', WARNING,
         'The effort of {joint} is {delay:.0f ms} ± {sigma:.0f ms} behind its position, others '
         '{common:.0f ms}: its delay is not removed', 'A delay looks like friction or inertia.',
         means='Its friction is doubtful', remedy='Record all efforts from one clock'),
    Code('F226', 'uncertain_times', WARNING,
         'The stamps jitter by {jitter:.2f ms}, and the times of the samples are known to '
         '{left:.2f ms} only', 'An error of time is an error of velocity and acceleration.',
         means='{parameter} may be off by {change:.2g} {unit} for that, {ratio:.1f} times what '
         'noise does. σ counts it',
         remedy='Record on a quiet machine, or give the process that reads the drives a '
         'real-time priority and a real-time kernel'),
    Code('F227', 'long_recording', INFO,
         'A long recording: residuals and torques shown are of {count} parts of it, the fit is '
         'of all', 'Rows of a long recording do not fit into memory.'),
    Code('F228', 'logs_together', INFO, '{count} logs were identified together: {logs}',
         'Logs add up where nothing but the motion differs.'),
    Code('F229', 'long_logs', INFO,
         'Long logs: residuals and torques shown are of parts of them, the fit is of all',
         'Rows of long recordings do not fit into memory.'),
    # --- F3: motion ---
    Code('F301', 'hardly_moved', WARNING, '{joint} hardly moved ({share:.0%} of the time)',
         'Of a joint at rest, friction takes any value.',
         remedy='Record a motion that moves it, or name it in robot.locked'),
    Code('F302', 'one_way', WARNING,
         '{joint} turned one way only ({share:.1%} of its motion the other way)',
         'At one sign of the velocity, Coulomb friction is a constant torque, as an offset is.',
         means='Its Coulomb friction and its offset are told apart by assumption only, their sum '
         'is identified', remedy='Record a motion that turns it both ways'),
    Code('F303', 'beyond_limits', ERROR,
         '{joint} was recorded from {low:.4g} to {high:.4g}, outside of its limits {lower:.4g} '
         'to {upper:.4g}', 'Positions in degrees, or of another zero, make every parameter wrong.',
         remedy='Check unit (rad, not degrees), zero and URDF'),
    Code('F304', 'locked_without_efforts', INFO,
         '[[{joints} stood at {positions:.4g}]], without efforts beside those of the others: '
         'taken as locked there', 'Gravity and inertia of the others depend on where they are.'),
    Code('F305', 'locked_though_moving', WARNING,
         '[[{joints} moved around {positions:.4g}]], without efforts beside those of the others: '
         'taken as locked there', 'Gravity and inertia of the others depend on where they are.',
         remedy='Record them with the others, or at rest'),
    Code('F306', 'joints_not_recorded', WARNING,
         'The recording lacks [[{joints} at {positions:.4g}]]: taken as locked there',
         'Gravity and inertia of the others depend on where they are.',
         remedy='If that is wrong, set robot.locked'),
    Code('F307', 'stood_still', INFO, '{joint} stood at {position:.4g} and is not identified',
         'Of a joint at rest nothing can be identified.', remedy='Let it move, if it should be'),
    Code('F308', 'moved_but_locked', WARNING,
         '{joint} moved from {low:.4g} to {high:.4g} but counts as locked',
         'Its motion acts on the others.',
         remedy='Name it in robot.joints, or record with it at rest'),
    Code('F309', 'names_alike', INFO,
         'Joints of description and recording have names that are alike: [[{joints} and '
         '{recorded}]]', 'A joint without its recording is taken as locked.',
         remedy='If they are the same, rename them in the description'),
    Code('F310', 'encoder_noise', INFO,
         'Encoders are noisy: motion and parameters were estimated together from averaged periods',
         'Noise of a small deflection biases stiffnesses.'),
    Code('F311', 'did_not_move', INFO, '{joint} did not move',
         'Of a joint at rest nothing can be identified.',
         remedy='Name it in robot.locked, or move it'),
    # --- F4: efforts and model ---
    Code('F401', 'effort_sign', ERROR, 'The effort of {joints} seems to have the opposite sign',
         'Positive efforts have to accelerate a joint in its positive direction.',
         remedy='Set robot.drive_gain to {gains:.3g} there, or of a table --units '
         "'effort=Nm*-1', one for each joint between commas{tried}"),
    Code('F402', 'effort_gain', ERROR,
         'The effort of {joint} is {factor:.4g} times what fits those of the other joints[[, as '
         'if it were in {unit}]]',
         'One joint with a wrong scale spoils the parameters of those that share links with it.',
         remedy='Set its robot.drive_gain to {gains:.3g}[[ (or that of {other} by '
         '{other_gain:.3g}: these data do not tell which)]]{tried}'),
    Code('F403', 'efforts_swapped', ERROR, 'The efforts of {joints} are exchanged',
         'Every parameter of both joints is wrong.',
         remedy='Name their columns the other way round{tried}'),
    Code('F404', 'effort_scale', ERROR,
         "Efforts are not those of the URDF's masses: [[{joints} {factors:.3g} times]]",
         'A wrong unit scales masses, inertias and friction.',
         remedy='If the efforts are currents or in another unit, set robot.drive_gain to what '
         'turns them into torques, about {gains:.3g}{tried}'),
    Code('F405', 'effort_unit', ERROR,
         'The efforts are no torques: they are {factor:.2g} times what the masses of the URDF '
         'need ([[{joints} {factors:.3g}]]), as currents are',
         'A unit that is not N·m scales masses, inertias and friction.',
         means='Masses, inertias and friction are wrong by such factors',
         remedy='Set robot.drive_gain to the torque per unit of effort of each joint, about '
         "{gains:.3g}, or of a table --units 'effort=A*12'. If they are torques, correct the "
         'masses of the URDF or set every robot.drive_gain to 1{tried}'),
    Code('F406', 'effort_unit_of_log', ERROR, 'The efforts are {what}',
         'A unit that is not N·m scales masses, inertias and friction.',
         means='Parameters come out per {each}',
         remedy="Give gains [N·m/{unit}], --units 'effort={unit}*0.12'"),
    Code('F407', 'gravity_direction', ERROR,
         'Gravity along ({direction:.2f}) in the frame of the base explains the efforts far '
         'better than robot.gravity does',
         'With a wrong gravity, every mass and centre of mass is wrong.',
         remedy='If the arm hangs, or stands on a wall or a slope, set robot.gravity to '
         'that{tried}'),
    Code('F408', 'friction_jump', ERROR,
         'The friction of {joint} changes by {jump:+.2g} {unit} at {since:.2f} s',
         'One value of friction cannot stand for two.',
         remedy='Leave out what is from {start:.2f} to {stop:.2f} s, or identify the parts '
         'apart{tried}'),
    Code('F409', 'effort_saturation', ERROR,
         'The effort of {joint} seems to saturate near {limit:.3g} in {share:.0%} of the samples',
         'A drive at its limit does not show the torque that the motion needs.',
         remedy='Run a slower trajectory, or leave these parts out'),
    Code('F410', 'beyond_effort_limit', ERROR,
         "Efforts are far beyond the URDF's effort limits: [[{joints} {efforts:.3g} "
         '({limits:.3g})]]', 'Drives peak at two to three times what they hold.',
         means='Their unit or drive gain, or the limits, are not those of this robot',
         remedy='Check units, robot.drive_gain and the limits'),
    Code('F411', 'implausible_inertia', ERROR,
         'Joints move like inertias of [[{joints} {inertias:.2g} (URDF: {expected:.2g})]] kg·m² '
         '(prismatic: kg)',
         'An inertia far from that of the links comes from a wrong unit, or from springs.',
         means='Unit or drive gain of their efforts, the unit of the times or the inertias of '
         'the URDF are not those of this robot, or the joints are elastic',
         remedy='Check units, robot.drive_gain and the URDF'),
    Code('F417', 'axis_reversed', ERROR,
         '{joints} moves the other way round than in the URDF',
         'Positions, efforts and URDF have to agree which way is positive.',
         remedy='Multiply the axis in the URDF by -1, check the position limits, which turn with '
         'it, and set robot.drive_gain to {gains:.3g} there{tried}'),
    Code('F412', 'effort_changed', ERROR,
         f'During the recording the scale of efforts changed: {CHANGES}',
         'One set of parameters cannot stand for both parts.',
         means='A gain, a filter or a drive is another one since',
         remedy='Identify the parts apart'),
    Code('F413', 'friction_changed', ERROR,
         f'During the recording the friction changed: {CHANGES}',
         'Friction falls by a third or more as gears warm up.',
         remedy='Let the robot warm up before recording, or identify the parts apart'),
    Code('F414', 'load_changed', ERROR,
         f'During the recording the load beyond joints changed: {CHANGES}',
         'One set of parameters cannot stand for both parts.',
         means='What hangs on these joints changed',
         remedy='Identify the parts with and without it apart'),
    Code('F415', 'offset_changed', ERROR,
         f'During the recording the zero of efforts changed: {CHANGES}',
         'A zero that moves looks like friction and gravity.',
         remedy='Set it to zero again, or identify the parts apart'),
    Code('F416', 'payload_changed', ERROR,
         'From {since:.1f} s on the last link carries another load[[, by about {mass:+.2g} kg,]] '
         'than before', 'Masses of the last links are those of neither part.',
         remedy='Identify the parts with and without it apart'),
    *(
        Code(code, name, ERROR, EXPLAINS.replace('{what}', what), LACKS, remedy=remedy)
        for code, name, what, remedy in (
            ('F420', 'unexplained_coupling', 'what goes with speed and acceleration of {other}',
             'If a motor turns with both, see coupling in robot.couplings'),
            ('F421', 'unexplained_spring', 'what goes with its own position',
             'Of a spring, a counterbalance or a cable, see spring in robot.friction'),
            ('F422', 'unexplained_friction', 'another shape of friction',
             'See robot.friction: stiction, makkar, smooth_coulomb, root_viscous'),
            ('F423', 'unexplained_load_friction', 'friction that grows with the load',
             'See load_coulomb in robot.friction'),
            ('F424', 'unexplained_lag', 'a lag behind the model',
             'Check for a delay (signals.time_offset) or friction that builds up over a reversal'),
        )
    ),
    Code('F425', 'unexplained_motion', ERROR,
         'The model leaves {residual:.0%} of the effort of {joint} unexplained: it follows the '
         'motion, but no friction, spring, coupling or delay explains it', LACKS,
         remedy='Check effort sensor, URDF and what touches the robot'),
    Code('F426', 'unexplained_effort', ERROR,
         'The model leaves {residual:.0%} of the effort of {joint} unexplained: no sign, gain, '
         'exchange of columns, delay or direction of gravity explains it', LACKS,
         remedy='Compare joint axes and lengths of the URDF with the robot'),
    Code('F427', 'contradicting_joints', ERROR,
         'The model leaves more unexplained than it would of each joint alone: [[{joints} '
         '({residuals:.0%} instead of {alone:.0%})]]. No sign, gain, exchange of columns, delay '
         'or direction of gravity explains it',
         'Joints share the parameters of the links beyond them: what fits one has to fit the '
         'others.', means='The joints contradict each other',
         remedy='Compare joint axes and lengths of the URDF with the robot'),
    Code('F430', 'spring_not_shown', WARNING,
         'The torque of {joint} explains {explained:.0%} of its deflection of {deflection:.1e} '
         'rad, {parameter} = {stiffness:.3g}',
         'A stiffness from a deflection that is noise means nothing.',
         means='These data show no spring',
         remedy='Take the joint out of robot.elastic.joints or improve its encoders'),
    Code('F431', 'elastic_transmission', WARNING,
         'An elastic transmission of about {stiffness:.2g} {unit} would explain {share:.0%} of '
         'what the rigid model leaves at {joint} below {band:.1f} Hz',
         'Behind a spring, the link is not where the encoder of the motor is.',
         remedy='Add a link encoder and robot.elastic, or move slower'),
    Code('F432', 'second_encoder', WARNING,
         '{encoder} moves with {joint} but for up to {deflection:.2g} rad, in step with its '
         'effort (correlation {correlation:.2f})', 'Two encoders of a joint show its spring.',
         means='{joint} is elastic', remedy='Add it to robot.elastic.joints'),
    Code('F441', 'gravity_compensated', ERROR,
         'The efforts hold no gravity, which the model counts',
         'Every mass and centre of mass is wrong.',
         means='The driver compensates gravity before it publishes them',
         remedy='Set robot.effort_kind, or --effort-kind, to without_gravity{tried}'),
    Code('F440', 'no_gravity', INFO,
         'The efforts hold no gravity: without it the model predicts within {without:.1%}, with '
         'it within {with_gravity:.1%}',
         'Some drivers compensate gravity before they publish the effort.',
         remedy="If the driver does that, set robot.effort_kind to 'without_gravity', else to "
         "'joint_torque'"),
    Code('F445', 'model_not_chosen', WARNING,
         'No friction beyond viscous and Coulomb was looked for: {reason}',
         'What friction does at low speed or under load is then an error of all parameters.',
         remedy='Record longer, or set identification.model to plain'),
    Code('F442', 'load_of_urdf', WARNING, 'The load of the friction is that of the URDF',
         'Its iteration needs all rows at once.', remedy='Choose a part that fits into memory'),
    Code('F443', 'load_not_converged', WARNING,
         'The load of the friction did not converge in {steps} steps',
         'Friction that grows with the load is a product of parameters, found by iteration.',
         remedy='Leave load_coulomb out of robot.friction, or excite with more load'),
    Code('F450', 'inertial_incomplete', WARNING,
         'The inertial of {links} lacks a mass or a number of its inertia: parsers of URDFs '
         'leave it out', 'The initial parameters of these links are zero.', remedy='Complete it'),
    Code('F451', 'inertia_impossible', WARNING,
         'The inertia of {links} has a negative diagonal element, which no body has',
         'Initial parameters that no body has pull the result away.', remedy='Correct it'),
    Code('F452', 'angles_rounded', INFO,
         'Angles of {joints} were written as rounded multiples of π/2 and taken as exact',
         'Axes that are almost parallel give base parameters that no data can distinguish.',
         remedy='Write more decimals in the URDF'),
    Code('F453', 'masses_assumed', WARNING,
         'The URDF has no inertials: {mass:g} kg are shared out between its links by their '
         'lengths', 'Base parameters and predicted torques do not depend on them.',
         means='Efforts of a motion to be run, and how standard parameters are shared between '
         'links, depend on them',
         remedy='robot.mass should be that of the data sheet; masses and inertias in the URDF '
         'are better'),
    Code('F460', 'effort_constant', WARNING, 'The effort of {joint} never changes while it moves',
         'A joint without effort cannot be identified.', remedy='Check its sensor'),
    Code('F461', 'effort_against_motion', WARNING,
         'The effort of {joint} drives against its motion on the whole, as one of the opposite '
         'sign does; identify tries it', 'Friction takes energy: a motor has to give it.'),
    Code('F462', 'effort_flat', WARNING,
         'The effort of {joint} is clipped in {share:.1%} of the samples',
         'A drive at its limit does not show the torque that the motion needs.',
         remedy='Run a slower trajectory'),
    # --- F5: parameters ---
    Code('F501', 'smaller_than_sigma', INFO,
         'Smaller than their σ: [[{parameters} (%σ {percent:.0f})]]; the motion does not tell '
         'them from zero',
         'Such a parameter has an unknown sign; together they may still predict well.',
         remedy='[[Use the {tried_with}]]{tried}'),
    Code('F502', 'methods_disagree', WARNING, '{method} and DIDIM disagree on {parameters}',
         'Both are unbiased where their assumptions hold.',
         means='Noise of the positions spoils the one, wrong gains, delays or a slow control '
         'loop the other', remedy='Compare the residuals of both in the report'),
    Code('F503', 'not_physical', WARNING,
         '{robot}: identified.urdf leaves a residual of {residual:.3p}, the base parameters '
         '{base:.3p}: no physically consistent bodies and friction leave less than '
         '{attainable:.3p}', 'A simulator needs bodies that can exist; prediction does not.',
         means="In the way is the link or drive of '{joint}', without whose constraints "
         '{without:.3p} would be left', remedy='Check the effort and the friction of that joint'),
    Code('F504', 'base_predicts_better', WARNING,
         'Base parameters predict better than identified.urdf',
         'Consistent bodies may fit less than the base parameters.', remedy='Use these{tried}'),
    Code('F505', 'near_description', WARNING,
         'The motion tells too little of {parameters}: they stay near the values of the robot '
         'description, dry friction of a joint that never slips at what holds it',
         'What the motion does not show comes from the description.',
         remedy='Excite these joints more to identify them'),
    Code('F506', 'payload_uncertain', WARNING,
         'The mass, {mass:.3g} ± {sigma:.2g} kg, does not stand out of its σ',
         'A payload is the difference of two identifications.',
         remedy='Check {advice}, take a heavier body, or a motion against gravity'),
    Code('F507', 'payload_not_told', WARNING,
         'The motion does not tell {parameters} apart (σ is infinite), and so not {central}',
         'A wrist that turns about one axis shows one inertia only.',
         remedy='Move the joints up to {joint} more, about other axes, if these matter'),
    Code('F508', 'payload_impossible', WARNING,
         'No body can have the parameters that fit best: these are of the nearest one that can '
         'exist, up to {distance:.1f} σ away', 'Noise, or a wrong model, lies between both.',
         remedy='[[Check {advice}, and the robot description]][[Record longer for more exact '
         '{inexact}]]'),
    # --- F6: result ---
    Code('F601', 'exact_fit', WARNING,
         'The model leaves hardly anything of the effort of [[{joints} ({residuals:.2p})]], '
         'which has less noise than any sensor ({least:.1p})',
         "Efforts that are computed from a model give that model's parameters, not the robot's.",
         means='They look like computed efforts', remedy='Record measured efforts'),
    Code('F602', 'no_dissipation', WARNING,
         'The friction of {joint} does not dissipate from {low:.3g} to {high:.3g} {length}/s: '
         'between {start:.3g} and {stop:.3g} {length}/s it pushes with {torque:.2g} ± '
         '{sigma:.1g} {unit}', 'A simulation with friction that gives energy is unstable.',
         means='Its law is no use there',
         remedy='Take its plain equivalent (plain_friction in parameters.yaml), or record more '
         'of these speeds'),
    Code('F604', 'logs_far_apart', WARNING,
         'The logs do not agree, so much of their efforts is left unexplained: [[{logs} '
         '{shares:.0%} (alone {own:.0%})]]',
         'One set of parameters cannot stand for several robots.',
         remedy='Identify apart what had another tool, temperature or robot'),
    Code('F605', 'logs_agree', INFO,
         "The logs agree within their σ: p = {p:.2g} by Cochran's Q of each parameter, with "
         "Holm's correction, least on {parameter}",
         'Parameters that repeat from log to log are those of the robot.'),
    Code('F606', 'logs_disagree', WARNING,
         'The logs disagree, most on {parameter} ([[{logs} {values:.4g} ± {sigmas:.2g}]]): p = '
         "{p:.2g} by Cochran's Q of each parameter, with Holm's correction",
         'σ of logs that differ is too small.',
         remedy='Look for what differs in {outlier}: temperature, tool or wear'),
    Code('F607', 'agreement_not_tested', INFO,
         'Too few of the logs determine all parameters to test whether they agree',
         'The test needs an estimate from each log.'),
    Code('F610', 'effort_not_predicted', WARNING,
         '{residual:.0%} of the effort of {joint} is not predicted',
         'The model does not stand for this recording.', means='No factor and no zero explains it',
         remedy='Payload, friction (temperature) or delay may have changed, or the parameters '
         'are not of this robot'),
    Code('F611', 'effort_scaled', WARNING,
         '{residual:.0%} of the effort of {joint} is not predicted: what was measured is '
         '{factor:.3g} times the prediction', 'The unit or the gain of the effort is another one.',
         remedy='Check its unit, or divide its robot.drive_gain by {factor:.3g}{tried}'),
    Code('F612', 'effort_shifted', WARNING,
         '{residual:.0%} of the effort of {joint} is not predicted: what was measured is '
         '{offset:.3g} beside it', 'The zero of the sensor is another one.',
         remedy='Check the zero of its sensor{tried}'),
    Code('F613', 'nothing_predicted', WARNING,
         '{residual:.0%} of the effort of {joint} is not predicted',
         'The model does not stand for this recording.',
         remedy='The parameters may not be of this robot, or units, signs or zeros of joints '
         'differ'),
    Code('F620', 'loop_slow', WARNING,
         '{joint}: ω_n of its loop is {omega:.3g} rad/s, only {ratio:.2g} times the bandwidth of '
         'the motion ({band:.3g} rad/s)',
         'A loop that does not follow the motion leaves its parameters to the gains.',
         means='DIDIM may be biased', remedy='Use a slower motion or stiffer gains'),
    Code('F621', 'motion_doubtful', WARNING,
         '{joint}: the simulated motion is {ratio:.2g} times as far from the measured one as '
         'that is from its reference',
         'The simulated loop lags as the measured one does where gains are right.',
         means='Its parameters are doubtful, its friction above all',
         remedy="The control law or its gains are not the robot's: compare them"),
    Code('F622', 'motion_wrong', ERROR,
         '{joint}: the simulated motion is {ratio:.2g} times as far from the measured one as '
         'that is from its reference',
         'The simulated loop lags as the measured one does where gains are right.',
         means='Its parameters are not trustworthy',
         remedy="The control law or its gains are not the robot's: compare them"),
    Code('F623', 'torque_unexplained', WARNING, '{residual:.0%} of the torque stays unexplained',
         'The right control law leaves far less.',
         remedy="The control law, its gains or the drive gains may not be the robot's: compare "
         'them'),
    Code('F624', 'not_converged', WARNING,
         '{method} has not converged, its result is that of the last simulation ({reason})',
         'Parameters that still change are not determined.', means='[[Do not trust {parameters}]]',
         remedy='Use a richer motion, or look at its convergence in the report'),
    Code('F625', 'steps_shortened', INFO, 'Some steps of {method} were shortened',
         'A full step would have made the simulation worse.',
         remedy='Check its convergence in the report'),
    Code('F626', 'reference_instruments', INFO,
         'The instruments are those of the reference, since none were simulated: {reason}',
         'Instruments of a simulation correlate more with the motion.'),
    Code('F627', 'nothing_to_compare', WARNING, 'DIDIM has no result to compare with: {reason}',
         'Two methods with different assumptions check each other.',
         remedy="If the comparison is not needed, use method 'wls'"),
    Code('F630', 'no_report', WARNING, 'There is no report: {reason}',
         'The report has the plots that show why a joint is predicted badly.'),
    Code('F631', 'marked_unusable', WARNING,
         'These parameters were judged to be unusable when they were identified ({reason})',
         'They predict no other motion of the robot.', remedy='Identify again'),
    # --- F7: session ---
    Code('F701', 'session_cut', WARNING,
         'The session was cut while {phase}[[, {missing:.1f} s of this motion are missing]]',
         'A motion that was cut excites less than was designed.', remedy='Record a whole session'),
    Code('F702', 'slow_motion', INFO,
         '{phase} ran at {speed:.0%} of the planned speed, by the speed scaling',
         'Inertias are known better at full speed.'),
    Code('F703', 'speed_changed', INFO,
         '{phase} ran at {low:.0%} to {high:.0%} of the planned speed, by the speed scaling, so '
         'its periods differ',
         'Periods that differ cannot be averaged, and inertias are known better at full speed.'),
    Code('F704', 'gains_changed', WARNING,
         'The gains of {joints} were changed during the recording, and nobody knows when',
         'DIDIM simulates the controller with its gains.', means='No method uses them',
         remedy='For DIDIM, record with gains that stay'),
    # --- F8: design of a motion ---
    Code('F801', 'designed_columns', INFO, '{count} columns, {which}',
         'The motion excites the parameters of these columns.'),
    Code('F802', 'search_stopped', INFO,
         'The search was stopped before its end: the same seed may give another trajectory',
         'A longer search excites more.'),
    Code('F803', 'convex_hulls', INFO, '{count} meshes are replaced by their convex hulls',
         'A hull is larger than its mesh: distances are smaller than those of the robot.'),
    Code('F804', 'boxes', INFO, 'The hulls of {bodies} are too fine: they are replaced by boxes',
         'A box is larger than its mesh: distances are smaller than those of the robot.'),
    Code('F805', 'never_apart', INFO, 'Never apart, not checked: {pairs}',
         'Bodies that overlap in every pose are neighbours by their shapes.'),
    Code('F806', 'overlapping', INFO,
         'Overlap in many poses by their shapes, not checked: {pairs}',
         'A motion may bring these links together.', remedy='See that they cannot touch'),
    Code('F807', 'arm_hangs', INFO, 'No ground is set, the arm seems to hang ({reason})',
         'Without a ground, the motion may reach the floor.',
         remedy='If there is one, set excitation.workspace.ground'),
    Code('F808', 'no_room_above_ground', INFO,
         'No ground is set: no pose is free above {height:g} m, the arm may hang',
         'Without a ground, the motion may reach the floor.',
         remedy='If there is one, set excitation.workspace.ground'),
    Code('F809', 'followers_stand_still', WARNING,
         '{joints} follow joints of the arm, and stand still in the model: how they move is not '
         'in the checks of a motion', 'They may hit something.', remedy='Keep clear of them'),
    Code('F810', 'self_collision_unchecked', WARNING, 'Self-collision is not checked',
         'The motion may bring links together.', remedy='Set excitation.workspace.self_collision'),
    Code('F811', 'ground_unchecked', WARNING, 'The ground is not checked',
         'The motion may reach the floor or the table.',
         remedy='Set excitation.workspace.ground to its height'),
    Code('F812', 'masses_unchecked', WARNING,
         'The masses of the links are assumed, efforts are checked by these alone',
         'The motion may need more effort than the drives have.',
         remedy='Give the links masses and inertias'),
    Code('F813', 'no_collision_geometry', WARNING,
         'The description has no collision geometry: self-collision is not checked',
         'The motion may bring links together.', remedy='Give the links collision geometry'),
    Code('F814', 'collision_geometry_unreadable', WARNING,
         'The collision geometry cannot be read ({reason}): self-collision is not checked',
         'The motion may bring links together.', remedy='Set excitation.workspace.mesh_folders'),
    Code('F820', 'badly_conditioned', ERROR,
         'The normalised condition number is {condition:.3g}, above {most:g}',
         'Noise moves parameters far where columns are nearly dependent.',
         remedy='Lengthen excitation.period, raise excitation.time_limit or loosen the limits'),
    Code('F821', 'search_too_short', ERROR,
         'The search was stopped after {evaluations} evaluations for {variables} variables',
         'Such a search has not looked in every direction.', remedy='Raise excitation.time_limit'),
    Code('F822', 'nothing_validates', ERROR, 'There is no trajectory that validates: {reason}',
         'Without another motion, nothing shows how well the model predicts.',
         remedy='Loosen the limits, or set excitation.validation.kind to none'),
    # --- F9: fleets; 'type' and 'robot' name the robot ---
    Code('F901', 'inverted_effort', ERROR,
         'The effort of {joint} has the opposite sign of the others ({gain:.2f} times what they '
         'predict)', 'Its parameters do not belong to those of its type.',
         remedy='Check its wiring and drive gain'),
    Code('F902', 'undeclared_payload', WARNING,
         'Links differ from the others as if {mass:+.3g} kg were at {joint} (p = {p:.1g})',
         'Feed-forward and contact detection of this robot are wrong by a payload.',
         remedy='Check tool, payload and their declaration'),
    Code('F903', 'outlier', WARNING,
         '{parameter} differs from the others by {difference:+.3g} {unit}, {times:.0f} times '
         'their spread (p = {p:.1g})',
         'Robots of one type share their parameters but for tolerances and wear.',
         remedy='Look for wear, a repair or another tool'),
    Code('F904', 'friction_drift', WARNING,
         '{parameter} changed from {before:.3g} by {step:+.2g} {unit} ({share:+.0%}) by {since} '
         '(p = {p:.1g})', 'Friction that changes beyond temperature is a sign of wear.',
         remedy='Check lubrication and bearings of the joint'),
    # --- F10 to F21: the doctor, by what it looks at ---
    Code('F1001', 'localhost_only', INFO,
         'ROS_LOCALHOST_ONLY=1 overrules ROS_AUTOMATIC_DISCOVERY_RANGE',
         'Two settings that contradict each other surprise later.',
         remedy='Unset it, and set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST'),
    Code('F1003', 'no_nodes', ERROR,
         'No other node is heard in ROS domain {domain} with the discovery range {range}',
         'Without the robot nothing can be recorded.',
         remedy='Start the robot, and set ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and '
         'RMW_IMPLEMENTATION here as it has them'),
    Code('F1004', 'nodes_heard', OK,
         '{count} nodes in ROS domain {domain} with the discovery range {range}',
         'The graph is there.'),
    Code('F1005', 'open_network', INFO, 'Anybody on the network may command the robot',
         'ROS 2 has no passwords unless security is on.',
         remedy='Set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST where the robot is on this '
         'machine, or see docs/security.md'),
    Code('F1006', 'no_messages', ERROR, '{topics} have publishers, and no message of any arrives',
         'Discovery works, transport does not: containers, shared memory or a firewall.',
         remedy='Export FASTDDS_BUILTIN_TRANSPORTS=UDPv4 ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET '
         'here and on the robot, and let the firewall pass UDP (docs/interface.md, nodes that '
         'do not hear each other)'),
    Code('F1102', 'not_latched', WARNING,
         "{node} does not keep '{topic}' for nodes that start later",
         'A recorder that starts later has no robot description.',
         remedy='Publish it with the durability transient_local, as robot_state_publisher does'),
    Code('F1103', 'quality_mismatch', WARNING,
         "{reader} hears nothing of {publisher} on '{topic}', it asks for {lacks}",
         'DDS does not connect them, and says nothing.',
         remedy='Give both the same quality of service'),
    Code('F1201', 'controller_not_named', INFO, "No controller was named, '{controller}' is taken",
         'A second controller makes the choice open.',
         remedy='Set excitation.controller to {controller} in the configuration'),
    Code('F1202', 'controller_found', OK,
         "'{controller}' commands {interfaces} of {joints}[[ at {rate:g} Hz]]",
         'A session moves the robot by it.'),
    Code('F1203', 'not_serving', ERROR, "'{controller}' does not serve follow_joint_trajectory",
         'No motion can be sent.', remedy='Configure and activate it'),
    Code('F1204', 'controller_silent', ERROR,
         "'{topic}' is silent[[, the controller is '{state}']]",
         'A session needs the state of the controller.',
         remedy="[[Activate the controller: 'ros2 control switch_controllers --activate "
         "{inactive}']][[The update loop of '{active}' stands still, see controller_manager's "
         'log]]'),
    Code('F1205', 'controller_unfit', ERROR, '{reason}', 'A session is refused.',
         remedy='See docs/guide/your_robot.md for what a controller has to have'),
    Code('F1206', 'controller_mute', ERROR,
         "'{controller}' does not say which joints and interfaces it has",
         'A session has to know what it commands.',
         remedy='Restart it, it must be a joint_trajectory_controller'),
    Code('F1207', 'other_controllers', ERROR,
         "There is no controller '{controller}', but {others}", 'No motion can be sent.',
         remedy='Name one in excitation.controller or by --controller, without its --namespace'),
    Code('F1208', 'no_controller', ERROR,
         "There is no controller '{controller}', nobody serves follow_joint_trajectory",
         'No motion can be sent.',
         remedy='Load and activate a joint_trajectory_controller, or set --namespace'),
    Code('F1209', 'no_path_tolerance', WARNING,
         "'{controller}' has no path tolerance for {joints}, so that the robot runs on when its "
         'states freeze', 'Path tolerances alone stop a robot whose states no client can trust.',
         remedy='Set constraints.{joint}.trajectory and so on (docs/safety.md)'),
    Code('F1210', 'joints_taken', ERROR,
         "'{controller}' is '{state}', and '{other}' has its joints",
         'Two controllers cannot command one joint.',
         remedy="Run 'ros2 control switch_controllers --deactivate {other} --activate "
         "{controller}'"),
    Code('F1211', 'stops_at_once', INFO,
         "'{controller}' holds at once when a motion is cancelled, without a ramp",
         'A stop at full speed is a jump of the reference, which drives may answer with a fault.',
         remedy='Set constraints.decelerate_on_cancel, and '
         'constraints.JOINT.max_deceleration_on_cancel of every joint'),
    Code('F1212', 'no_deceleration', WARNING,
         "'{controller}' is to brake along a ramp and has no deceleration for {joints}, so that "
         'it holds at once', 'The controller brakes only where it knows one of every joint.',
         remedy='Set constraints.{joint}.max_deceleration_on_cancel and so on'),
    Code('F1213', 'starts_at_last_command', INFO,
         "'{controller}' begins at its last command when it is activated",
         'A robot that was moved meanwhile jumps back.',
         remedy='Set set_last_command_interface_value_as_state_on_activation to false'),
    Code('F1214', 'open_loop', WARNING,
         "'{controller}' begins motions at its last command, for open_loop_control is set",
         'A robot that was held up on its way jumps to where the next motion begins.',
         remedy='Set open_loop_control to false'),
    Code('F1215', 'ends_in_motion', INFO,
         "'{controller}' accepts motions that do not end at rest",
         'It holds the last velocity as its reference after the end.',
         remedy='Set allow_nonzero_velocity_at_trajectory_end to false'),
    Code('F1216', 'waits_for_goal', INFO,
         "'{controller}' waits without an end for {joints} to reach a goal",
         'A motion that ends beside its goal is never reported as ended.',
         remedy='Set constraints.goal_time, in seconds'),
    Code('F1217', 'uneven_updates', WARNING,
         "'{controller}' is to update at {update:g} Hz, controller_manager at {manager:g} Hz",
         'A rate that does not divide is not kept, and DIDIM replays the one that was named.',
         remedy='Set update_rate to {better:g}'),
    Code('F1301', 'didim_possible', OK, 'Possible, with effort commands and gains',
         'DIDIM replays the law that makes the effort.'),
    Code('F1302', 'didim_gains', INFO, 'DIDIM lacks the gains of {joints}',
         'DIDIM replays the law that makes the effort.',
         remedy='Set them in the controller, or identify by wls'),
    Code('F1303', 'didim_commands', INFO,
         "DIDIM needs effort commands, '{controller}' commands {interfaces}",
         'DIDIM replays the law that makes the effort.',
         remedy='Identify by wls, which needs positions and efforts only'),
    Code('F1401', 'no_manager', INFO,
         'No controller_manager is heard, the states of hardware and other controllers are not '
         'checked', 'Simulators and some drivers have none.'),
    Code('F1402', 'manager_unanswered', INFO,
         'Hardware and other controllers are not checked, {reason}',
         'An inactive hardware component does not move.',
         remedy="Look at 'ros2 control list_hardware_components'"),
    Code('F1403', 'manager_warning', WARNING, '{text}',
         'controller_manager says so on /diagnostics.', remedy="See controller_manager's log"),
    Code('F1404', 'hardware_inactive', ERROR, "Hardware '{hardware}' is '{state}'",
         'It does not move.',
         remedy="See its log, then 'ros2 control set_hardware_component_state {hardware} active'"),
    Code('F1405', 'hardware_active', OK, '{hardware} active',
         'The drives follow their controllers.'),
    Code('F1406', 'broadcaster_inactive', WARNING,
         "'{controller}', which publishes joint states, is '{state}'",
         'Without joint states no session runs.',
         remedy="Activate it: 'ros2 control switch_controllers --activate {controller}'"),
    Code('F1501', 'malformed_states', WARNING,
         '{count} joint states name a joint twice or lack values',
         'They are left out of every recording.', remedy='See who publishes them ({nodes})'),
    Code('F1502', 'joints_lacking', ERROR, 'The joint states lack {joints}, they name {published}',
         'A joint without states cannot be identified.',
         remedy='Let the joint_state_broadcaster publish every joint, or correct robot.joints'),
    Code('F1503', 'states_silent', ERROR, "'{topic}' is silent though {nodes} publishes it",
         'Without joint states no session runs.',
         remedy="Activate hardware and joint_state_broadcaster ('ros2 control list_controllers')"),
    Code('F1504', 'no_states', ERROR, "Nobody publishes '{topic}'[[, there is {others}]]",
         'Without joint states no session runs.',
         remedy='Start the joint_state_broadcaster, remap its topic, or set --namespace'),
    Code('F1505', 'no_velocity', INFO,
         'The joint states hold no velocity: positions are differentiated, only effort '
         'controllers need it', 'Measured velocities are not needed for an identification.'),
    Code('F1506', 'not_a_number', ERROR, '{quantity} of {joints} is not a number',
         'A joint without numbers cannot be identified.',
         remedy='Check the sensor and the {quantity} state interface'),
    Code('F1507', 'states_frozen', WARNING,
         'Positions, velocities and efforts never change by a single bit', 'Sensors have noise.',
         remedy='Let the robot move: if they stay so, the hardware repeats old states'),
    Code('F1508', 'joints_frozen', INFO,
         'Position and velocity of {joints} never change by a single bit, those of the others do',
         'Sensors have noise.', remedy='Let it move: if they stay so, its encoder has failed'),
    Code('F1509', 'rival_publishers', WARNING,
         "{count} publishers send the same joints on '{topic}' ({nodes})",
         'Their stamps and values mix.',
         remedy='Remap or end all but the joint_state_broadcaster'),
    Code('F1601', 'zero_stamps', ERROR, '{zero} of {count} stamps are zero',
         'Times of reception jitter.', remedy='Let the publisher stamp its messages'),
    Code('F1602', 'stamps_stand', ERROR, 'The stamps of the joint states never advance',
         'Without times there are no velocities.',
         remedy='Let the publisher stamp its messages, and listen for longer (--duration)'),
    Code('F1603', 'slow_states', WARNING, 'Joint states come at {rate:.3g} Hz',
         'Motions reach some hertz, and are differentiated twice.',
         remedy='Publish them at {least:g} Hz or more, best at the rate of the controller'),
    Code('F1604', 'timing_right', OK, '{rate:.4g} Hz, jitter {jitter:.3f ms}, none lost',
         'Even stamps make exact velocities.'),
    Code('F1605', 'irregular_stamps', WARNING,
         '{repeated} of {count} stamps repeat the one before, {backward} jump back',
         'Such samples are left out.',
         remedy='Look for a second publisher, or a clock that was set'),
    Code('F1606', 'states_lost', INFO,
         '{share:.1%} of the joint states are lost, the longest gap is {gap:.0f ms}',
         'Accelerations within gaps are guessed.',
         remedy='Record on the robot itself, with less load or over a better network'),
    Code('F1607', 'stamps_uneven', WARNING,
         'The stamps jitter by {jitter:.2f ms} at {rate:.4g} Hz',
         'An error of time is an error of velocity and acceleration.',
         remedy='Stamp the states when they are measured, and run the control loop with '
         'real-time priority'),
    Code('F1608', 'slow_controller_states', INFO,
         'The controller updates at {update:g} Hz, its states arrive at {rate:.3g} Hz',
         'DIDIM replays the commands between them.',
         remedy='Record on the robot itself with less load'),
    Code('F1701', 'clocks_agree', OK, 'Stamps agree with {clock}',
         'Recordings of several machines fit together.'),
    Code('F1702', 'clock_offset', WARNING,
         'Joint states are stamped {offset:.3g} s {side} {clock}',
         'Motions and states of different clocks do not fit together.',
         remedy='Synchronise the clocks (chrony), and set use_sim_time everywhere or nowhere'),
    Code('F1801', 'commands_for_efforts', WARNING,
         'The joint states report {what}: what the controller commands is taken for it',
         'A drive that does not follow its command makes parameters wrong.',
         remedy='Give the joint_state_broadcaster the effort interfaces, if the drives have any'),
    Code('F1802', 'no_efforts', ERROR, 'The joint states report {what}, and none is commanded',
         'Without efforts nothing can be identified.',
         remedy='Give the joint_state_broadcaster the effort interfaces, or see docs/efforts.md '
         'for another topic of the driver'),
    Code('F1803', 'effort_not_a_number', ERROR, 'Effort of {joints} is not a number',
         'A joint without effort cannot be identified.',
         remedy='Check its sensor, and that the joint_state_broadcaster has its effort interface'),
    Code('F1804', 'efforts_all_zero', WARNING,
         'Every effort is exactly zero[[ though the arm {bears} its weight]]',
         'Nothing can be identified if they stay so in motion.',
         remedy='See docs/efforts.md for what drivers report'),
    Code('F1805', 'effort_zero', WARNING, 'Effort of {joints} is exactly zero throughout',
         'A joint without effort cannot be identified.',
         remedy='Move it a little: if it stays so, its sensor is dead'),
    Code('F1806', 'efforts_frozen', INFO, 'Efforts never change by a single bit',
         'Sensors have noise.',
         remedy='Move the robot a little: if they stay so, the driver repeats an old value'),
    Code('F1807', 'moves', INFO, '{joints} moves, so that efforts are not compared with weights',
         'At rest, efforts bear the weight alone.', remedy='Ask again at rest'),
    Code('F1808', 'no_weight', INFO,
         'No joint bears a weight that would show sign and unit of its effort',
         'Weight is a torque that is known without a motion.',
         remedy='Ask again with the arm stretched out sideways, where gravity acts on its joints'),
    Code('F1809', 'efforts_beyond_weight', WARNING,
         f'Efforts at rest are more than weight and friction, {WEIGHTS}',
         'A zero that is off looks like gravity.',
         remedy='Set the zero of their sensors, and see that the arm touches nothing'),
    Code('F1810', 'efforts_without_weight', WARNING,
         f'Efforts at rest hold no weight, {WEIGHTS}', 'Some drivers subtract gravity.',
         remedy='Set robot.effort_kind: without_gravity if the driver subtracts it '
         '(docs/efforts.md)'),
    Code('F1811', 'efforts_unlike_weight', WARNING,
         f'Efforts at rest do not fit the weight, {WEIGHTS}',
         'A wrong unit scales masses, inertias and friction.',
         remedy='Check their unit, robot.drive_gain, the payload, and the masses of the '
         'description'),
    Code('F1812', 'efforts_like_weight', OK,
         f'Agree at rest with the weight, {WEIGHTS}', 'Sign and unit are right.'),
    Code('F1813', 'efforts_opposite', WARNING,
         f'Efforts at rest are opposite to the weight, {WEIGHTS}',
         'Positive efforts have to accelerate a joint in its positive direction.',
         remedy='Set its robot.drive_gain to -1[[, or robot.gravity if the {arm} hangs]]'),
    Code('F1901', 'description_unusable', ERROR, '{reason}',
         'Without a model nothing can be planned or identified.',
         remedy='Correct the robot description'),
    Code('F1902', 'no_description', ERROR,
         "[[Nobody publishes '{topic}']][['{empty}' holds nothing though {nodes} publishes it]], "
         'and no robot.urdf is configured',
         'Without a model nothing can be planned or identified.',
         remedy='Start robot_state_publisher, or give --config with robot.urdf'),
    Code('F1903', 'configured_description', INFO,
         "Nothing on '{topic}', the configured robot.urdf is taken",
         'Both should be of the same robot.'),
    Code('F1904', 'no_limit', WARNING, 'There is no {limit} limit of {joints}',
         'A motion is planned and watched by it.', remedy='Set robot.{limit}'),
    Code('F1905', 'described', OK, "'{robot}' with the joints {joints}",
         'The model is that of this description.'),
    Code('F1906', 'several_descriptions', WARNING,
         "'{topic}' holds {count} different descriptions ({nodes})",
         'Which one a node takes is chance.', remedy="End all but the robot's own publisher"),
    Code('F2001', 'session_runs', WARNING, "A session of {nodes} uses '{controller}'",
         'Only one session may move the robot.',
         remedy='Wait for its end, no other one starts meanwhile'),
    Code('F2002', 'goal_runs', ERROR, "A goal of another client runs on '{controller}'",
         'Only one client may move the robot.', remedy='End it'),
    Code('F2003', 'commanded_by_topic', ERROR, "{nodes} can command '{controller}' on '{topic}'",
         'No session starts beside it.', remedy='End it'),
    Code('F2004', 'other_clients', INFO, "{nodes} can send goals to '{controller}'",
         'A goal replaces the motion of a session.', remedy='Send none while a session runs'),
    Code('F2005', 'alone', OK, "Nobody else commands '{controller}'",
         'A session is alone with the robot.'),
    Code('F2101', 'not_writable', ERROR, 'No recording can be written: {reason}',
         'A session without a recording is for nothing.',
         remedy='Set recorder.folder to another one'),
    Code('F2102', 'disk_space', OK, "{free:.1f} GB are free for '{folder}'",
         'A minute of seven joints at 1 kHz takes about 60 MB.',
         remedy='[[Make room, or set {setting} to another one]]'),
)
# fmt: on

CODES: Mapping[str, Code] = {each.code: each for each in _TABLE}
NAMES: Mapping[str, Code] = {each.name: each for each in _TABLE}


def finding(name: str, joints: Iterable[str] = (), /, **values: Any) -> Finding:
    """Return a finding by its name, with the severity of the table; NumPy's numbers get plain."""
    code = NAMES[name]
    plain = {key: _plain(value) for key, value in values.items() if value is not None}
    return Finding(code.code, code.severity, tuple(joints), plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return tuple(map(_plain, value))
    return value


def select(findings: Iterable[Finding], *names: str) -> list[Finding]:
    """Return the findings of these names."""
    return [each for each in findings if CODES[each.code].name in names]


# --- texts, for edges ---


class _Formatter(string.Formatter):
    """Formats shares as percent (`.1%`, `.3p` by digits), seconds in ms (`.2f ms`), tuples."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, tuple):
            return shortened([self.format_field(each, format_spec) for each in value], FEW)
        if format_spec.endswith('%'):
            return f'{format(value, format_spec[:-1] + "%")[:-1]} %'
        if format_spec.endswith('p'):
            return f'{100.0 * value:{format_spec[:-1]}g} %'
        if format_spec.endswith(' ms'):
            return f'{1e3 * value:{format_spec[:-3]}} ms'
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


def _filled(template: str, values: Mapping[str, Any]) -> str:
    pieces = _PART.split(template.replace('{tried}', TRIED))
    pieces[::2] = [_FORMATTER.vformat(piece, (), values) for piece in pieces[::2]]
    pieces[1::2] = [_repeated(piece, values) for piece in pieces[1::2]]
    return ''.join(pieces)


def _repeated(part: str, values: Mapping[str, Any]) -> str:
    """Fill a part once, or for each item of its tuples; '' where a value is missing."""
    names = [name for _, name, _, _ in string.Formatter().parse(part) if name]
    if any(values.get(name) in (None, '', ()) for name in names):
        return ''
    many = [name for name in names if isinstance(values[name], tuple)]
    if not many:
        return _FORMATTER.vformat(part, (), values)
    rows = zip(*(values[name] for name in many), strict=True)
    items = [
        _FORMATTER.vformat(part, (), {**values, **dict(zip(many, row, strict=True))})
        for row in rows
    ]
    return shortened(items, FEW)


def seen_and_remedy(found: Finding) -> tuple[str, str]:
    """Return what was seen and means, and what to do ('' for nothing), as sentences."""
    code, values = CODES[found.code], {**found.values, 'joints': found.joints}
    values['joint'] = next(iter(found.joints), '')
    seen, means, remedy = (_filled(text, values) for text in (code.seen, code.means, code.remedy))
    source = f'{values["source"]}: ' if 'source' in values else ''
    sentences = [f'{text}.' for text in (seen, means) if text]
    return source + ' '.join(sentences), f'{remedy}.' if remedy else ''


def render(found: Finding) -> str:
    """Return the text of a finding: what was seen, what it means, what to do."""
    return ' '.join(filter(None, seen_and_remedy(found)))


def from_data(data: Mapping[str, Any] | str, severity: Severity = WARNING) -> Finding:
    """
    Return the finding that `as_data` wrote; a sentence of an earlier version with a severity.

    Damaged data raise a KeyError, TypeError, ValueError or AttributeError.
    """
    if isinstance(data, str):
        return finding('of_earlier_version', text=data).at(severity)
    severity = Severity[str(data['severity']).upper()]
    if data['code'] not in CODES:  # of a later version
        return from_data(str(data['text']), severity)
    values = {str(key): _plain(value) for key, value in data['values'].items()}
    found = Finding(str(data['code']), severity, tuple(map(str, data['joints'])), values)
    render(found)
    return found


def as_data(found: Finding) -> dict[str, Any]:
    """Return a finding with its text as JSON and YAML have it."""
    return {
        'code': found.code,
        'name': CODES[found.code].name,
        'severity': found.severity.word,
        'joints': list(found.joints),
        'values': dict(found.values),
        'text': render(found),
    }
