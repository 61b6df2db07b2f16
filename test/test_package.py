"""The architecture holds: imports run one way, the core knows no ROS, rosdep knows the rest."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import resources
from pathlib import Path
import re
import xml.etree.ElementTree as ElementTree

import pytest

from robotid_ros.core.findings import NAMES

PACKAGE = 'robotid_ros'
ROOT = Path(str(resources.files(PACKAGE)))
REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = sorted({*ROOT.rglob('*.py')} - {ROOT / '__init__.py'})
ROS = re.compile(
    r'(rclpy|rosidl_\w+|ament_\w+|launch\w*|\w+_msgs|\w+_interfaces|std_srvs|rosbags)$'
)

# From the bottom to the top: a module imports from its own layer and from those below it.
LAYERS = (
    *('exceptions', 'settings'),
    'core.findings',
    *('core.arrays', 'core.model'),
    *('core.excitation.settings', 'core.excitation.trajectory', 'core.excitation'),
    *('core.signals', 'core.identification_settings', 'core.regression', 'core.diagnostics'),
    *('core.parameters', 'core.replay', 'core.mixed', 'core.pipeline', 'core.verdict'),
    'core.payload',
    *('core.verification', 'core.monitoring', 'core.setup'),
    *('simulation_settings', 'plant', 'node_settings'),
    *(
        'files.atomic',
        'files.bounded',
        'files.yaml',
        'files.provenance',
        'files.text_template',
        'files.verification',
        'files.results',
        'files.verdict_text',
    ),
    *('files.robot_description', 'files.formats'),
    'files.trajectory_file',
    'files.bags',
    *('files.configuration', 'files.identification_input'),
    *('files.payload', 'files.export', 'files.rollouts', 'files.report'),
    *('files.configuration_text', 'files.view_layouts'),
    'files.collect_results',
    *('fleet.session', 'fleet.store'),
    *('fleet.pooling', 'fleet.run', 'fleet'),
    *('simulated_session', 'library'),
    *('entry', 'nodes.common', 'nodes.demo', 'nodes.recorder'),
    'nodes.excitation',
    *('nodes.feedforward', 'nodes.gravity_compensation', 'nodes.force_torque', 'nodes.live'),
    *('nodes.identification', 'nodes.simulated_robot', 'nodes.doctor', 'nodes.__main__', 'cli'),
)


def layer(name: str) -> int:
    """Place of a module in `LAYERS`; that of a package is its highest room's."""
    inside = [i for i, at in enumerate(LAYERS) if f'{at}.'.startswith(f'{name}.')]
    around = [i for i, at in enumerate(LAYERS) if f'{name}.'.startswith(f'{at}.')]
    assert inside or around, f'{name} is in no layer: add it to LAYERS'
    return max(inside) if inside else max(around, key=lambda i: len(LAYERS[i]))


def test_layers_are_of_modules_that_exist() -> None:
    paths = [ROOT.joinpath(*name.split('.')) for name in LAYERS]
    assert [
        path for path in paths if not (path.is_dir() or path.with_suffix('.py').is_file())
    ] == []


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT.parent / 'docs' / 'architecture.md').read_text()
    named = re.findall(r'`([a-z_/]+/[a-z_]+\.py)`', text)
    places = (ROOT, ROOT.parent)
    assert named and [n for n in named if not any((at / n).is_file() for at in places)] == []


def own_name(path: Path) -> str:
    """Return the dotted name of a module, without the package's."""
    return '.'.join(path.relative_to(ROOT).with_suffix('').parts).removesuffix('.__init__')


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of a module, the module first."""
    return [*ast.walk(ast.parse(path.read_text()))]


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import, wherever it stands in the file."""
    parents = path.relative_to(ROOT.parent).parts[:-1]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else ()
            stem = '.'.join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f'{stem}.{alias.name}') for alias in node.names)


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix('').parts[0]


def module_of(name: str) -> str:
    """Return the module, without the package's name, that an imported name is in."""
    parts = name.split('.')[1:]
    while parts and not ROOT.joinpath(*parts).with_suffix('.py').is_file():
        if ROOT.joinpath(*parts).is_dir():
            break
        parts.pop()
    return '.'.join(parts)


def own_imports(path: Path) -> list[tuple[int, str]]:
    """Line and module of imports from this package; its version is of no module."""
    found = (
        (line, name)
        for line, name in imported(path)
        if name.startswith(f'{PACKAGE}.') and name != f'{PACKAGE}.__version__'
    )
    return [(line, module_of(name)) for line, name in found]


@pytest.mark.parametrize('path', MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    own = own_name(path)
    for line, name in own_imports(path):
        assert layer(name) <= layer(own), f'{own}:{line} imports {name}, which is above it'


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts): {n for _, n in own_imports(path)}
        for path in MODULES
        if path.name != '__init__.py'
    }
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize('part', ['core', 'settings', 'exceptions', 'node_settings'])
def test_core_knows_no_ros(part: str) -> None:
    found = [
        f'{path.relative_to(ROOT)}:{line}: {name}'
        for path in MODULES
        if part_of(path) == part
        for line, name in imported(path)
        if ROS.match(name.split('.')[0])
    ]
    assert not found


# What users read: only there findings become text.
EDGES = (
    *('cli', 'nodes', 'library', 'core.findings'),
    *('files.report', 'files.export', 'files.payload', 'files.verdict_text'),
    *('files.configuration_text', 'files.results', 'files.trajectory_file'),
    *('fleet.session', 'fleet.report'),
)
TEXTS = {'render', 'seen_and_remedy', 'as_data', 'from_data'}


def test_only_edges_render_findings() -> None:
    found = [
        f'{path.relative_to(ROOT)}:{line} {name}'
        for path in MODULES
        for line, name in imported(path)
        if f'{PACKAGE}.core.findings' in name and name.rpartition('.')[2] in TEXTS
        if not any(f'{own_name(path)}.'.startswith(f'{edge}.') for edge in EDGES)
    ]
    assert not found


def test_nobody_takes_a_rendered_finding_apart() -> None:
    """No call that searches, splits or compares has a rendered text in it."""
    methods = {'startswith', 'endswith', 'split', 'partition', 'rpartition', 'find', 'index'}
    methods |= {'search', 'match', 'fullmatch', 'findall', 'sub'}
    found = []
    for path in MODULES:
        for node in nodes_of(path):
            looks = isinstance(node, ast.Compare) or (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in methods
            )
            if looks and any(
                isinstance(each, ast.Call) and getattr(each.func, 'id', '') in TEXTS
                for each in ast.walk(node)
            ):
                found.append(f'{path.relative_to(ROOT)}:{node.lineno}')
    assert not found


TAKES_APART = {
    *('startswith', 'endswith', 'split', 'splitlines', 'partition', 'rpartition', 'find', 'index'),
    *('replace', 'removeprefix', 'removesuffix', 'search', 'match', 'fullmatch', 'findall', 'sub'),
}


def reads_text_of_an_error(module: list[ast.AST]) -> Iterator[int]:
    """Lines that search, split or compare what an error says, or a name that holds it."""
    for function in module:
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = [*ast.walk(function)]
        errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
        if not errors:
            continue

        def is_text(node: ast.expr, errors: set[str] = errors) -> bool:
            """Whether it is str(error), one_line(error), f'{error}' or error.args."""
            if isinstance(node, ast.Call):
                name = getattr(node.func, 'id', '')
                inside = node.args if name in {'str', 'repr', 'one_line', 'reason_of'} else []
            elif isinstance(node, ast.FormattedValue | ast.Attribute):
                inside = [node.value] if getattr(node, 'attr', 'args') == 'args' else []
            else:
                return False
            return any(isinstance(each, ast.Name) and each.id in errors for each in inside)

        def has_text(node: ast.AST, texts: frozenset[str] = frozenset()) -> bool:
            parts = [*ast.walk(node)]
            names = {each.id for each in parts if isinstance(each, ast.Name)}
            return bool(names & texts) or any(map(is_text, parts))

        texts = frozenset(
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and has_text(node.value)
            if getattr(getattr(node.value, 'func', None), 'id', '') != 'finding'
            for target in node.targets
            if isinstance(target, ast.Name)
        )
        for node in nodes:
            if isinstance(node, ast.Compare):
                # Whether a message is the last one again is no decision on what it says.
                looks = isinstance(node.ops[0], ast.In | ast.NotIn) or any(
                    isinstance(each, ast.Constant) for each in (node.left, *node.comparators)
                )
            else:
                looks = getattr(getattr(node, 'func', None), 'attr', '') in TAKES_APART
            if looks and has_text(node, texts):
                yield node.lineno


def test_nobody_decides_on_what_an_error_says() -> None:
    found = [
        f'{path.relative_to(ROOT)}:{line}'
        for path in MODULES
        for line in reads_text_of_an_error(nodes_of(path))
    ]
    assert not found


@pytest.mark.parametrize('taken', ["'x' in str(error)", "f'{error}'.split()", "text == 'x'"])
def test_text_of_an_error_that_is_read_is_seen(taken: str) -> None:
    code = f'def f():\n try: g()\n except OSError as error:\n  text = str(error)\n  {taken}'
    assert [*reads_text_of_an_error([*ast.walk(ast.parse(code))])] == [5]


def test_findings_are_named_as_the_table_does() -> None:
    names = [
        (f'{path.relative_to(ROOT)}:{node.lineno}', node.args[0].value)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'finding'
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    assert len(names) > 100 and not [each for each in names if each[1] not in NAMES]
    table = ROOT / 'core' / 'findings.py'
    text = '\n'.join(path.read_text() for path in MODULES if path != table)
    own = 'of_earlier_version'  # of the table itself
    assert [name for name in NAMES if f"'{name}'" not in text] == [own]


# What is parsed, pickled, or a row of a template.
OF_ANYTHING = {'files.yaml', 'fleet.run', 'nodes.common.worker_process', 'fleet.report'}
MOST_PARAMETERS = 8


def test_functions_take_few_values_and_class_names_are_one_of_a_kind() -> None:
    many, names = [], Counter()
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                own = [each.arg for each in every if each.arg not in ('self', 'cls')]
                if len(own) > MOST_PARAMETERS:
                    many.append(f'{path.relative_to(ROOT)}:{node.lineno} {node.name} {own}')
    assert not many and not [name for name, count in names.items() if count > 1]


def test_no_tuple_of_anything_goes_between_stages() -> None:
    found = [
        f'{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}'
        for path in MODULES
        if own_name(path) not in OF_ANYTHING
        for node in nodes_of(path)
        if isinstance(node, ast.Subscript) and getattr(node.value, 'id', '') == 'tuple'
        if ast.unparse(node) == 'tuple[Any, ...]'
    ]
    assert not found


def test_only_nodes_and_demo_start_ros() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for _, name in imported(path)
        if name.split('.')[0] == 'rclpy' and part_of(path) not in ('nodes', 'plant')
    }
    assert found <= {'cli/demo.py'}


def test_plant_shares_nothing_with_the_identified_model() -> None:
    found = [
        name
        for path in MODULES
        if part_of(path) in ('plant', 'simulation_settings')
        for _, name in imported(path)
        if name.startswith((f'{PACKAGE}.core', 'pinocchio'))
    ]
    assert not found


def test_import_scanner_sees_relative_imports(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(globals(), 'ROOT', tmp_path / PACKAGE)
    module = tmp_path / PACKAGE / 'core' / 'model' / 'x.py'
    module.parent.mkdir(parents=True)
    module.write_text('def f():\n    from ...files import bags\n    from .robot import Robot\n')
    assert [name for _, name in imported(module)] == [
        f'{PACKAGE}.files.bags',
        f'{PACKAGE}.core.model.robot.Robot',
    ]


@pytest.mark.parametrize(
    'path', sorted((REPOSITORY / 'launch').glob('*.launch.py')), ids=lambda p: p.name
)
def test_launch_files_import_what_exists(path: Path) -> None:
    compile(path.read_text(), path, 'exec')
    ours = [name.rpartition('.') for _, name in imported(path) if name.startswith(f'{PACKAGE}.')]
    for module, _, name in ours:
        assert name in defined(ROOT.parent.joinpath(*module.split('.')).with_suffix('.py')), name


def defined(path: Path) -> set[str]:
    """Names that a module defines; it is not imported, as it may import `launch` itself."""
    names = set()
    for node in nodes_of(path)[0].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return names


def test_dependencies_are_declared_for_rosdep() -> None:
    manifest = ElementTree.parse(REPOSITORY / 'package.xml').getroot()
    declared = {d.text for d in manifest.findall('exec_depend')}
    used = {name.split('.')[0] for path in MODULES for _, name in imported(path)}
    ros = {name for name in used if ROS.match(name)} - {'rosbags'}
    assert ros <= declared
