"""
What a stage has to say of its input or result: a value with a code, not a sentence.

One table has the codes, with severity, text and reason of each. Texts are templates of a finding's
values. `{joint}` is its first joint, `{joints}` are all. A part in double brackets is left out
where one of its values is missing, and repeated for the items of tuples: '[[{joints}
{shares:.0%}]]' gives 'j1 3 %, j2 4 %'. Only edges render them.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import enum
import re
import string
from typing import Any

import numpy as np

from ..exceptions import FEW, shortened


class Severity(enum.IntEnum):
    """How much a finding matters: checked and right, good to know, to be seen to, wrong."""

    OK = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """In lower case, as files and terminal have it."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found; `render` makes its text."""

    code: str  # key of `CODES`, 'F401'
    severity: Severity  # how much it matters here
    joints: tuple[str, ...] = ()  # names of those concerned
    # Plain values by name; 'source' is the log or method that it is about, of several.
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def of(self, source: str) -> 'Finding':
        """Return it with the name of the log or method that it is about."""
        sources = ': '.join(filter(None, (source, self.values.get('source', ''))))
        return dataclasses.replace(self, values={**self.values, 'source': sources})

    def at(self, severity: Severity) -> 'Finding':
        """Return it with another severity."""
        return dataclasses.replace(self, severity=severity)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings without repetitions, what matters most first."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: -each.severity))


# Of a template: a part in double brackets, a value with its format.
_PART, _SPEC = re.compile(r'\[\[(.*?)\]\]', re.DOTALL), re.compile(r'\{(\w+)[^}]*\}')


@dataclasses.dataclass(frozen=True)
class Code:
    """What a code stands for: templates of what was seen, what it means, what to do."""

    # Stable, by stage: F1 input, F2 signals, F3 motion, F4 efforts and model, F5 parameters,
    # F6 result, F7 session, F8 design of a motion, F9 fleet, F10 to F21 a live robot.
    code: str
    name: str  # for programs
    severity: Severity  # of its findings, where they do not say another
    seen: str
    why: str  # it matters, for `robotid explain`
    means: str = ''
    remedy: str = ''

    def texts(self) -> dict[str, str]:
        """Return its sentences, with the names of values in braces."""
        seen, means, remedy = (
            _SPEC.sub(r'{\1}', _PART.sub(r'\1', text.replace('{tried}', ''))) + '.' * bool(text)
            for text in (self.seen, self.means, self.remedy)
        )
        return {'seen': seen, 'means': means, 'why': self.why, 'remedy': remedy}


# What templates share, by the name that stands for it in braces; `tried` is what a remedy left.
SHARED = {
    'tried': '[[ (tried with {tried_with}: residual of {tried_on} on parts that were not fitted '
    '{before:.3p} → {after:.3p})]]',
    'instead': '[[; {instead} instead would explain as much]]',
    'unexplained': 'The model leaves {residual:.0%} of the effort of {joint} unexplained',
    'explains': 'explains {share:.0%} of this (residual on parts that were not fitted '
    '{before:.2p} → {after:.2p})',
    'biased': 'The model lacks a torque that the robot has: parameters of this and other joints '
    'are biased.',
    'changes': '[[{joints} {shares:+.0%} from {since:.1f} s on]]'
    '[[{joints} {drifts:+.0%} gradually]]',
    'weights': '[[{joints} {efforts:.3g} (description: {weights:.3g} {units})]]',
}
# Every finding: code, name and severity, a warning where none is said; what was seen, what it
# MEANS, what to DO, and WHY it matters; ^ repeats the row before. In the order of their codes.
FINDINGS = """\
F001 of_earlier_version: {text} WHY Files of earlier versions have sentences only.
# F1: input
F101 columns_found info: Columns of '{table}' were found by their names: [[{quantities}
  {columns}]][[; {in_si} without a unit are taken as SI]] DO If this is wrong,
  give --columns and --units WHY A column of another quantity or unit makes every parameter wrong.
F102 unit_assumed info: {quantity} is taken as {unit}, for {reason}[[; this leaves hardly any
  motion of {slow}]] DO If the unit is another one, give it by --units[[ '{units}']] WHY A
  wrong unit of positions or times scales velocities and inertias.
F103 time_unit_assumed info: The stamps {columns} are taken as {unit}, {reason} DO If the unit is
  another one, give it by --units WHY A wrong unit of times scales velocities and inertias.
F104 velocities_left_out info: The velocities are left out, because the size of their unit, {unit},
  is unknown WHY Velocities are computed from positions anyway.
F106 names_matched info: Names of joints differ from those of the robot: [[{words} is {joints}]]
  WHY A wrong match mixes up the joints.
F107 joints_left_out info: {words} left out: not among the joints of the robot WHY Only joints of
  the robot description can be identified.
F108 joints_by_order: No column name matches a joint: columns are matched by order: [[{words} is
  {joints}]] DO If the order is wrong, give it by --joints WHY A log of another order mixes up the
  joints.
F109 joints_by_number: Columns {columns} are matched by number to {joints} of {count} joints DO If
  the joints are others, name them by --joints WHY A log of another part of the robot mixes up the
  joints.
F111 rows_of_other_joints info: {count} rows of other joints, or of the same joints in another
  order, are left out DO To use them, record a bag WHY Where publishers share a
  topic, a column is of another joint in each row.
F114 rows_interpolated info: Positions and efforts are in different rows: they are interpolated WHY
  An interpolated effort has less noise than a measured one, and is late or early.
F115 rows_without_states info: {count} rows without positions and efforts are left out WHY These
  rows have other contents.
F116 rows_without_time info: {count} rows without a time, or with one far from all others, are left
  out WHY A sample without its time cannot be used.
F117 stamps_from_rate info: Stamps follow from the rate, {rate:g} Hz[[; the times {columns} have
  {own:.4g} Hz]] DO If the rate is another one, correct or leave out --rate WHY A rate that is off
  scales velocities and inertias.
F119 trials_joined info: The times of '{path}' start again within the file: the parts are taken as
  trials one after another, {gap:g} s apart WHY Trials of different robots or loads do not belong
  together.
F120 metadata_missing info: metadata.yaml is missing: the data files are read without it WHY A
  recorder that was killed leaves none.
F121 metadata_damaged: metadata.yaml is damaged ({reason}): the data files are read without it DO
  Check the disk WHY The disk or a copy may have damaged more of the recording.
F122 files_missing: The recording lacks {files} DO Copy the whole folder WHY The result lacks them.
F123 messages_missing: '{file}' should have {promised} messages, but has {count} DO Check the disk,
  or copy the file again WHY The recording lost its end or other parts.
F124 cut_short: The recording was cut short: it is read up to its last whole message DO mcap
  recover writes the index WHY A recorder that was killed leaves a file without its index.
F125 damaged_parts: Damaged parts of '{file}' were left out: {parts}, with {count} messages[[ from
  {start:.2f} to {stop:.2f} s]] DO Check the disk WHY Gaps are bridged or left out; parameters of a
  joint that moved then are less certain.
F126 messages_left_out: {count} messages of {topic} were left out: {reason} DO Correct the
  publisher WHY A publisher sends other messages on this topic.
F127 write_ahead_log: '{file}' was not merged into its database: the last messages are not read DO
  Run: sqlite3 {database} 'PRAGMA wal_checkpoint(TRUNCATE)' WHY A recorder that was killed leaves
  its last messages in this file.
F128 options_of_tables: --columns, --units and --rate are of tables, not of bags DO If its efforts
  are no torques, set robot.drive_gain WHY A bag has fields, but no unit of efforts.
F129 topic_chosen info: The joint states of {topic} are used, not those of {others} DO If this
  topic is wrong, name joints of another topic by --joints WHY Publishers may be of several robots.
F131 no_stamps: The joint states carry no stamps: the times of reception are used DO Let the
  publisher stamp its messages WHY Times of reception jitter and are late.
F132 commands_as_efforts info: The joint states report {what} of {joints}: the controller's
  commands are used instead WHY A drive that does not follow its command makes parameters wrong.
F133 efforts_of_topic info: The efforts are those of {topic} WHY Measured currents or torques may
  be published elsewhere than joint states.
F135 update_rate info: The states of '{controller}' come at {rate:.4g} Hz, its parameter
  update_rate is {stated}: the rate of the states is used WHY DIDIM simulates at that rate.
F136 sets_of_joints: Joint states name different sets of joints: [[{sets} {counts} times]] DO Name
  the joints by --joints WHY Several publishers share a topic.
F140 other_robot: The parameters are of {identified}, the recording of {recorded} DO Give the
  parameters of the robot that was recorded WHY Parameters of one robot do not predict another one.
# F2: signals
F201 clock_jumped: The clock of the stamps jumped by {jump:+.6g} s after {since:.2f} s: corrected
  by the times of reception DO Set the clock before recording WHY Estimated jumps are less exact.
F202 stamps_far_off: {count} samples with stamps far off were left out DO Check the driver WHY The
  clock of the stamps fails at times.
F203 clock_drifts: The stamps span {stamped:.1f} s, the reception of their messages {received:.1f}
  s ({share:+.0%}) MEANS This is right if a bag was replayed at another speed. Else the clock of
  the stamps is wrong, and inertias are wrong by {inertia:.0%} DO Record with stamps of the system
  clock WHY Velocities are off by as much as the stamps, inertias by twice that.
F204 simulated_time info: The stamps span {stamped:.1f} s of simulated time, the reception of their
  messages {received:.1f} s ({share:+.0%}) WHY A simulation may be slower than real time.
F205 stamps_rounded info: {count} samples have the stamp of the one before: the stamps are rounded
  to {step:.3g ms}, the samples were spread evenly, {rate:.6g} Hz DO If the rate of a table is
  another, give it by --rate WHY Samples that were not taken evenly get wrong times.
F206 stamps_jitter info: The stamps jitter by {jitter:.2f ms}. {share:.0%} of the variance is
  uneven sampling, the rest was removed DO If σ are large, record on a quiet machine, or give the
  process that reads the drives a real-time priority WHY An error of time is one of acceleration.
F207 samples_not_finite info: {count} samples that are not numbers were left out WHY A sensor or a
  bus fails at times.
F208 stamps_repeated info: {count} samples with repeated or older stamps were left out WHY The same
  state was published twice, or by two publishers.
F209 spikes info: {count} spikes in the {quantity} of {joint} were left out WHY A single wrong
  value makes large accelerations.
F210 samples_repeated info: {count} samples repeat the one before them, or its positions or
  efforts: they are left out WHY A driver that hangs, or a slower bus, publishes its last state
  again.
F211 angles_unwrapped info: The position of {joints} jumps by 2π: it is unwrapped WHY Encoders of
  one turn start again.
F212 gaps_interpolated: Messages are missing throughout, {rate:.3g} a second arrive: gaps of up to
  {longest:.2f} s were interpolated DO Record without losses for better accelerations WHY
  Accelerations within the gaps are guessed.
F213 gap_left_out info: Nothing was recorded for {duration:.2f} s in {count} gaps, the first at
  {since:.2f} s: left out WHY The result lacks the motion in these gaps.
F215 mostly_gaps: Nothing was recorded for {duration:.2f} s in {count} gaps, which is {share:.0%}
  of the time: left out MEANS The parameters are those of a few short bursts and may be far off DO
  Record without losses WHY Filters have transients at the ends of each burst.
F216 samples_missing info: {count} of {total} samples are missing: they are interpolated WHY A few
  missing samples cost hardly any accuracy.
F217 effort_clipped: The effort of {joint} is clipped in {share:.1%} of the samples: these are left
  out DO Run a slower trajectory WHY A drive at its limit does not show the torque needed.
F218 effort_steps: The effort of {joint} comes in steps of {step:.3g} MEANS Rounding is not random:
  errors may be larger than σ DO Record efforts with more digits WHY Rounding is the same at the
  same effort; averaging does not remove it.
F219 periods_averaged info: The periods of {period:g} s were averaged WHY Averages have less noise.
F221 efforts_held info: The efforts are held commands: they acted {delay:.2f ms} before their
  stamps WHY A command acts from when it is set until the next one.
F222 delay_removed info: The efforts are {delay:.2f ms} ± {sigma:.2f ms} behind the positions: this
  delay is removed, see signals.time_offset WHY A delay looks like friction or inertia.
F223 delay_too_long: The efforts are {delay:.2f ms} ± {sigma:.2f ms} behind the positions: too long
  for a bus, so it is not removed DO Record both from one clock WHY ^
F224 joint_delay_removed: The effort of {joint} is {delay:.0f ms} ± {sigma:.0f ms} behind its
  position, others {common:.0f ms}: its delay is removed DO Record all efforts from one clock WHY ^
F227 long_recording info: A long recording: the fit uses all of it, residuals and torques shown are
  of[[ {count}]] parts WHY Rows of a long recording do not fit into memory.
F228 logs_together info: {count} logs were identified together: {logs} WHY Logs add up where
  nothing but the motion differs.
F230 effort_dead_zone: The effort of {joint} reads 0 below {least:.3g}, in {share:.1%} of the
  samples: these are left out DO Record a motion that loads {joint} more WHY Efforts that read 0
  are not 0, and would look like friction.
F231 position_jumps error: The position of {joints} jumps {count} times, first after {since:.2f} s
  DO Record without losses, or identify the parts separately (--from, --to) WHY A joint cannot
  jump: rows lack or repeat there, a zero changed, or a counter overflowed.
F232 clocks_differ error: The efforts are {first:.0f ms} behind the positions at the start,
  {last:.0f ms} at the end: their clocks differ by {share:.3p} (residual without that {before:.3p}
  → {after:.3p}) DO Record both from one clock WHY Efforts of other instants fit no motion.
F239 clock_starved info: {share:.0%} of the samples have the stamp of the one before, from a clock
  that lagged: their times follow from the motion, at {rate:.4g} Hz DO Use a lower real-time factor
  WHY Velocities and positions show how much time lies between them.
F240 velocities_unlike error: The velocities are so many times the derivatives of the positions:
  [[{joints} {ratios:.3g}]] MEANS Where all joints agree, the stamps or the velocities have another
  unit or rate[[: right stamps would have {rate:.4g} Hz]]; else positions or velocities of these
  joints have another unit DO Correct what is wrong. Of a table, give --units or --rate WHY
  Velocities are off by as much as the stamps, inertias by twice that; a position in another unit
  makes every parameter wrong.
F241 rows_copied: From {since:.2f} s on, {count} rows repeat earlier ones in every digit: they are
  copies, and left out DO Correct what writes the log, unless it is a simulation without noise that
  repeats its motion WHY Measured values never repeat in every digit while the robot moves.
F242 column_for_two: The position of {joints} is the same in every digit MEANS One column was
  written or named for two joints DO Name the columns by --columns, or correct what writes the log
  WHY Measured values of two joints never agree in every digit while they move.
F243 zeros_left_out info: {count} samples where the {quantity} of {joint} is exactly 0, between
  values far from 0, are left out WHY A bus that loses a value, or a drive that its brake holds,
  reports 0.
F244 efforts_slower: Efforts arrive only {rate:.3g} times a second: each is taken for the time of
  its first sample DO Record efforts as often as positions WHY A bus that is slower than the log
  holds each value until the next one.
# F3: motion
F301 hardly_moved: {joint} moved only {share:.0%} of the time DO Record a motion that moves it, or
  name it in robot.locked WHY Dry friction of a joint at rest may have any value.
F302 one_way: {joint} turned one way only ({share:.1%} of its motion the other way) MEANS Only the
  sum of its Coulomb friction and its offset is identified. The share of each is an assumption DO
  Record a motion that turns it both ways WHY At one sign of the velocity, Coulomb friction is a
  constant torque, as an offset is.
F303 beyond_limits error: {joint} was recorded from {low:.4g} to {high:.4g}, outside of its limits
  {lower:.4g} to {upper:.4g} DO Check unit (rad, not degrees), calibration, zero and URDF WHY
  Positions in degrees, or of another zero, make every parameter wrong.
F304 locked_without_efforts info: No efforts with those of the others: [[{joints}, which stood at
  {positions:.4g}]], taken as locked there WHY Gravity and inertia of the others depend on where
  they are.
F305 locked_though_moving: No efforts with those of the others: [[{joints}, which moved around
  {positions:.4g}]], taken as locked there DO Record them with the others, or at rest WHY ^
F306 joints_not_recorded: The recording lacks some joints. They are taken as locked at [[{joints}
  {positions:.4g}]] DO If that is wrong, set robot.locked WHY ^
F307 stood_still info: {joint} stood at {position:.4g} and is not identified DO To identify it,
  record it in motion WHY A joint at rest shows no parameter.
F308 moved_but_locked: {joint} moved from {low:.4g} to {high:.4g} but is taken as locked DO Add the
  joint to robot.joints, or record with the joint at rest WHY Its motion acts on the others.
F309 names_alike: Joints of description and recording have names that are alike: [[{joints}
  and {recorded}]] DO If they are the same, rename them in the description WHY A joint without its
  recording is taken as locked.
# F4: efforts and model
F401 effort_sign error: The effort of {joints} seems to have the opposite sign DO Set
  robot.drive_gain of {joints} to {gains:.3g}. For a table give --units 'effort=Nm*-1', with one
  factor for each joint between commas{tried} WHY Positive efforts have to accelerate a joint in
  its positive direction.
F402 effort_gain error: The effort of {joint} is {factor:.4g} times what fits those of the other
  joints[[, as if it were in {unit}]] DO Set its robot.drive_gain to {gains:.3g}[[ (or multiply
  that of {other} by {other_gain:.3g}: these data do not show which)]]{tried} WHY One joint with a
  wrong scale spoils the parameters of those that share links with it.
F403 efforts_swapped error: The efforts of {joints} are exchanged DO In a table, name their columns
  the other way round. In a bag, correct the driver{tried} WHY All their parameters are wrong.
F404 effort_scale error: Efforts do not fit the masses of the URDF, measured / needed: [[{joints}
  {factors:.3g}]] DO If the efforts are currents or in another unit, set robot.drive_gain to what
  turns them into torques, about {gains:.3g}[[. All joints seem to be in {unit}: for a table give
  --units 'effort={unit}']]{tried} WHY A wrong unit scales masses, inertias and friction.
F405 effort_unit error: The efforts are no torques: they are {factor:.2g} times what the masses of
  the URDF need ([[{joints} {factors:.3g}]]), as currents are MEANS Masses, inertias and friction
  are wrong by such factors DO Set robot.drive_gain to the torque per unit of effort of each joint,
  about {gains:.3g}. For a table give --units 'effort=A*12'. If they are torques, correct the
  masses of the URDF or set every robot.drive_gain to 1{tried} WHY A unit that is not N·m scales
  masses, inertias and friction.
F406 effort_unit_of_log error: The efforts are {what} MEANS Parameters come out per {each} DO Give
  the torque per {unit} of each joint, --units 'effort={unit}*0.12' for 0.12 N·m WHY ^
F407 gravity_direction error: Gravity along ({direction:.2f}) in the frame of the base explains the
  efforts far better than robot.gravity does DO If the arm hangs, or stands on a wall or a slope,
  set robot.gravity to that{tried} WHY A wrong gravity makes every mass wrong.
F408 friction_jump error: The friction of {joint} changes by {jump:+.2g} {unit} at {since:.2f} s DO
  Leave out the time from {start:.2f} to {stop:.2f} s, or identify the parts separately, by --to
  {since:.2f} and --from {since:.2f}{tried} WHY One friction parameter has one value.
F409 effort_saturation error: The effort of {joint} seems to saturate near {limit:.3g} in
  {share:.0%} of the samples DO Run a slower trajectory WHY A drive at its limit does not show the
  torque that the motion needs.
F410 beyond_effort_limit error: Efforts are far beyond the URDF's effort limits: [[{joints}
  {efforts:.3g} ({limits:.3g})]] MEANS Their unit or drive gain, or the limits, are not those of
  this robot DO Check units, robot.drive_gain and the limits WHY Drives peak at two to three times
  what they hold.
F411 implausible_inertia error: Efforts and accelerations imply inertias of [[{joints}
  {inertias:.2g} (URDF: {expected:.2g})]] kg·m² (prismatic: kg) MEANS Their efforts or the times
  have another unit, the inertias of the URDF are not those of this robot, or the joints are
  elastic DO Check units, robot.drive_gain and the URDF WHY An inertia far from that of the links
  comes from a wrong unit, or from springs.
F412 effort_changed error: During the recording the scale of efforts changed: {changes} MEANS A
  gain, a filter or a drive has changed DO Identify the parts separately (--from, --to) WHY One set
  of parameters cannot stand for both parts.
F413 friction_changed error: During the recording the friction changed: {changes} DO Let the robot
  warm up before recording, or identify the parts separately (--from, --to) WHY Friction falls by a
  third or more as gears warm up.
F414 load_changed error: During the recording the load beyond joints changed: {changes} MEANS The
  arm carries another load DO Identify the parts with each load separately (--from, --to) WHY
  One set of parameters cannot stand for both parts.
F415 offset_changed error: During the recording the zero of efforts changed: {changes} DO Calibrate
  the zero of the effort sensors, or identify the parts separately (--from, --to) WHY A zero that
  moves looks like friction and gravity.
F417 axis_reversed error: {joints} moves the other way round than in the URDF{instead} DO Multiply
  the axis in the URDF by -1, check the position limits, which turn with it, and set
  robot.drive_gain to {gains:.3g} there{tried} WHY Positions, efforts and URDF have to agree which
  way is positive.
F418 effort_magnitudes error: The efforts of {joints} have no sign, they never go below zero DO
  Record them with their sign; of a servo, its sign bit (docs/efforts.md) WHY Magnitudes look like
  friction, and lack gravity.
F420 unexplained_coupling error: {unexplained}: a torque that follows speed and acceleration of
  {other} explains {share:.0%} of this DO If one motor turns both joints, describe it by
  robot.couplings. Else look for a cable or a hose that connects them WHY {biased}
F421 unexplained_spring error: {unexplained}: a torque that follows its own position {explains} DO
  If a spring, a counterbalance or a cable acts on {joint}, add spring to its robot.friction WHY ^
F422 unexplained_friction error: {unexplained}: another shape of friction {explains} DO Add one of
  stiction, makkar, smooth_coulomb, root_viscous to robot.friction of {joint} WHY ^
F423 unexplained_load_friction error: {unexplained}: friction that grows with the load {explains}
  DO Take {joint} out of robot.friction: identification.model mixed then finds it WHY ^
F424 unexplained_lag error: {unexplained}: a lag behind the model {explains} DO Record positions
  and efforts with one clock, or add presliding to robot.friction of {joint} WHY ^
F425 unexplained_motion error: {unexplained}: it follows the motion, but no friction, spring,
  coupling or delay explains it DO Check effort sensor, URDF and what touches the robot WHY ^
F426 unexplained_effort error: {unexplained}[[, {alone:.0%} where it is fitted alone]]: no sign,
  gain, exchange of columns, delay or direction of gravity explains it DO Compare joint axes and
  lengths of the URDF with the robot WHY {biased} A wrong length acts on every joint before it.
F427 other_zero error: The positions of {joints} have another zero than in the URDF{instead} DO Add
  [[{shifts:+.3g} {units} to {joints}]], calibrate the joints, or turn their origins in the
  URDF{tried} WHY Gravity and inertia of all joints before one depend on its position.
F428 unexplained_steps error: {unexplained}: its position comes in steps that hide speeds below
  {speed:.2g} a second, and the sign of friction with them DO Move faster, or record a finer
  position WHY Where the sign of a speed is wrong, friction is.
F429 joints_exchanged error: {what} are exchanged: those of [[{joints} are in the columns of
  {columns}]]{instead} DO Exchange their names where the log is written, or name the
  columns by --columns{tried} WHY Each is taken for another joint.
F430 spring_not_shown: The torque of {joint} explains {explained:.0%} of its deflection of
  {deflection:.1e} rad, {parameter} = {stiffness:.3g} MEANS These data show no spring DO Take the
  joint out of robot.elastic.joints or improve its encoders WHY A stiffness from a deflection that
  is noise means nothing.
F433 time_scale error: Gravity and inertia of the same bodies do not fit each other: either the
  stamps are {length:.3g} times as far apart as the samples were, or {share:.0%} of gravity acts DO
  Correct the unit or the rate of the times (of a table, --rate {rate:.4g}). If they are right, see
  whether the driver or a counterbalance bears a part of gravity{tried} WHY Velocities are off by
  as much as the stamps, inertias by twice that.
F434 position_unit error: The position of {joints} seems to have another unit or scale{instead} DO
  Multiply it by {size:.4g}. For a table give --units 'position=rad*{size:.4g}' (m* where a joint
  slides), with one unit for each joint between commas{tried} WHY All parameters depend on it.
F435 standstill_contradicted error: The position of {joint} stands still from {start:.1f} to
  {stop:.1f} s, which the efforts contradict: those of {other} differ by {after:.0%} from what the
  rest predicts, elsewhere by {before:.1%} MEANS Its encoder failed, or a brake holds it DO Leave
  that time out[[, by --to {until:.1f}]][[, by --from {since:.1f}]] WHY Efforts of a motion that is
  not recorded make every parameter wrong.
F436 unexplained_span error: {unexplained}, {part:.0%} of it from {start:.2f} to {stop:.2f} s DO If
  something touched the robot then, leave that time out, by --to {start:.2f} or --from {stop:.2f}
  (tried: residual of this joint alone {before:.2p} → {after:.2p}). Check its effort sensor WHY
  What acts on the robot beside its drives is taken for its own torque.
F437 played_backwards error: Friction drives the joints: the log looks as if it was played
  backwards DO Put the rows into the order in which they were recorded{tried}. If they are in it,
  the driver compensates friction too much WHY In the opposite order positions and accelerations
  stay, and velocities have the opposite sign.
F438 unexplained_smoothing error: {unexplained}: a filter that smooths the efforts without a delay
  {explains} DO Record efforts without a filter. If there is none, add presliding to robot.friction
  of {joint} WHY What a filter takes off the efforts is missing in friction and inertia.
F440 no_gravity info: The efforts lack gravity: residual without gravity {without:.1%}, with it
  {with_gravity:.1%} DO If the driver removes gravity, set robot.effort_kind to without_gravity,
  else to joint_torque WHY Some drivers compensate gravity before they publish the effort.
F441 gravity_compensated error: The efforts lack gravity, the model has it MEANS The driver
  compensates gravity before it publishes them DO Set robot.effort_kind, or --effort-kind, to
  without_gravity{tried} WHY Every mass and centre of mass is wrong.
F445 model_not_chosen: No friction beyond viscous and Coulomb was looked for: {reason} DO Record
  longer, or set identification.model to plain WHY Other friction then biases all parameters.
F450 inertial_incomplete: The inertial of {links} lacks a mass or a number of its inertia: parsers
  of URDFs leave it out DO Complete it WHY The initial parameters of these links are zero.
F451 inertia_impossible: The inertia of {links} has a negative diagonal element, which no body has
  DO Correct it WHY Physically impossible initial parameters pull the result away.
F452 angles_rounded info: Angles of {joints} were written as rounded multiples of π/2 and taken as
  exact DO Write more decimals in the URDF WHY Axes that are almost parallel give base parameters
  that no data can distinguish.
F453 masses_assumed: The URDF has no inertials, or the same in all links: {mass:g} kg are shared
  out between these by their lengths MEANS Efforts of a motion to be run, and how standard
  parameters are shared between links, depend on them DO Set robot.mass to that of the data sheet,
  or write masses and inertias into the URDF WHY Base parameters do not depend on them.
F454 limits_in_degrees: No joint of an arm has such limits: [[{joints} {limits}]] MEANS They seem
  to be in degrees, or an exporter's default DO Give those of the data sheet, in radians, in the
  robot description, or in robot.lower, upper and velocity WHY A motion that is designed by such
  limits runs into stops.
F455 base_held: {joints} lets the base float: the base is taken as fixed DO Fix the base to a stand
  WHY The model does not include motion of the base.
F456 masses_in_grams error: The masses of the description add up to {mass:.4g} kg at a reach of
  {reach:.2g} m MEANS They seem to be in grams DO Write masses in kg, inertias in kg·m² WHY Efforts
  of a motion to be run, and standard parameters of links, follow from them.
F457 inertias_in_other_unit error: Inertias of the description have a radius of gyration of
  {radius:.3g} m MEANS They seem to be in kg·mm² or g·mm² DO Write inertias in kg·m² WHY ^
F470 servo_scale info: No effort was logged: torques scale with the description's masses MEANS If
  all bodies are 10 % heavier, then all torques are 10 % larger; ratios to the stiffness stay as
  they are DO To fix the scale, record a second log with a mass that is known, and name it by
  --known-mass WHY A robot twice as heavy with servos twice as stiff moves alike.
F471 servo_ratios info: Of {parameters}, the motion determines only their ratio to the stiffness:
  they have no value DO Move these joints against gravity, or with more of the arm behind them WHY
  Torques are measured by the weight and inertia of bodies.
F472 servo_undetermined: The motion does not determine {parameters}: they have no value DO Command
  faster and larger motions of these joints, that turn back and stop WHY What a motion does not
  show cannot be identified from it.
F473 servo_not_saturated info: The log shows no torque limit: servos needed at most [[{joints}
  {torques:.3g}]] DO To identify limits, command steps that are too fast to follow WHY A limit
  shows in positions only where it is reached.
F474 servo_misfit: Residuals exceed the noise of the positions: [[{joints} {shares:.0%} of the
  tracking error]] DO Check the bodies of the description; stribeck or load_coulomb in
  robot.friction may be missing, and limits of the servo's speed or acceleration are not modelled
  WHY Effects that the model lacks bias all parameters of a joint.
F475 units_may_be_normalised: Positions and commands stay within -100 to 100, and reach
  {largest:.4g}: they may be normalised, and are taken as {unit} DO If they are normalised, give
  the calibration file of the robot by --calibration WHY LeRobot scales the range of each joint to
  -100 to 100 unless set to degrees.
F477 servo_saturated info: Servos reach their torque limit: [[{joints} {limits:.3g}]] DO Command
  slower motions too, which show stiffness and damping WHY A servo at its limit follows no gains.
# F5: parameters
F501 smaller_than_sigma info: Smaller than their σ: [[{parameters} (%σ {percent:.0f})]]; the motion
  does not distinguish them from zero WHY Their signs are unknown; together they may predict well.
F502 methods_disagree: {method} and DIDIM disagree on {parameters} MEANS Noise of positions biases
  {method}. Wrong gains, delays or a slow control loop bias DIDIM DO Compare the residuals of both
  in the report WHY Both are unbiased where their assumptions hold.
F503 not_physical: {robot}: identified.urdf leaves a residual of {residual:.3p}, the base
  parameters {base:.3p}: physically possible bodies and friction leave at least {attainable:.3p}
  MEANS The link or drive of '{joint}' is the cause: without its constraints the residual would be
  {without:.3p} DO Check the effort and the friction of that joint WHY A simulator needs physically
  possible bodies; prediction does not.
F505 near_description: The motion does not determine {parameters} well: they stay near the values
  of the robot description. If a joint never slips, its dry friction is its holding torque DO
  Excite these joints more to identify them WHY What the motion does not show comes from the
  description.
F506 payload_uncertain: The mass, {mass:.3g} ± {sigma:.2g} kg, is too small compared with its σ DO
  Check {advice}, take a heavier body, or a motion against gravity WHY A payload is the difference
  of two identifications.
F507 payload_not_told: The motion does not distinguish {parameters} (σ is infinite), and so not
  {central} DO Use a motion in which the joints up to {joint} turn the payload about more
  directions, if these matter WHY A wrist that turns about one axis shows one inertia only.
F508 payload_impossible: The best fit is not physical: this is the nearest physical body, up to
  {distance:.1f} σ away DO [[Check {advice}, and the robot description]][[Record longer for more
  exact {inexact}]] WHY Noise or a wrong model causes this distance.
# F6: result
F601 exact_fit: Residual and noise of [[{joints} ({residuals:.2p})]] are smaller than those of any
  sensor ({least:.1p}) MEANS They look like computed efforts DO Record measured efforts WHY Efforts
  that are computed from a model give that model's parameters, not the robot's.
F602 no_dissipation: The friction of {joint} does not dissipate from {low:.3g} to {high:.3g}
  {length}/s: between {start:.3g} and {stop:.3g} {length}/s it pushes with {torque:.2g} ±
  {sigma:.1g} {unit} MEANS Do not use its friction law at these speeds DO Take its plain equivalent
  (plain_friction in parameters.yaml), or record more of these speeds WHY A simulation with
  friction that gives energy is unstable.
F604 logs_far_apart: The logs disagree; unexplained share of their efforts: [[{logs} {shares:.0%}
  (alone {own:.0%})]] DO Identify logs with another tool, temperature or robot separately WHY One
  set of parameters describes one robot.
F605 logs_agree info: The logs agree within their σ: p = {p:.2g}, least for {parameter} (Cochran's
  Q test, Holm) WHY Parameters that repeat from log to log are those of the robot.
F606 logs_disagree: The logs disagree, most on {parameter} ([[{logs} {values:.4g} ±
  {sigmas:.2g}]]): p = {p:.2g} (Cochran's Q test, Holm) DO Look for what differs in {outlier}:
  temperature, tool or wear WHY σ of logs that differ is too small.
F607 agreement_not_tested info: Too few of the logs determine all parameters to test whether they
  agree WHY The test needs an estimate from each log.
F608 validation_copied: {share:.0%} of the validation was also fitted: this part validates nothing
  DO Validate on another motion WHY A model always predicts what was fitted to it.
F610 effort_not_predicted: {residual:.0%} of the effort of {joint} is not predicted MEANS No factor
  and no zero explains it DO Check whether payload, temperature or delay changed, and whether
  units, signs and parameters belong to this robot WHY The model does not stand for this recording.
F611 effort_scaled: {residual:.0%} of the effort of {joint} is not predicted: the measured effort
  is {factor:.3g} times the prediction DO Check its unit, or divide its robot.drive_gain by
  {factor:.3g}{tried} WHY The unit or the gain of the effort is another one.
F612 effort_shifted: {residual:.0%} of the effort of {joint} is not predicted: the measured effort
  differs from the prediction by a constant {offset:+.3g} DO Check the zero of its sensor{tried}
  WHY The zero of the sensor is another one.
F620 loop_slow: {joint}: ω_n of its loop is {omega:.3g} rad/s, only {ratio:.2g} times the bandwidth
  of the motion ({band:.3g} rad/s) MEANS DIDIM may be biased DO Use a slower motion or stiffer
  gains WHY A loop that does not follow the motion leaves its parameters to the gains.
F621 motion_doubtful: {joint}: the simulated motion deviates from the measured one by {ratio:.2g}
  times the tracking error MEANS Its parameters are doubtful, its friction above all DO Compare
  control law and gains of identification.replay, or of the recording, with those of the robot WHY
  The simulated loop lags as the measured one does where gains are right.
F622 motion_wrong error: {joint}: the simulated motion deviates from the measured one by
  {ratio:.2g} times the tracking error MEANS Its parameters are not trustworthy DO Compare control
  law and gains of identification.replay, or of the recording, with those of the robot WHY ^
F623 torque_unexplained: {residual:.0%} of the torque stays unexplained DO Compare control law and
  gains of identification.replay, or of the recording, and robot.drive_gain with those of the robot
  WHY The right control law leaves far less.
F624 not_converged: {method} has not converged, its result is that of the last simulation
  ({reason}) MEANS [[Do not trust {parameters}]] DO Use a richer motion, or look at its convergence
  in the report WHY Parameters that still change are not determined.
F626 reference_instruments info: Method iv used the recorded reference, not a simulated motion:
  {reason} WHY A simulated motion is nearer to the real one.
F627 nothing_to_compare: DIDIM has no result to compare with: {reason} DO If the comparison is not
  needed, use method 'wls' WHY Two methods with different assumptions check each other.
F630 no_report: There is no report: {reason} WHY Its plots show why a joint is predicted badly.
F631 marked_unusable: These parameters were judged to be unusable when they were identified
  ({reason}) DO Identify again WHY They predict no other motion of the robot.
# F7: session
F701 session_cut: The session was cut while {phase}[[, {missing:.1f} s of this motion are missing]]
  DO Record a whole session WHY A motion that was cut excites less than was designed.
F702 slow_motion info: {phase} ran at {speed:.0%} of the planned speed, by the speed scaling WHY
  Inertias are known better at full speed.
F703 speed_changed info: {phase} ran at {low:.0%} to {high:.0%} of the planned speed, by the speed
  scaling, so its periods differ WHY Periods that differ cannot be averaged, and inertias are known
  better at full speed.
F704 gains_changed: The gains of {joints} were changed during the recording, at an unknown time
  MEANS No method uses them DO For DIDIM, record with constant gains WHY DIDIM simulates the
  controller with its gains.
# F8: design of a motion
F802 search_stopped info: The search was stopped before its end: the same seed may give another
  trajectory WHY A longer search excites more.
F805 never_apart info: Not checked for collisions, because they overlap in every pose: {pairs} WHY
  Bodies that overlap in every pose are neighbours by their shapes.
F806 overlapping: Not checked for collisions, because their shapes overlap in many poses: {pairs}
  DO Check on the robot. If they can touch, remove the pair from excitation.workspace.ignored_pairs
  WHY A motion may bring these links together.
F807 arm_hangs info: No ground is set, the arm seems to hang ({reason}) DO If there is one, set
  excitation.workspace.ground WHY Without a ground, the motion may reach the floor.
F809 followers_stand_still: {joints} follow joints of the arm, but stand still in the model: checks
  of a motion do not include their motion DO Keep clear of these joints WHY A joint that is not
  checked may hit something.
F810 self_collision_unchecked: Self-collision is not checked DO Set
  excitation.workspace.self_collision WHY The motion may bring links together.
F811 ground_unchecked: The ground is not checked DO Set excitation.workspace.ground to its height
  WHY The motion may reach the floor or the table.
F812 masses_unchecked: The masses of the links are assumed, and the check of efforts relies on them
  DO Give the links masses and inertias WHY The motion may need more effort than the drives have.
F813 no_collision_geometry: The description has no collision geometry: self-collision is not
  checked DO Give the links collision geometry WHY The motion may bring links together.
F814 collision_geometry_unreadable: The collision geometry cannot be read ({reason}):
  self-collision is not checked DO Set excitation.workspace.mesh_folders WHY ^
F815 known_before info: The expected error from parameter σ on working motions falls from
  {before:.2p} to {after:.2p} with this motion WHY Model errors add to it whatever the motion.
F816 positions_unchecked: The description has no position limits of {joints}, which are not of the
  type continuous: their stops are not checked DO Set robot.lower and robot.upper, or correct the
  type WHY The motion may run into a stop.
F817 links_unreadable: Meshes of {links} cannot be read: only the joints of these links are checked
  DO Set excitation.workspace.mesh_folders WHY The motion may bring links together.
F820 badly_conditioned error: The normalised condition number is {condition:.3g}, above {most:g} DO
  Lengthen excitation.period, raise excitation.time_limit or loosen the limits WHY Noise moves
  parameters far where columns are nearly dependent.
F821 search_too_short error: The search was stopped after {evaluations} evaluations for {variables}
  variables DO Raise excitation.time_limit WHY Such a search has not looked in every direction.
F822 nothing_validates error: No validation trajectory was found: {reason} DO Loosen the limits, or
  set excitation.validation.kind to none WHY Nothing else shows how well the model predicts.
# F9: fleets; 'type' and 'robot' name the robot
F901 inverted_effort error: The effort of {joint} has the opposite sign of the others ({gain:.2f}
  times what they predict) DO Check its wiring and drive gain WHY Its parameters do not belong to
  those of its type.
F902 undeclared_payload: Its links differ from those of the other robots as if {mass:+.3g} kg were
  at {joint} (p = {p:.1g}) DO Check tool, payload and their declaration WHY Feed-forward and
  contact detection of this robot are wrong by a payload.
F903 outlier: {parameter} differs from the others by {difference:+.3g} {unit}, {times:.0f} times
  their spread (p = {p:.1g}) DO Look for wear, a repair or another tool WHY Robots of one type
  share their parameters but for tolerances and wear.
F904 friction_drift: {parameter} changed from {before:.3g} by {step:+.2g} {unit} ({share:+.0%}) by
  {since} (p = {p:.1g}) DO Check lubrication and bearings of the joint WHY Friction that changes
  beyond temperature is a sign of wear.
F1001 localhost_only info: ROS_LOCALHOST_ONLY=1 overrules ROS_AUTOMATIC_DISCOVERY_RANGE DO Unset
  it, and set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST WHY Two settings that contradict each other
  surprise later.
# F10 to F21: the doctor, by what it looks at
F1003 no_nodes error: No other node is heard in ROS domain {domain} with the discovery range
  {range} DO Start the robot, and set ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and
  RMW_IMPLEMENTATION here as it has them WHY Without the robot nothing can be recorded.
F1004 nodes_heard ok: {count} nodes in ROS domain {domain} with the discovery range {range} WHY The
  graph is there.
F1005 open_network info: Anybody on the network may command the robot DO Set
  ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST where the robot is on this machine, or see
  docs/security.md WHY ROS 2 has no passwords unless security is on.
F1006 no_messages error: {topics} have publishers, and no message of any arrives DO Export
  FASTDDS_BUILTIN_TRANSPORTS=UDPv4 ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET here and on the robot, and
  let the firewall pass UDP (docs/interface.md, nodes that do not hear each other) WHY Discovery
  works, transport does not: containers, shared memory or a firewall.
F1102 not_latched: {node} does not keep '{topic}' for nodes that start later DO Publish it with the
  durability transient_local, as robot_state_publisher does WHY A recorder that starts later has no
  robot description.
F1103 quality_mismatch: {reader} hears nothing of {publisher} on '{topic}': it asks for {lacks},
  which {publisher} does not offer DO Give both the same quality of service WHY DDS does not
  connect them, and says nothing.
F1201 controller_not_named info: No controller was named, '{controller}' is taken DO Set
  excitation.controller to {controller} in the configuration WHY A second controller makes the
  choice open.
F1202 controller_found ok: '{controller}' commands {interfaces} of {joints}[[ at {rate:g} Hz]] WHY
  A session moves the robot by it.
F1203 not_serving error: '{controller}' does not serve follow_joint_trajectory DO Configure and
  activate it WHY No motion can be sent.
F1204 controller_silent error: '{topic}' is silent[[, the controller is '{state}']] DO [[Activate
  the controller: 'ros2 control switch_controllers --activate {inactive}']][[The update loop of
  '{active}' stands still, see controller_manager's log]] WHY A session needs the state of the
  controller.
F1205 controller_unfit error: {reason} DO See docs/guide/your_robot.md for what a controller has to
  have WHY A session is refused.
F1206 controller_mute error: '{controller}' does not say which joints and interfaces it has DO
  Restart it, it must be a joint_trajectory_controller WHY A session has to know what it commands.
F1207 other_controllers error: There is no controller '{controller}', but {others} DO Name one in
  excitation.controller or by --controller, without the namespace before it WHY No motion can be
  sent.
F1208 no_controller error: There is no controller '{controller}', nobody serves
  follow_joint_trajectory DO Load and activate a joint_trajectory_controller, or set --namespace
  WHY ^
F1209 no_path_tolerance: '{controller}' has no path tolerance for {joints}, so that the robot runs
  on when its states freeze DO Set constraints.{joint}.trajectory and so on (docs/safety.md) WHY
  Path tolerances alone stop a robot whose states no client can trust.
F1210 joints_taken error: '{controller}' is '{state}', and '{other}' has its joints DO Run 'ros2
  control switch_controllers --deactivate {other} --activate {controller}' WHY Two controllers
  cannot command one joint.
F1211 stops_at_once info: '{controller}' holds at once when a motion is cancelled, without a ramp
  DO Set constraints.decelerate_on_cancel, and constraints.JOINT.max_deceleration_on_cancel of
  every joint WHY A stop at full speed is a jump of the reference, which drives may answer with a
  fault.
F1212 no_deceleration: '{controller}' is to brake along a ramp and has no deceleration for
  {joints}, so that it holds at once DO Set constraints.{joint}.max_deceleration_on_cancel and so
  on WHY The controller brakes only if every joint has one.
F1213 starts_at_last_command info: '{controller}' begins at its last command when it is activated
  DO Set set_last_command_interface_value_as_state_on_activation to false WHY A robot that was
  moved meanwhile jumps back.
F1214 open_loop: '{controller}' begins motions at its last command, for open_loop_control is set DO
  Set open_loop_control to false WHY A robot that was held up on its way jumps to where the next
  motion begins.
F1215 ends_in_motion info: '{controller}' accepts motions that do not end at rest DO Set
  allow_nonzero_velocity_at_trajectory_end to false WHY It holds the last velocity as its reference
  after the end.
F1216 waits_for_goal info: '{controller}' waits without an end for {joints} to reach a goal DO Set
  constraints.goal_time, in seconds WHY A motion that misses its goal is never reported as ended.
F1217 uneven_updates: '{controller}' is to update at {update:g} Hz, controller_manager at
  {manager:g} Hz DO Set update_rate to {better:g} WHY A rate that does not divide is not kept, and
  DIDIM replays the one that was named.
F1218 unbearable_gains error: The bodies that Gazebo simulates, without rotor inertia, are unstable
  with the gains of {joints} at {rate:g} Hz DO Set lower gains: gazebo.launch.py derives them WHY
  Gains for geared drives shake links without rotors.
F1301 didim_possible ok: Possible, with effort commands and gains WHY DIDIM replays the law that
  makes the effort.
F1302 didim_gains info: DIDIM lacks the gains of {joints} DO Set them in the controller, or
  identify by wls WHY ^
F1303 didim_commands info: DIDIM needs effort commands, '{controller}' commands {interfaces} DO
  Identify by wls, which needs positions and efforts only WHY ^
F1401 no_manager info: No controller_manager is heard, the states of hardware and other controllers
  are not checked WHY Simulators and some drivers have none.
F1402 manager_unanswered info: Hardware and other controllers are not checked, {reason} DO Look at
  'ros2 control list_hardware_components' WHY An inactive hardware component does not move.
F1403 manager_warning: {text} DO See controller_manager's log WHY controller_manager says so on
  /diagnostics.
F1404 hardware_inactive error: Hardware '{hardware}' is '{state}' DO See its log, then 'ros2
  control set_hardware_component_state {hardware} active' WHY It does not move.
F1406 broadcaster_inactive: '{controller}', which publishes joint states, is '{state}' DO Activate
  it: 'ros2 control switch_controllers --activate {controller}' WHY Without joint states no session
  runs.
F1407 gazebo_friction info: Gazebo's dry friction / the description's: [[{joints} {factors:.2g}]]
  DO Compare identified values with these, not with the description WHY DART takes joint damping
  and dry friction into a step in two ways (docs/studies/real_stacks.md).
F1501 malformed_states: {count} joint states name a joint twice or lack values DO See who publishes
  them ({nodes}) WHY They are left out of every recording.
F1502 joints_lacking error: The joint states lack {joints}, they name {published} DO Let the
  joint_state_broadcaster publish every joint, or correct robot.joints WHY A joint without states
  cannot be identified.
F1503 states_silent error: '{topic}' is silent though {nodes} publishes it DO Activate hardware and
  joint_state_broadcaster ('ros2 control list_controllers') WHY Without joint states no session
  runs.
F1504 no_states error: Nobody publishes '{topic}'[[, there is {others}]] DO Start the
  joint_state_broadcaster, remap its topic, or set --namespace WHY ^
F1505 no_velocity info: The joint states have no velocity: positions are differentiated, only
  effort controllers need it WHY Measured velocities are not needed for an identification.
F1506 not_a_number error: {quantity} of {joints} is not a number DO Check the sensor and the
  {quantity} state interface WHY A joint without numbers cannot be identified.
F1507 states_frozen: Positions, velocities and efforts never change by a single bit DO Let the
  robot move: if they stay so, the hardware repeats old states WHY Sensors have noise.
F1508 joints_frozen info: Position and velocity of {joints} never change by a single bit, those of
  the others do DO Let it move: if they stay so, its encoder has failed WHY ^
F1509 rival_publishers: {count} publishers send the same joints on '{topic}' ({nodes}) DO Remap or
  end all but the joint_state_broadcaster WHY Their stamps and values mix.
F1601 zero_stamps error: {zero} of {count} stamps are zero DO Let the publisher stamp its messages
  WHY Times of reception jitter.
F1602 stamps_stand error: The stamps of the joint states never advance DO Let the publisher stamp
  its messages, and listen for longer (--duration) WHY Without times there are no velocities.
F1603 slow_states: Joint states come at {rate:.3g} Hz DO Publish them at {least:g} Hz or more, best
  at the rate of the controller WHY Motions reach some hertz, and are differentiated twice.
F1604 timing_right ok: {rate:.4g} Hz, jitter {jitter:.3f ms}, none lost WHY Even stamps make exact
  velocities.
F1605 irregular_stamps: {repeated} of {count} stamps repeat the one before, {backward} jump back DO
  Look for a second publisher, or a clock that was set WHY Such samples are left out.
F1606 states_lost info: {share:.1%} of the joint states are lost, the longest gap is {gap:.0f ms}
  DO Record on the robot itself, with less load or over a better network WHY Accelerations within
  gaps are guessed.
F1607 stamps_uneven: The stamps jitter by {jitter:.2f ms} at {rate:.4g} Hz DO Stamp the states when
  they are measured, and run the control loop with real-time priority WHY An error of time is an
  error of velocity and acceleration.
F1608 slow_controller_states info: The controller updates at {update:g} Hz, its states arrive at
  {rate:.3g} Hz DO Record on the robot itself with less load WHY DIDIM replays the commands between
  them.
F1701 clocks_agree ok: Stamps agree with {clock} WHY Recordings of several machines fit together.
F1702 clock_offset: Joint states are stamped {offset:.3g} s {side} {clock} DO Synchronise the
  clocks (chrony), and set use_sim_time everywhere or nowhere WHY Motions and states of different
  clocks do not fit together.
F1801 commands_for_efforts: The joint states report {what}: the controller's commands are used
  instead DO Give the joint_state_broadcaster the effort interfaces, if the drives have any WHY A
  drive that does not follow its command makes parameters wrong.
F1802 no_efforts error: The joint states report {what}, and none is commanded DO Give the
  joint_state_broadcaster the effort interfaces, or see docs/efforts.md for another topic of the
  driver WHY Without efforts nothing can be identified.
F1803 effort_not_a_number error: Effort of {joints} is not a number DO Check its sensor, and that
  the joint_state_broadcaster has its effort interface WHY A joint without effort cannot be
  identified.
F1804 efforts_all_zero: Every effort is exactly zero[[ though the arm {bears} its weight]] DO See
  docs/efforts.md for what drivers report WHY Nothing can be identified if they stay so in motion.
F1805 effort_zero: Effort of {joints} is exactly zero throughout DO Move it a little: if it stays
  so, its sensor is dead WHY A joint without effort cannot be identified.
F1806 efforts_frozen info: Efforts never change by a single bit DO Move the robot a little: if they
  stay so, the driver repeats an old value WHY Sensors have noise.
F1807 moves info: {joints} moves, so that efforts are not compared with weights DO Run the doctor
  again at rest WHY At rest, efforts balance the weight alone.
F1808 no_weight info: No joint bears a weight that would show sign and unit of its effort DO Run
  the doctor again with the arm stretched out sideways, where gravity acts on its joints WHY Weight
  is a torque that is known without a motion.
F1809 efforts_beyond_weight: Efforts at rest are more than weight and friction, {weights} DO Set
  the zero of their sensors, and see that the arm touches nothing WHY A zero that is off looks like
  gravity.
F1810 efforts_without_weight: Efforts at rest lack the weight, {weights} DO Set robot.effort_kind:
  without_gravity if the driver subtracts it (docs/efforts.md) WHY Some drivers subtract gravity.
F1811 efforts_unlike_weight: Efforts at rest do not fit the weight, {weights} DO Check their unit,
  robot.drive_gain, the payload, and the masses of the description WHY A wrong unit scales masses,
  inertias and friction.
F1812 efforts_like_weight ok: Efforts at rest fit the weight, {weights} WHY Sign and unit are
  right.
F1813 efforts_opposite: Efforts at rest are opposite to the weight, {weights} DO Set its
  robot.drive_gain to -1[[, or robot.gravity if the {arm} hangs]] WHY Positive efforts have to
  accelerate a joint in its positive direction.
F1901 description_unusable error: {reason} DO Correct the robot description WHY Without a model
  nothing can be planned or identified.
F1902 no_description error: [[Nobody publishes '{topic}']][['{empty}' holds nothing though {nodes}
  publishes it]], and no robot.urdf is configured DO Start robot_state_publisher, or give --config
  with robot.urdf WHY ^
F1904 no_limit: There is no {limit} limit of {joints} DO Set robot.{limit} WHY A motion is planned
  and watched by it.
F1905 described ok: '{robot}' with the joints {joints} WHY The model is that of this description.
F1906 several_descriptions: '{topic}' holds {count} different descriptions ({nodes}) DO End all but
  the robot's own publisher WHY Which one a node takes is chance.
F2001 session_runs: A session of {nodes} uses '{controller}' DO Wait for its end, no other one
  starts meanwhile WHY Only one session may move the robot.
F2002 goal_runs error: A goal of another client runs on '{controller}' DO End it WHY Only one
  client may move the robot.
F2003 commanded_by_topic error: {nodes} can command '{controller}' on '{topic}' DO End it WHY No
  session starts beside it.
F2004 other_clients info: {nodes} can send goals to '{controller}' DO Send none while a session
  runs WHY A goal replaces the motion of a session.
F2005 alone ok: Nobody else commands '{controller}' WHY A session is alone with the robot.
F2101 not_writable error: No recording can be written: {reason} DO Set recorder.folder to another
  one WHY A session without a recording gives no result.
F2102 disk_space ok: {free:.1f} GB are free for '{folder}' DO [[Make room, or set {setting} to
  another one]] WHY A minute of seven joints at 1 kHz takes about 60 MB.
"""


def _read_table() -> Iterator[Code]:
    """Yield the codes of the table, whose rows go on in indented lines."""
    row = re.compile(r'(\w+) (\w+)(?: (\w+))?: (.*?)(?: MEANS (.*?))?(?: DO (.*?))? WHY (.*)')
    why = ''
    for text in re.findall(r'^F.*(?:\n .*)*', FINDINGS, re.MULTILINE):
        match = row.fullmatch(' '.join(text.split()))
        assert match is not None, text
        code, name, severity, *texts = (each or '' for each in match.groups())
        for shared, template in SHARED.items():
            if shared != 'tried':  # which is no part of the sentence in a list of all codes
                texts = [each.replace(f'{{{shared}}}', template) for each in texts]
        seen, means, remedy, own = texts
        why = why if own == '^' else own
        yield Code(code, name, Severity[severity.upper() or 'WARNING'], seen, why, means, remedy)


CODES: Mapping[str, Code] = {each.code: each for each in _read_table()}
NAMES: Mapping[str, Code] = {each.name: each for each in CODES.values()}


# By these, log or description are of another robot, or in other units, and masses are wrong.
MISREAD = (
    *('effort_sign', 'effort_gain', 'efforts_swapped', 'effort_scale'),
    *('effort_unit', 'effort_unit_of_log', 'effort_magnitudes', 'implausible_inertia'),
    *('gravity_direction', 'gravity_compensated'),
    *('axis_reversed', 'other_zero', 'joints_exchanged', 'position_unit', 'time_scale'),
    *('velocities_unlike', 'clocks_differ', 'standstill_contradicted', 'played_backwards'),
)


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


def formatted(value: Any, form: str) -> str:
    """Format a value; thousands without the exponent that '.3g' gives them."""
    text = format(value, form)
    thousands = form.endswith('g') and text.endswith(('e+03', 'e+04', 'e+05'))
    return f'{float(text):.0f}' if thousands else text


class _Formatter(string.Formatter):
    """Formats shares as percent (`.1%`, `.3p` by digits), seconds in ms (`.2f ms`), tuples."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, tuple):
            return shortened([self.format_field(each, format_spec) for each in value], FEW)
        if format_spec.endswith('%'):
            return f'{format(value, format_spec[:-1] + "%")[:-1]} %'
        if format_spec.endswith('p'):
            return f'{self.format_field(100.0 * value, format_spec[:-1] + "g")} %'
        if format_spec.endswith(' ms'):
            return f'{1e3 * value:{format_spec[:-3]}} ms'
        return formatted(value, format_spec)


_FORMATTER = _Formatter()


def _filled(template: str, values: Mapping[str, Any]) -> str:
    pieces = _PART.split(template.replace('{tried}', SHARED['tried']))
    pieces[::2] = [_FORMATTER.vformat(piece, (), values) for piece in pieces[::2]]
    pieces[1::2] = [_repeated(piece, values) for piece in pieces[1::2]]
    return ''.join(pieces)


def _repeated(part: str, values: Mapping[str, Any]) -> str:
    """Fill a part once, or for each item of its tuples; '' where a value is missing."""
    names = [name for _, name, _, _ in string.Formatter().parse(part) if name]
    if any(values.get(name) in (None, '', ()) for name in names):
        return ''
    many = [name for name in names if isinstance(values[name], tuple)]
    rows = zip(*(values[name] for name in many), strict=True) if many else [()]
    each = ({**values, **dict(zip(many, row, strict=True))} for row in rows)
    return shortened([_FORMATTER.vformat(part, (), own) for own in each], FEW)


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


def from_data(data: Mapping[str, Any] | str, severity: Severity = Severity.WARNING) -> Finding:
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
    kind = {'code': found.code, 'name': CODES[found.code].name, 'severity': found.severity.word}
    about = {'joints': list(found.joints), 'values': dict(found.values)}
    return {**kind, **about, 'text': render(found)}
