"""What holds for every verb, those to come included: its help, and its output."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len
from waiting import PATIENCE

from robotid_ros import __version__
from robotid_ros.cli.main import build_parser, VERBS
from robotid_ros.cli.shared_options import Outcome

from .conftest import unwrapped


def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Parsers of a parser's verbs, and of theirs."""
    found = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= {name: inner, **{f'{name} {k}': v for k, v in parsers(inner).items()}}
    return found


EVERY = pytest.mark.parametrize('verb', parsers(build_parser()))


def test_the_command_says_its_version(run):
    assert run('--version') == (0, f'robotid {__version__}\n', '')


@EVERY
def test_help_fits_a_terminal_and_ends_with_examples(run, monkeypatch, verb):
    monkeypatch.setenv('COLUMNS', '80')
    code, out, _ = run(*verb.split(), '--help')
    assert code == 0
    assert [line for line in out.splitlines() if cell_len(line) > 80] == []
    # What a verb can be told to do has its examples there.
    assert ' ' in verb or f'\nexamples:\n  robotid {verb}' in out


# Those that need no ROS; a report prints a path alone.
OFFLINE = (
    *('identify', 'validate', 'payload', 'report', 'inspect'),
    *('init', 'export', 'rollout', 'explain'),
)


@pytest.mark.parametrize('verb', VERBS)
def test_examples_can_be_typed(verb):
    """Their words are those of the parser: an example of an option that is gone is an error."""
    import shlex

    parser = build_parser()
    text = parsers(parser)[verb].epilog.replace('\\\n', ' ')
    lines = [line for line in text.splitlines() if line.startswith('  robotid ')]
    assert lines
    for line in lines:
        parser.parse_args(shlex.split(line, comments=True)[1:])


@EVERY
def test_every_verb_can_answer_in_json(verb):
    parser = parsers(build_parser())[verb]
    if not any(isinstance(a, argparse._SubParsersAction) for a in parser._actions):
        assert '--json' in parser.format_help()


@pytest.mark.parametrize('verb', VERBS)
def test_every_verb_reports_in_one_way(verb):
    """By an outcome, of which `main` makes output, errors and exit code."""
    run = importlib.import_module(f'robotid_ros.cli.{verb}').run
    assert run.__annotations__['return'] is Outcome


@pytest.fixture(scope='module')
def identified(tmp_path_factory, results_of_bag):
    return results_of_bag(tmp_path_factory.mktemp('identified') / 'results')


def answers(bag, loaded, identified, folder):
    """Arguments of each verb that needs no ROS, and names in its JSON."""
    urdf = identified / 'identified.urdf'
    return {
        'identify': ((bag, '-o', folder / 'again'), ('parameters', 'validation', 'verdict')),
        'validate': ((bag, '--parameters', identified), ('residuals', 'passed', 'verdict')),
        'payload': (
            (identified, loaded, '-o', folder / 'p.yaml'),
            ('frame', 'parameters', 'verdict'),
        ),
        'report': ((identified, '-o', folder / 'r.html'), ('report',)),
        'inspect': ((bag,), ('usable', 'verdict', 'timing')),
        'init': ((urdf, '-o', folder / 'i.yaml'), ('joints', 'tool', 'written')),
        'export': ((identified, '--format', 'csv', '-o', folder / 'e.csv'), ('written', 'notes')),
        'rollout': ((bag, identified, '--draws', 1), ('driven_by', 'rms', 'horizon')),
        'explain': (('effort_sign',), ('code', 'severity', 'seen', 'why', 'remedy')),
    }


@pytest.mark.parametrize('verb', OFFLINE)
def test_json_is_all_that_is_printed(run, bag, loaded, identified, tmp_path, verb):
    arguments, names = answers(bag, loaded, identified, tmp_path)[verb]
    code, out, err = run(verb, *arguments, '--json')
    assert (code, err) == (0, '')
    found = json.loads(out)
    assert set(names) <= set(found)


@pytest.mark.parametrize('verb', [verb for verb in OFFLINE if verb != 'report'])
def test_output_fits_a_terminal(run, bag, loaded, identified, tmp_path, verb):
    arguments, _ = answers(bag, loaded, identified, tmp_path)[verb]
    _, out, _ = run(verb, *arguments)
    # A path, or a line to paste, is one word whatever its length.
    pasted = re.compile(r'/|set_target_payload|setLoad|LOAD_DATA|SetTool|Payload')
    wide = [x for x in out.splitlines() if cell_len(x) > 80 and not pasted.search(x)]
    assert wide == []


@pytest.mark.usefixtures('without_bokeh')
def test_a_good_log_is_told_on_a_screen(run, bag, identified, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a user's path is short
    _, out, _ = run('identify', bag, '-o', 'x')
    end = r'\nverdict good\. .* error expected on other.*\.\nnext .*\nwritten .*\n$'
    assert re.search(end, unwrapped(out))
    # 15 lines and the tables; a path is a line of its own. That pages are missing is the test's.
    around = re.sub(r'(?m)^(joint|parameter) .*\n─+\n(?s:.*?)\n\n', '', out)
    assert re.findall('warning +(.*?) ', out) == ['F630']
    around = re.sub(r'(?m)^warning +F630.*\n( .*\n)*', '', around)
    assert len(around.splitlines()) <= 13
    _, out, _ = run('identify', bag, '-o', 'y', '--part', '0:1')
    end = r'\nverdict fair\. .* No other motion validates it.*\nnext Record another.*\nwritten'
    assert re.search(end, unwrapped(out))
    for word in ('residual', 'error', 'uncertainty'):
        assert run('explain', word)[1].startswith(word)
    _, out, _ = run('inspect', bag)
    assert re.search(r'\nidentification: yes\n', out)


@pytest.mark.usefixtures('without_bokeh')
def test_the_bar_names_the_steps_of_an_identification(run, bag, tmp_path, monkeypatch):
    from robotid_ros.cli.terminal import ProgressBar

    told = []
    monkeypatch.setattr(ProgressBar, 'step', lambda _, label: told.append(label))
    assert run('identify', bag, '-o', tmp_path / 'x')[0] == 0
    assert told[0] == 'reading' and told[-1] == 'writing the results'
    assert 'estimating' in told and len(told) == len(set(told)) == 8


@pytest.mark.usefixtures('without_bokeh')
def test_long_tables_are_shown_when_asked_for(run, bag, identified, tmp_path, monkeypatch):
    monkeypatch.setattr('robotid_ros.cli.results_text.FEW_PARAMETERS', 3)
    _, short, _ = run('identify', bag, '-o', tmp_path / 'x')
    assert 'Fc1' not in short and 'parameters known to' in short and '--all' in short
    _, long, _ = run('identify', bag, '-o', tmp_path / 'y', '--all')
    assert 'Fc1' in long and 'moving' in long


def test_the_shell_completes_verbs_and_options(tmp_path):
    """As bash does, by the variables and the file descriptor of argcomplete's protocol."""
    pytest.importorskip('argcomplete')

    def completions(line: str) -> set[str]:
        words = {'_ARGCOMPLETE': '1', 'COMP_LINE': line, 'COMP_POINT': str(len(line))}
        further = {'_ARGCOMPLETE_IFS': '\n', '_ARGCOMPLETE_STDOUT_FILENAME': tmp_path / 'found'}
        environment = {**os.environ, **words, **{k: str(v) for k, v in further.items()}}
        environment['PYTHONPATH'] = os.pathsep.join(sys.path)
        script = 'from robotid_ros.cli.main import main; main()'
        command = [sys.executable, '-c', script]
        subprocess.run(command, env=environment, check=True, timeout=PATIENCE)
        return {x.strip() for x in (tmp_path / 'found').read_text().split('\n')}

    assert {'identify', 'inspect', 'init'} <= completions('robotid i')
    assert {'--method', '--max-residual'} & completions('robotid identify --m') == {'--method'}
    assert 'mjcf' in completions('robotid export results --format m')
