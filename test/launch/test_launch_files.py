"""Launch files: every argument explains itself, wrong ones are refused, Ctrl-C ends everything."""

from collections.abc import Iterator
import os
from pathlib import Path
import runpy
import shutil
import signal
import subprocess

import pytest

launch_ros = pytest.importorskip('launch_ros', reason='launch is not on PyPI: tested with ROS 2')

from ament_index_python.packages import get_package_prefix, PackageNotFoundError  # noqa: E402
from launch import LaunchContext, LaunchDescription  # noqa: E402
from launch.actions import ExecuteProcess, OpaqueFunction, Shutdown  # noqa: E402
from launch.events.process import ProcessExited  # noqa: E402
from launch.launch_description_sources import get_launch_description_from_python_launch_file  # noqa: E402
from launch.utilities import perform_substitutions  # noqa: E402
from launch_ros.utilities import evaluate_parameters  # noqa: E402
import rclpy  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.node import Node  # noqa: E402
from waiting import PATIENCE, wait_until  # noqa: E402
import yaml  # noqa: E402

from robotid_ros.nodes.common.launch_files import FOXGLOVE, view_actions  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / 'launch'
CONFIG = FOLDER.parent / 'config'
SESSION = ('identification', 'recorder', 'excitation')


def described(name: str) -> LaunchDescription:
    return get_launch_description_from_python_launch_file(str(FOLDER / name))


def arguments(name: str) -> dict[str, str | None]:
    """Names and defaults of the arguments, those of included files among them."""
    return {
        a.name: a.default_value and perform_substitutions(LaunchContext(), a.default_value)
        for a in described(name).get_launch_arguments()
        if a.name != 'config'
    }


@pytest.mark.parametrize('name', ['simulation.launch.py', 'identify.launch.py'])
def test_arguments_explain_themselves(name: str) -> None:
    for argument in described(name).get_launch_arguments():
        assert argument.description != 'no description given', argument.name


def test_defaults_are_safe() -> None:
    assert arguments('identify.launch.py')['auto_start'] == 'false'
    assert arguments('identify.launch.py')['use_sim_time'] == 'false'
    for view in ('plotjuggler', 'foxglove'):
        assert arguments('identify.launch.py')[view] == 'false'
    assert arguments('identify.launch.py')['namespace'] == ''
    assert arguments('simulation.launch.py')['namespace'] == ''
    assert arguments('simulation.launch.py')['auto_start'] == 'true'
    assert arguments('simulation.launch.py')['real_time_factor'] == '1.0'


def stand_in(prefix: Path, package: str, executable: str) -> None:
    """Let launch find an executable of a package that need not be installed here."""
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages' / package
    program = prefix / 'lib' / package / executable
    for path in (index, program):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)


def test_plotting_programs_get_a_layout_with_the_joints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, 'plotjuggler', 'plotjuggler')
    stand_in(tmp_path, 'foxglove_bridge', 'foxglove_bridge')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv('ROS_HOME', str(tmp_path / 'home'))
    (plotjuggler,) = view_actions('plotjuggler', CONFIG / 'scara.yaml', 'arm1')
    words = [perform_substitutions(LaunchContext(), word) for word in plotjuggler.cmd]
    layout = Path(words[words.index('--layout') + 1])
    assert '"/arm1/joint_states/joint_2/effort"' in layout.read_text()
    bridge, told = view_actions('foxglove', CONFIG / 'scara.yaml', controller='my_controller')
    assert bridge.node_package == 'foxglove_bridge'
    # Whoever could reach it, and call services, would move the robot.
    assert (FOXGLOVE['address'], FOXGLOVE['capabilities']) == ('127.0.0.1', ['connectionGraph'])
    (given,) = evaluate_parameters(LaunchContext(), bridge._Node__parameters)
    assert given == {**FOXGLOVE, 'capabilities': ('connectionGraph',)}
    sentence = perform_substitutions(LaunchContext(), told.msg)
    layout = Path(sentence.split("'")[1])
    assert '"/my_controller/controller_state.error.positions[1]"' in layout.read_text()
    bare = tmp_path / 'bare.yaml'
    bare.write_text('/**: {ros__parameters: {robot: {name: bare}}}')
    with pytest.raises(RuntimeError, match='needs a description'):
        view_actions('plotjuggler', bare)


def test_gazebo_goes_on_when_a_step_has_succeeded_and_ends_when_it_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('GZ_SIM_RESOURCE_PATH', 'before')
    module = runpy.run_path(str(FOLDER / 'gazebo.launch.py'))
    context = LaunchContext()
    config = yaml.safe_load((CONFIG / 'arm3.yaml').read_text())
    parameters = config['/**']['ros__parameters']
    parameters['excitation'].setdefault('workspace', {})['mesh_folders'] = [str(tmp_path)]
    parameters['robot']['urdf'] = str(FOLDER.parent / 'urdf' / 'arm3.urdf')
    (tmp_path / 'arm.yaml').write_text(yaml.safe_dump(config))
    context.launch_configurations['config'] = str(tmp_path / 'arm.yaml')
    for action in module['meshes'](context):
        action.execute(context)
    assert str(tmp_path) in os.environ['GZ_SIM_RESOURCE_PATH'].split(os.pathsep)
    process, following = ExecuteProcess(cmd=['true']), OpaqueFunction(function=lambda _: None)
    handler = module['after'](process, following, 'it failed').event_handler
    details = {'name': 'x', 'cmd': ['x'], 'cwd': None, 'env': None, 'pid': 1}
    ends = [ProcessExited(action=process, returncode=code, **details) for code in (0, 1)]
    (good,), (said, bad) = (handler.handle(event, context) or () for event in ends)
    assert good is following
    assert isinstance(bad, Shutdown)
    # Shutdown keeps its reason to itself.
    assert perform_substitutions(context, said.msg).startswith('it failed')


def test_gazebo_gets_signals_and_a_world_of_a_speed() -> None:
    """A shell between them would keep a signal of the launch to itself."""
    module = runpy.run_path(str(FOLDER / 'gazebo.launch.py'))
    context = LaunchContext()
    given = {'gz_args': '-s -r', 'real_time_factor': '0.25', 'config': str(CONFIG / 'scara.yaml')}
    context.launch_configurations.update(given)
    (server,) = module['gazebo'](context)
    words = [perform_substitutions(context, word) for word in server.cmd]
    assert words[:4] == ['gz', 'sim', '-s', '-r']
    assert not server.shell
    # Gazebo's own gravity is 9.8.
    world = Path(words[4]).read_text()
    assert '<real_time_factor>0.25<' in world and '<gravity>0.0 0.0 -9.81<' in world
    context.launch_configurations['gz_args'] = 'mine.sdf'
    (server,) = module['gazebo'](context)
    assert [perform_substitutions(context, word) for word in server.cmd] == [
        'gz',
        'sim',
        'mine.sdf',
    ]


def test_a_process_that_never_ends_ends_the_launch() -> None:
    module = runpy.run_path(str(FOLDER / 'gazebo.launch.py'))
    process, context = ExecuteProcess(cmd=['sleep', '9']), LaunchContext()
    timer = module['within'](1.0, process, 'it hangs')
    (look,) = timer.actions
    assert any(isinstance(action, Shutdown) for action in look.execute(context))


def test_a_view_that_is_not_installed_is_said_before_anything_starts() -> None:
    with pytest.raises(RuntimeError, match=r'apt install ros-\w+-plotjuggler-ros'):
        view_actions('plotjuggler', CONFIG / 'scara.yaml')


@pytest.mark.parametrize(
    ('name', 'given', 'message'),
    [
        ('identify.launch.py', {'config': '/does/not/exist.yaml'}, 'does not exist'),
        ('simulation.launch.py', {'real_time_factor': 'fast'}, 'not a number'),
    ],
)
def test_wrong_arguments_are_refused(name: str, given: dict[str, str], message: str) -> None:
    context = LaunchContext()
    description = described(name)
    context.launch_configurations.update(given)
    with pytest.raises(RuntimeError, match=message):
        for entity in description.entities:
            if isinstance(entity, OpaqueFunction):
                entity.execute(context)
            else:
                entity.visit(context)


@pytest.fixture
def nodes(domain: int) -> Iterator[Node]:
    """See the ROS graph of the domain."""
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    node = Node('observer', context=context)
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def running(domain: int, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    if shutil.which('ros2') is None:
        pytest.skip('ros2 launch is not on PyPI: tested with ROS 2')
    try:
        get_package_prefix('robotid_ros')
    except (PackageNotFoundError, LookupError, OSError):
        pytest.skip('the package is not installed: build it with colcon and source the workspace')
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domain)}
    process = subprocess.Popen(
        [
            'ros2',
            'launch',
            str(FOLDER / 'simulation.launch.py'),
            'auto_start:=false',
            f'output_dir:={tmp_path}',
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'},
        start_new_session=True,
    )
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def members(group: int) -> list[str]:
    """Command lines of the processes of a group."""
    found = []
    for entry in Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == group:
                found.append((entry / 'cmdline').read_text().replace('\0', ' '))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return [line for line in found if line]


@pytest.mark.ros
@pytest.mark.slow
def test_interrupt_ends_every_process(running: subprocess.Popen[str], nodes: Node) -> None:
    def complete() -> bool:
        assert running.poll() is None, running.stdout and running.stdout.read()
        return {*SESSION, 'simulated_robot'} <= set(nodes.get_node_names())

    wait_until(complete, 'every node is there', nodes.get_node_names, period=0.2)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, output
    assert 'SIGTERM' not in output
    assert 'Traceback' not in output
    assert members(running.pid) == []
