"""Wrong uses, a line each: one sentence with the remedy, an exit code, and no file touched."""

import os
from pathlib import Path
import re
import shlex
import zipfile

import numpy as np
import pytest

from robotid_ros.cli.main import main
from robotid_ros.files.atomic import LFS_POINTER

URDF = Path(__file__).resolve().parents[2] / 'urdf' / 'scara.urdf'
HEAD = '/**:\n  ros__parameters:\n    robot: {urdf: arm.urdf'
# Configurations that differ from a good one by what is wrong.
CONFIGURATIONS = {
    'arm': '}',
    'key': ', jonits: []}',
    'type': ', rotor_inertia: maybe}',
    'joint': ', joints: [joint1]}',
    'twice': ', joints: [joint_1, joint_1]}',
    'gain': ', drive_gain: [0.0, 1.0]}',
    'nan': ', drive_gain: [.nan, 1.0]}',
    'term': ', friction: {default: [viscos]}}',
    'group': '}\n    excitaton: {period: 5.0}',
    'range': '}\n    excitation: {period: -1.0}',
    'inf': '}\n    excitation: {period: .inf}',
    'frame': '}\n    excitation: {workspace: {frame: tol0}}',
    'choice': '}\n    excitation: {criterion: best}',
    'length': '}\n    excitation: {start: [0.0]}',
    'ratio': ', couplings: {wrist: {ratios: [1.0]}}}',
    'gravity': ', gravity: [0.0, -9.81]}',
    'locked': ', locked: {joint_7: 0.0}}',
    'both': ', joints: [joint_1, joint_2], locked: {joint_2: 0.1}}',
    'mass': ', mass: 1e999}',
    'spring': ', elastic: {joints: [joint_9]}}',
    'room': ', lower: [1.0, 1.0], upper: [0.0, 0.0]}',
    'unit': '}\n    excitation: {period: 5 s}',
    'python': '}\n    excitation: {period: !!python/object/apply:os.getpid []}',
    'start': '}\n    excitation: {start: [.nan, 0.0]}',
    'yes': '}\n    excitation: {periods: yes}',
    'part': '}\n    excitation: {periods: 2.5}',
    'margin': '}\n    excitation: {margins: {velocity: -1.0}}',
    'order': '}\n    excitation: {order: 500}',
    'pair': '}\n    excitation: {workspace: {ignored_pairs: [a/b]}}',
    'flat': '}\n    excitation: {workspace: {obstacles: {t: {shape: box, size: [1.0, 1.0]}}}}',
    'drive': '}\n    simulation: {command_interface: torque}',
    'loop': '}\n    simulation: {gains: {joint_1: {p: strong}}}',
    'fault': '}\n    simulation: {fault: {kind: explode}}',
}
# Descriptions with one thing replaced.
DESCRIPTIONS = {
    'xml': ('</robot>', ''),
    'mass': ('<mass value="', '<mass value="-'),
    'comma': ('<mass value="', '<mass value="0,'),
    'parent': ('<parent link="base_link"/>', '<parent link="bse_link"/>'),
    'kind': ('type="revolute"', 'type="revolut"'),
    'number': ('<mass value="', '<mass value="nan" x="'),
    'turned': ('lower="-', 'lower="9'),
    'effort': ('effort="40.0"', 'effort="forty"'),
    'double': ('joint name="joint_2"', 'joint name="joint_1"'),
    'table': ('</robot>', '<link name="table"/></robot>'),
    'floats': ('joint name="joint_2" type="revolute"', 'joint name="joint_2" type="floating"'),
    'ball': ('type="revolute"', 'type="spherical"'),
    'axis': ('<axis xyz="0 0 1"', '<axis xyz="0 0"'),
    'child': ('<child link="link_2"', '<child link="link_1"'),
    'entity': ('<robot', '<!DOCTYPE r [<!ENTITY a "b">]><robot x="&c;"'),
    'closed': (
        '</robot>',
        '<joint name="j" type="fixed"><parent link="link_2"/>'
        '<child link="link_1"/></joint></robot>',
    ),
}
RAW = bytes(range(256)) * 8
XACRO = '<robot xmlns:xacro="http://ros.org/wiki/xacro" name="$(arg x)">'
# Contents of xacros that it refuses.
XACROS = {
    'zero': '${1/0}',
    'undefined': '${foo}',
    'syntax': '${1+}',
    'opens': '${open("/etc/passwd").read()}',
    'calls': '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>',
    'itself': '<xacro:include filename="itself.xacro"/>',
    'lacks': '<xacro:macro name="m" params="a"/><xacro:m/>',
    'yaml': '${xacro.load_yaml("nowhere.yaml")}',
    'environment': '$(env NOWHERE_AT_ALL)',
    'perhaps': '<xacro:if value="perhaps"/>',
}
COLUMNS = 'joint_1_position,joint_2_position'
EFFORTS = 'joint_1_effort,joint_2_effort'
NEAR_URDF = "no such file or directory; did you mean 'arm.urdf'?"
NO_PARAMETERS = 'or the folder that robotid identify wrote it to'
NO_BAG = 'give a bag or one of .csv'
NO_TEXT = 'is not a text file: give the right file'
OTHER_PARAMETERS = "kept/parameters.yaml' holds no identified parameters: give a parameters.yaml"
THERE = 'exists already: name another output by -o, or add --force'
# What is typed, and the words of the remedy.
WRONG_USES = """
fly | use one of demo, design, identify
idntify | did you mean 'identify'?
fleet | robotid fleet --help
fleet rn | did you mean 'run'?
fleet run folder | required: -c
fleet report folder | give the folder of fleet run -o
fleet report x y | no place for 'y'
identify | required: bag
identify lgo.csv --urdf arm.urdf | did you mean 'log.csv'?
identify log.csv | give one with --urdf, or a configuration with -c
identify log.csv --urdf amr.urdf | did you mean 'arm.urdf'?
identify log.csv --urdf arm.yaml | repair it
identify log.csv --urdf xml.urdf | repair it
identify log.csv --urdf sdf.urdf | give a URDF, which has <robot>
identify log.csv --urdf mass.urdf | must be a number of at least 0
identify log.csv --urdf comma.urdf | of link base_link is '0,10.0'
identify log.csv --urdf parent.urdf | check its links
identify log.csv --urdf kind.urdf | make it one of revolute
identify log.csv --urdf double.urdf | give each a name of its own
identify log.csv --urdf still.urdf | give the description of the robot that was recorded
identify log.csv --urdf empty.csv | is empty: give the right file
identify log.csv -c arm.urdf | give the .yaml that 'robotid init arm.urdf' writes
identify log.csv -c amr.yaml | did you mean 'arm.yaml'?
identify log.csv -c tabs.yaml | correct it, or give another file
identify log.csv -c list.yaml | it must hold '/**:'
identify log.csv -c kept.yaml | it must hold '/**:'
identify log.csv -c nothing.yaml | give one with --urdf, or a configuration with -c
identify log.csv -c lost.yaml | no such file
identify log.csv -c key.yaml | unknown key 'robot.jonits': did you mean 'joints'?
identify log.csv -c group.yaml | unknown key 'excitaton': did you mean 'excitation'?
identify log.csv -c type.yaml | must be of type bool, not 'maybe'
identify log.csv -c joint.yaml | did you mean 'joint_1'?
identify log.csv -c twice.yaml | name each one once
identify log.csv -c term.yaml | did you mean 'viscous'?
identify log.csv -c range.yaml | it must be at least 0.1
identify log.csv -c choice.yaml | use one of condition
identify log.csv -c arm.yaml --joints joint_9 | use one of joint_1, joint_2
identify log.csv -c arm.yaml --joints joint_1, | write joint_1,joint_2
identify log.csv -c arm.yaml --method wsl | did you mean 'wls'?
identify log.csv -c arm.yaml --effort-kind torque | did you mean 'joint_torque'?
identify log.csv -c arm.yaml --part 2:1 | write 0:0.5 for the first half
identify log.csv -c arm.yaml --from 5 --to 3 | --from and --to with the start first
identify log.csv -c arm.yaml --from 100 | record or choose at least 0.5 s
identify log.csv -c arm.yaml --from x | invalid float value: 'x'
identify log.csv -c arm.yaml --columns position | write '--columns
identify log.csv -c arm.yaml --columns position=q{i} | correct --columns
identify log.csv -c arm.yaml --units effort=horses | use one of nm
identify log.csv -c arm.yaml --units speed=deg | write '--units
identify log.csv -c arm.yaml -o kept.yaml | is a file, not a folder: name another one
identify log.csv -c arm.yaml --otput x | did you mean '--output'?
identify empty.csv -c arm.yaml | record again
identify words.csv -c arm.yaml | give a bag (MCAP, SQLite), or a CSV file
identify arm.urdf -c arm.yaml | give a robot description by --urdf
identify log.csv arm.urdf | give a robot description by --urdf
identify log.csv arm.yaml | a configuration by -c
identify '' --urdf arm.urdf | set the variable that holds it
identify log.csv --urdf '' | set the variable that holds it
identify log.csv --urdf folder | give a file
identify log.csv --urdf wide.urdf | give the right file
identify *.xyz --urdf arm.urdf | give a rosbag2 folder or file
identify head.csv -c arm.yaml | or a CSV file with one row per sample
identify still.csv -c arm.yaml | name another column with --columns 'time=NAME'
identify log.csv -c log.csv | as 'robotid init URDF' writes it
identify log.csv -c again.yaml | the key 'robot' is given twice
identify log.csv -c number.yaml | must be of type str, not 5
identify log.csv -c arm.yaml --rate nan | must be a number above zero
identify log.csv -c arm.yaml --rate 0 | must be a number above zero
identify log.csv -c arm.yaml --part 0:0.7 --validation-part 0.5:1 | fitted data cannot validate
identify log.csv -c arm.yaml --validation-part 0.5:1 | fitted data cannot validate
identify log.csv -c arm.yaml --part 0:0.7 --validation ./log.csv | or leave it out
identify log.csv -c arm.yaml --validation lgo.csv | did you mean 'log.csv'?
identify log.csv -c arm.yaml -o arm.urdf/x | is a file, not a folder: name another one
identify folder -c arm.yaml | give another folder
identify zero.csv -c arm.yaml | record a motion
identify noeffort.csv -c arm.yaml | name it with --columns
validate log.csv | required: --parameters
validate log.csv --parameters folder | {NO_PARAMETERS}
validate log.csv --parameters lost | {NO_PARAMETERS}
validate log.csv --parameters kept | {OTHER_PARAMETERS}
validate log.csv --parameters kept --max-residual few | 'few' must be a number
report lost | {NO_PARAMETERS}
report folder | {NO_PARAMETERS}
report log.csv | give a parameters.yaml
report kept | {OTHER_PARAMETERS}
compare | required: parameters
compare kept folder | {OTHER_PARAMETERS}
payload log.csv | required: loaded
payload kept.yaml --set franka | give one of robotid payload
payload log.csv lgo.csv --urdf arm.urdf | did you mean 'log.csv'?
payload log.csv other.csv --urdf arm.urdf --frame tol0 | did you mean 'tool0'?
payload log.csv other.csv --urdf arm.urdf -o log.csv --force | name another output by -o
inspect | required: bag
inspect lgo.csv | did you mean 'log.csv'?
inspect folder | give another folder
inspect empty.csv | record again
export kept | required: --format
export kept --format urdf | {OTHER_PARAMETERS}
export folder --format urdf | {NO_PARAMETERS}
export kept --format csv -o kept/parameters.yaml --force | name another output by -o
export kept --format stl | use one of mjcf, sdf, urdf
design lost.yaml | no such file
design arm.urdf | give the .yaml that 'robotid init arm.urdf' writes
design arm.yaml --time-limit -1 | must be a number above zero
design arm.yaml --time-limit soon | must be a number above zero
design arm.yaml --seed some | invalid int value: 'some'
design arm.yaml --solver magic | no option '--solver'
design arm.yaml --payload -1 | must be a number above zero
design arm.yaml -o kept.yaml | {THERE}
design arm.yaml -o kept.html | let the name of the file end in .yaml
design arm.yaml -o folder | {THERE}
design arm.yaml -o arm.yaml --force | name another output by -o
design log.csv | as 'robotid init URDF' writes it
design arm.yaml --known folder | {NO_PARAMETERS}
design arm.yaml --known kept | {OTHER_PARAMETERS}
design length.yaml | give one per joint (2)
init amr.urdf | {NEAR_URDF}
init arm.yaml | repair it
init arm.urdf joint_1 | write NAME:=VALUE
init arm.urdf a:=1 | name its .xacro
init arm.urdf -o new.yaml joint_1 | no place for 'joint_1'
init arm.urdf -o new.yaml --tip tol0 | did you mean 'tool0'?
init arm.urdf -o new.yaml --joints joint_3 | use one of joint_1, joint_2
init arm.urdf --joints joint_1 --tip tool0 | give one of them
init arm.urdf -o kept.yaml | {THERE}
init arm.urdf -o arm.urdf --force | name another output by -o
init arm_description.urdf -o arm.yaml --repair inertias --force | name another configuration
init arm.urdf --force --repair inertia | did you mean 'inertias'?
init bare.urdf | --mass of robotid init
init bare.urdf --mass heavy | 'heavy' must be a number
init still.urdf | give that of an arm
init arm.urdf --repair masses | use one of inertias
demo ur1 | did you mean 'ur10'?
demo arm.urdf | give the .yaml that 'robotid init
explain F9999 | use one of
rollout log.csv folder | {NO_PARAMETERS}
rollout log.csv | required: results
demo lots.yaml | did you mean
demo lost.yaml | no such file
demo joint.yaml | did you mean 'joint_1'?
doctor -c amr.yaml | did you mean 'arm.yaml'?
doctor --duration long | must be a number
identify raw.csv -c arm.yaml | export it again
identify raw.npz -c arm.yaml | export it again
identify raw.parquet -c arm.yaml | export it again
identify raw.mat -c arm.yaml | export it again
identify zero.mat -c arm.yaml | export it again
identify log.zip -c arm.yaml | unpack it
identify loop.csv -c arm.yaml | it is a link to a file that is missing
identify log.csv ./log.csv -c arm.yaml | give each recording once
init effort.urdf | is 'forty' in the robot description: it must be a number
identify raw.mcap -c arm.yaml | {NO_BAG}
identify empty.mcap -c arm.yaml | record again
identify empty.npz -c arm.yaml | record again
identify short.csv -c arm.yaml | record or choose at least 0.5 s
identify one.csv -c arm.yaml | name it with --columns
identify huge.csv -c arm.yaml | give their unit
identify same.csv -c arm.yaml | give those that were measured
identify log.csv --urdf raw.urdf | {NO_TEXT}
init empty.urdf | is empty: give the right file
identify log.csv --urdf page.urdf | give a URDF, which has <robot>
identify log.csv --urdf number.urdf | must be a number of at least 0
identify log.csv --urdf turned.urdf | correct lower and upper
identify log.csv --urdf gone.xacro | gone.xml'): correct it
identify log.csv -c raw.yaml | {NO_TEXT}
identify log.csv -c folder.yaml | is a folder, not a regular file: give a file
identify log.csv -c package.yaml | install it or source its workspace
identify log.csv -c gain.yaml | give the torque per unit of effort
identify log.csv -c nan.yaml | must be a number, not NaN
identify log.csv -c arm.yaml --joints joint_1,joint_1 | write joint_1,joint_2
identify log.csv -c arm.yaml -o /dev/null/x | is a file, not a folder: name another one
identify log.csv -c arm.yaml -o kept | {THERE}
identify log.csv -c arm.yaml --columns effort=current{i} | correct --columns
identify log.csv -c arm.yaml --effort-topic /currents | use one of /joint_states
identify log.csv -c arm.yaml --calibration gone.json | add it, or leave them out
identify log.csv -c arm.yaml --known-mass 1 | write KG@LINK
identify log.csv -c arm.yaml --validation raw.mcap | {NO_BAG}
validate log.csv --parameters raw | {NO_TEXT}
report raw | {NO_TEXT}
compare kept raw | {OTHER_PARAMETERS}
export raw --format urdf | {NO_TEXT}
inspect empty.mcap | record again
payload raw.mcap log.csv --urdf arm.urdf | {NO_BAG}
payload kept.yaml --restore | give one of robotid payload
payload log.csv other.csv --urdf arm.urdf -o /dev/null/x.yaml | is a file, not a folder
design inf.yaml | 'excitation.period' must be finite
design frame.yaml | did you mean 'tool0'?
design arm.yaml -o /dev/null/x.yaml | is a file, not a folder: name another one
design arm.yaml --seed -1 | must be zero or more
init raw.xacro | {NO_TEXT}
init package.xacro | beside its own, or source their workspace
init gone.xacro | gone.xml'): correct it
init argument.xacro | add x:=VALUE
init macro.xacro | unknown macro name: xacro:arm
init bare.urdf --mass -3 | must be a number above zero
init arm.urdf -o new.yaml --tip base_link | name another one by --tip
init arm.urdf -o /dev/null/new.yaml | is a file, not a folder: name another one
demo arm.yaml -o kept.yaml | is a file, not a folder: name another one
demo raw.yaml | {NO_TEXT}
rollout log.csv kept --draws some | invalid int value: 'some'
rollout log.csv kept --bound 0 | must be a number above zero
fleet run folder -c arm.yaml -o store | name bags, folders of bags
fleet run --manifest gone.csv -c arm.yaml -o store | no such file or directory
fleet run --manifest raw.csv -c arm.yaml -o store | {NO_TEXT}
identify pointer.csv -c arm.yaml | run 'git lfs pull'
identify pointer.mcap -c arm.yaml | run 'git lfs pull'
identify log.csv --urdf pointer.urdf | run 'git lfs pull'
identify https://example.org/log.csv -c arm.yaml | download it
identify log.csv --urdf https://example.org/arm.urdf | download it
identify log.csv -c arm.yaml --validation ./log.csv | fit a part of it by --part
payload log.csv ./log.csv --urdf arm.urdf | without the body, and one with it
validate log.csv --parameters kept --max-residual -1 | must be a number above zero
rollout log.csv kept --draws -1 | give 0 or more
init closed.urdf | a tree without a loop
init table.urdf | (base_link, table)
init arm.urdf -o new.txt | let its name end in .yaml
init arm.urdf -o new.yaml --mass 5 | leave out --mass
identify log.csv -c ratio.yaml | needs one ratio per joint (2)
identify log.csv -c gravity.yaml | must have three numbers
identify log.csv -c locked.yaml | did you mean 'joint_2'?
identify log.csv -c both.yaml | take it out of one list
identify log.csv -c mass.yaml | 'robot.mass' must be finite
identify log.csv -c arm.yaml --part 0:0.5 --from 1 | give either --part
identify log.csv -c arm.yaml --part 0:0 | write 0:0.5 for the first half
identify log.csv -c arm.yaml --part nan:1 | write 0:0.5 for the first half
identify log.csv -c pipe.csv | is a device or a pipe
identify pipe.csv -c arm.yaml | is a device or a pipe
identify log.csv --urdf pipe.csv | is a device or a pipe
identify /dev/zero -c arm.yaml | is a device or a pipe
identify log.csv --urdf /dev/zero | is a device or a pipe
identify - -c arm.yaml | give a rosbag2 folder or file
identify six.csv -c arm.yaml | choose among them
identify untimed.csv -c arm.yaml | or give the rate in Hz with --rate
identify nan.csv -c arm.yaml | has no effort of any joint
identify half.npz -c arm.yaml | copy or export it again
identify folder.csv -c arm.yaml | give another folder
identify data -c arm.yaml --method commands | download the episodes
identify log.csv --urdf floats.urdf | make it fixed
identify log.csv --urdf ball.urdf | make it one of revolute
identify log.csv --urdf axis.urdf | it must be three numbers
identify log.csv --urdf child.urdf | a tree without a loop
identify log.csv --urdf entity.urdf | repair it
validate six.csv --parameters lost | {NO_PARAMETERS}
design spring.yaml | did you mean 'joint_2'?
design room.yaml | correct lower and upper
design unit.yaml | must be of type float, not '5 s'
design python.yaml | correct it, or give another file
design start.yaml | must be a number, not NaN
design yes.yaml | must be of type int, not True
design part.yaml | must be of type int, not 2.5
design margin.yaml | it must be at least 0.0
design order.yaml | it must be at most 100
design pair.yaml | is not a pair 'link_a/link_b'
design flat.yaml | needs 3 finite numbers
design alias.yaml | write out what the alias *a stands for
design deep.yaml | it is nested too deeply
design latin.yaml | {NO_TEXT}
design open.yaml | is not valid YAML
design empty.urdf | it must hold '/**:'
demo drive.yaml | use one of effort, velocity, position
demo loop.yaml | must be of type float, not 'strong'
demo fault.yaml | use one of '', stale_joint_states
init zero.xacro | (division by zero): correct it
init undefined.xacro | name 'foo' is not defined
init syntax.xacro | invalid syntax
init opens.xacro | name 'open' is not defined
init calls.xacro | a macro calls itself
init itself.xacro | a file includes itself
init lacks.xacro | Undefined parameters [a]
init yaml.xacro | there is no 'nowhere.yaml'
init environment.xacro | 'NOWHERE_AT_ALL' is not set
init perhaps.xacro | is not a boolean expression
live arm.yaml --port 80x | invalid int value: '80x'
""".strip().splitlines()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Write a log, a description and a configuration, and what is wrong about others."""
    folder = tmp_path_factory.mktemp('wrong')
    text = URDF.read_text()
    time = np.arange(400) / 200.0
    table = np.column_stack([time, *(np.sin(w * time) for w in (3, 2, 5, 4))])
    for name, columns, scale in (
        ('log', f'{COLUMNS},{EFFORTS}', [1, 1, 1, 1, 1]),
        ('other', f'{COLUMNS},{EFFORTS}', [1, 1, 1, 1, 2]),
        ('zero', f'{COLUMNS},{EFFORTS}', [1, 0, 0, 1, 1]),
        ('noeffort', COLUMNS, [1, 1, 1]),
        ('one', COLUMNS[:16], [1, 1]),
        ('huge', f'{COLUMNS},{EFFORTS}', [1, *[1e300] * 4]),
        ('nan', f'{COLUMNS},{EFFORTS}', [1, 1, 1, np.nan, np.nan]),
    ):
        np.savetxt(
            folder / f'{name}.csv', table[:, : len(scale)] * scale, delimiter=',', comments='',
            header=f'time,{columns}',
        )  # fmt: skip
    texts = {
        **{f'{name}.yaml': f'{HEAD}{end}\n' for name, end in CONFIGURATIONS.items()},
        **{f'{k}.urdf': text.replace(*pair, 1) for k, pair in DESCRIPTIONS.items()},
        'lost.yaml': HEAD.replace('arm.urdf', 'nowhere.urdf') + '}\n',
        'nothing.yaml': HEAD.replace('urdf: arm.urdf', 'name: x') + '}\n',
        'again.yaml': f'{HEAD}}}\n    robot: {{}}\n',
        'folder.yaml': HEAD.replace('arm.urdf', 'folder') + '}\n',
        'package.yaml': HEAD.replace('arm.urdf', 'package://nowhere/x.urdf') + '}\n',
        'number.yaml': HEAD.replace('arm.urdf', '5') + '}\n',
        'arm.urdf': text,
        'arm_description.urdf': text,
        'head.csv': f'time,{COLUMNS},{EFFORTS}\n',
        'still.csv': f'time,{COLUMNS},{EFFORTS}\n' + '1,1,2,3,4\n' * 200,
        'bare.urdf': re.sub('<inertial>.*?</inertial>', '', text, flags=re.DOTALL),
        'page.urdf': '<html></html>',
        'still.urdf': '<robot name="x"><link name="a"/></robot>',
        'sdf.urdf': '<sdf version="1.6"/>',
        'kept.yaml': 'precious: 1\n',
        'kept.html': 'precious',
        'tabs.yaml': '\tx: 1\n',
        'list.yaml': '- 1\n',
        **{f'empty.{kind}': '' for kind in ('csv', 'mcap', 'npz', 'urdf')},
        'short.csv': f'time,{COLUMNS},{EFFORTS}\n' + '0,1,2,3,4\n0.1,2,3,4,5\n',
        'argument.xacro': f'{XACRO}</robot>',
        'macro.xacro': XACRO.replace('$(arg x)', 'x') + '<xacro:arm/></robot>',
        **{
            f'pointer.{kind}': f'{LFS_POINTER.decode()}.com/spec/v1'
            for kind in ('csv', 'mcap', 'urdf')
        },
        'words.csv': 'a,b\nx,y\n',
        **{
            f'{k}.xacro': f'{XACRO}{x}</robot>'.replace('$(arg x)', 'x') for k, x in XACROS.items()
        },
        'alias.yaml': 'a: &a [x, x]\nb: [*a, *a]\n',
        'deep.yaml': '[' * 5000,
        'open.yaml': HEAD,
        'data/meta/info.json': '{"codebase_version": "v2.1", ',
        'kept/parameters.yaml': 'a: 1\n',
    }
    for name, file in {'gone': 'gone.xml', 'package': '$(find nowhere)/x.xml'}.items():
        include = f'<xacro:include filename="{file}"/></robot>'
        texts[f'{name}.xacro'] = XACRO.replace('$(arg x)', 'x') + include
    same = np.column_stack([table[:, :3], table[:, 1:3]])
    head = f'time,{COLUMNS},{EFFORTS}'
    np.savetxt(folder / 'same.csv', same, delimiter=',', comments='', header=head)
    quantities = ('position', 'effort')
    head = ','.join(f'a{k}_{quantity}' for quantity in quantities for k in range(6))
    six = np.column_stack([time, *[table[:, 1]] * 6, *[table[:, 3]] * 6])
    for name, rows, names in (
        ('six', six, f'time,{head}'),
        ('untimed', table[:, 1:], f'{COLUMNS},{EFFORTS}'),
    ):
        np.savetxt(folder / f'{name}.csv', rows, delimiter=',', comments='', header=names)
    np.savez(folder / 'half.npz', time=time, position=table[:, 1:3], effort=table[:, 3:])
    whole = (folder / 'half.npz').read_bytes()
    (folder / 'half.npz').write_bytes(whole[: len(whole) // 2])
    (folder / 'latin.yaml').write_bytes(f'{HEAD}, name: Größe}}\n'.encode('latin-1'))
    os.mkfifo(folder / 'pipe.csv')
    (folder / 'folder.csv').mkdir()
    (folder / 'data' / 'meta').mkdir(parents=True)
    (folder / 'zero.mat').write_bytes(bytes(1 << 16))
    (folder / 'loop.csv').symlink_to('loop.csv')
    with zipfile.ZipFile(folder / 'log.zip', 'w') as archive:
        archive.writestr('log.txt', 'time')
    (folder / 'raw').mkdir()
    for kind in ('csv', 'npz', 'parquet', 'mat', 'mcap', 'urdf', 'xacro', 'yaml'):
        (folder / f'raw.{kind}').write_bytes(RAW)
    (folder / 'raw' / 'parameters.yaml').write_bytes(RAW)
    (folder / 'kept').mkdir()
    (folder / 'folder').mkdir()
    (folder / 'wide.urdf').write_bytes(text.encode('utf-16'))
    for name, content in texts.items():
        (folder / name).write_text(content)
    return folder


def contents(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob('*')}


@pytest.mark.parametrize('line', WRONG_USES)
def test_a_wrong_use_is_one_sentence_with_the_remedy(folder, monkeypatch, capfd, line):
    monkeypatch.chdir(folder)
    before = contents(folder)
    command, remedy = line.split(' | ')
    code = main(shlex.split(command))
    out, err = capfd.readouterr()
    assert code in (1, 2) and out == ''
    assert re.fullmatch(r'robotid: [^\n]+\n', err), err
    assert remedy.format(**globals()) in err, err
    assert 'a bug' not in err and 'Traceback' not in err
    assert contents(folder) == before


def test_there_are_enough_of_them():
    assert len(set(WRONG_USES)) >= 264
