"""Tables of any form are read rightly, or refused with what their columns look like."""

import json
import re

import numpy as np
import pytest
from scipy.io import savemat

from robotid_ros.exceptions import RecordingError
from robotid_ros.files.formats.open_table import open_table
from robotid_ros.files.formats.read_options import ReadOptions

from .strange import (
    COUNT,
    CURRENT,
    DDQ,
    DQ,
    JOINTS,
    lists,
    MODE,
    Q,
    RATE,
    REFERENCE,
    ROWS,
    stamp,
    TAU,
    TIME,
    turns,
    WARMTH,
)
from .tables import urdf

OPTIONS = ReadOptions(urdf=urdf(*JOINTS))
ZEROS = np.zeros_like(Q)


def check(path, effort=TAU, options=OPTIONS, velocity=None, rows=slice(None)):
    """Read a table and compare it with the truth."""
    found = open_table(path, options)
    assert found.joints == JOINTS
    np.testing.assert_allclose((found.stamp - found.stamp[0]) * 1e-9, TIME, atol=1e-6)
    np.testing.assert_allclose(found.position[rows], Q[rows], atol=1e-8)
    np.testing.assert_allclose(found.effort[rows], effort[rows], atol=1e-6)
    if velocity is not None:
        np.testing.assert_allclose(found.velocity, DQ, atol=1e-7)


def matrix(path, *blocks):
    np.savetxt(path, np.column_stack(blocks), fmt='%.12g')
    return path


READ = {
    'without velocities': (TIME, Q, TAU),
    'velocities before the efforts': (TIME, Q, DQ, TAU),
    'velocities behind the efforts': (TIME, Q, TAU, DQ),
    'efforts first': (TIME, TAU, Q, DQ),
    'velocities first': (TIME, DQ, Q, TAU),
    'accelerations': (TIME, Q, DQ, DDQ, TAU),
    'a count of the rows before the times': (COUNT, TIME, Q, TAU),
    'joints in turn': (TIME, turns(Q, DQ, TAU)),
    'positions of an encoder': (TIME, np.round(Q, 9), TAU),
}


@pytest.mark.parametrize('blocks', READ.values(), ids=list(READ))
def test_columns_without_names_are_read_by_their_values(tmp_path, blocks):
    check(matrix(tmp_path / 'a.txt', *blocks))


def test_currents_without_names_are_efforts(tmp_path):
    check(matrix(tmp_path / 'a.txt', TIME, Q, DQ, CURRENT), CURRENT)


# Columns, what has to be said, and what the example may say beside the time.
QD = 'position=column2..column4 velocity=column5..column7 '
ASK = 'effort=FIRST..LAST'
BOTH = f'position=FIRST..LAST {ASK}'
REFUSED = {
    'torques first': ((TIME, TAU, Q), 'nothing proves which are positions and efforts', BOTH),
    'torques in turn': ((TIME, turns(Q, TAU)), 'nothing proves', BOTH),
    'positions alone': ((TIME, Q), 'column2..column4: smooth', BOTH),
    'torques alone': ((TIME, TAU), 'give the folder', BOTH),
    'a reference': ((TIME, Q, REFERENCE, TAU), 'column5..column7: follows column2..column4', BOTH),
    'references': (
        (TIME, Q, DQ, REFERENCE, DQ, TAU),
        'column11..column13: derivative of column2..column4',
        f'position=FIRST..LAST velocity=column5..column7 {ASK}',
    ),
    'temperatures': (
        (TIME, Q, DQ, TAU, WARMTH),
        'which are the efforts (one of column8..column10, column11..column13)',
        QD + ASK,
    ),
    'torques and currents': (
        (TIME, Q, DQ, TAU, CURRENT),
        'which are the efforts (one of column8..column10, column11..column13)',
        QD + ASK,
    ),
    'a mode': ((TIME, MODE, Q, TAU), 'column2: few whole numbers from 0 to 2', BOTH),
    'a mode at the end': ((TIME, Q, TAU, MODE), 'column8: few whole numbers', BOTH),
    'another joint': ((TIME, Q, Q[:, :1], TAU, TAU[:, :1]), 'column5: follows column2', BOTH),
    'zeros between': ((TIME, Q, ZEROS, TAU), 'column5..column7: constant', BOTH),
    'no efforts': (
        (TIME, Q, DQ),
        'column5..column7: derivative of column2..column4): none of them can be efforts',
        None,
    ),
    'accelerations and no efforts': (
        (TIME, Q, DQ, DDQ),
        'column8..column10: derivative of column5..column7): none of them can be efforts',
        None,
    ),
    'accelerations first': ((TIME, DDQ, DQ, Q), 'none of them can be efforts', None),
    'efforts of zero': ((TIME, Q, DQ, ZEROS), 'none of them can be efforts', None),
}


@pytest.mark.parametrize(('blocks', 'words', 'example'), REFUSED.values(), ids=list(REFUSED))
def test_what_values_do_not_prove_is_asked_for(tmp_path, blocks, words, example):
    with pytest.raises(RecordingError, match='without names') as caught:
        open_table(matrix(tmp_path / 'a.txt', *blocks), OPTIONS)
    text = str(caught.value)
    assert words in text and 'column1: grows like a clock from 0 to 5.995' in text
    assert '\n' not in text
    given = re.search(r"--columns 'time=column1 (.*?)'", text)
    assert (given and given[1]) == example


def test_without_times_blocks_count_from_the_first_column(tmp_path):
    path = matrix(tmp_path / 'a.txt', Q, DQ, TAU)
    check(path, options=ReadOptions(urdf=OPTIONS.urdf, rate=RATE))


COLUMNS = {'time': 'column1', 'position': 'column2..column4', 'velocity': 'column5..column7'}
DERIVED = {
    'velocities': ((DQ,), 'column5..column7', 'derivatives of the positions'),
    'positions': ((TAU,), 'column2..column4', 'the positions'),
    'accelerations': ((DDQ,), 'column8..column10', 'the accelerations'),
    'velocities of motors': ((120.0 * DQ,), 'column8..column10', 'derivatives of the positions'),
    'one velocity': ((TAU,), 'column8,column6,column10', 'of b are the derivatives'),
}


@pytest.mark.parametrize(('more', 'effort', 'words'), DERIVED.values(), ids=list(DERIVED))
def test_efforts_that_derive_from_the_motion_are_refused(tmp_path, more, effort, words):
    path = matrix(tmp_path / 'a.txt', TIME, Q, DQ, *more)
    given = tuple((COLUMNS | {'effort': effort}).items())
    with pytest.raises(RecordingError, match=rf'{effort}: the efforts .*{words}.* no torques'):
        open_table(path, ReadOptions(urdf=OPTIONS.urdf, columns=given))


def csv(path, wrong):
    names = ['t', *(f'{word}{k}' for word in ('q', 'dq', 'tau') for k in (1, 2, 3))]
    values = np.column_stack([TIME, Q, DQ, wrong])
    np.savetxt(path, values, delimiter=',', header=','.join(names), comments='')


def npz(path, wrong):
    np.savez(path, t=TIME, q=Q, dq=DQ, tau=wrong)


def mat(path, wrong):
    savemat(path, {'log': {'t': TIME, 'q': Q, 'dq': DQ, 'tau': wrong}})


def as_json(path, wrong):
    content = {'t': TIME, 'q': Q, 'tau': wrong}
    path.write_text(json.dumps({name: lists(values) for name, values in content.items()}))


@pytest.mark.parametrize('write', [csv, npz, mat, as_json], ids=lambda write: write.__name__)
@pytest.mark.parametrize('wrong', [DQ, np.degrees(Q), DDQ], ids=['dq', 'q', 'ddq'])
def test_names_prove_no_torques(tmp_path, write, wrong):
    path = tmp_path / f'a.{write.__name__.removeprefix("as_")}'
    write(path, TAU)
    check(path)
    write(path, wrong)
    with pytest.raises(RecordingError, match=r'the efforts of a, b, c are .* no torques'):
        open_table(path, OPTIONS)


RECORDS = [{'t': t, 'q': q, 'dq': dq, 'tau': tau} for t, q, dq, tau in ROWS]
WHOLE = {'t': lists(TIME), 'q': lists(Q), 'tau': lists(TAU)}
JSON_READ = {
    'records': RECORDS,
    'records under keys': {'robot': 'arm', 'log': {'samples': RECORDS}},
    'signals': WHOLE,
    'signals of each joint': {
        't': lists(TIME),
        'joints': {
            name: {'q': lists(Q[:, k]), 'tau': lists(TAU[:, k])} for k, name in enumerate(JOINTS)
        },
    },
    'a list of joints': {
        't': lists(TIME),
        'joints': [
            {'name': name, 'q': lists(Q[:, k]), 'tau': lists(TAU[:, k])}
            for k, name in enumerate(JOINTS)
        ],
    },
    'joints first': {'t': lists(TIME), 'q': lists(Q.T), 'tau': lists(TAU.T)},
    'stamps of messages': [
        {'header': {'stamp': stamp(t)}, 'name': JOINTS, 'position': q, 'effort': tau}
        for t, q, _, tau in ROWS
    ],
    'stamps that are words': [
        {'time': {'secs': str(100 + int(t)), 'nsecs': str(round(t % 1 * 1e9))}, 'q': q, 'tau': tau}
        for t, q, _, tau in ROWS
    ],
    'joints in records': [
        {
            't': t,
            'joints': [
                {'name': name, 'position': q[k], 'effort': tau[k]} for k, name in enumerate(JOINTS)
            ],
        }
        for t, q, _, tau in ROWS
    ],
}


@pytest.mark.parametrize('content', JSON_READ.values(), ids=list(JSON_READ))
def test_json_of_many_forms_is_read(tmp_path, content):
    path = tmp_path / 'a.json'
    path.write_text(json.dumps(content))
    check(path)


# Every third row as records in records, and whole signals of two trials.
THREES = [ROWS[k : k + 3] for k in range(0, len(ROWS), 3)]
FLAT = [[t, *q, *dq, *tau] for t, q, dq, tau in ROWS]
JSON_REFUSED = {
    'a list of stamps beside signals': (
        {'stamp': [stamp(t) for t in lists(TIME)], 'q': lists(Q), 'tau': lists(TAU)},
        'no column that looks like position',
    ),
    'rows': (FLAT, 'a list of 1200, each a list of 10, each a number, no table of numbers'),
    'a data frame by columns': (
        {
            f'q{k}': dict(zip(map(str, range(1200)), column, strict=True))
            for k, column in enumerate(zip(*FLAT, strict=True))
        },
        'no table of numbers: give one record per sample, or one list per signal',
    ),
    'records of two topics': (
        {
            'pos': [{'t': t, 'q': q} for t, q, _, _ in ROWS],
            'eff': [{'t': t, 'tau': tau} for t, _, _, tau in ROWS],
        },
        'holds {pos: a list of 1200, each .*no table of numbers: give one record per sample',
    ),
    'samples in records': (
        [
            {'t': rows[0][0], 'samples': [{'t': t, 'q': q, 'tau': tau} for t, q, _, tau in rows]}
            for rows in THREES
        ],
        'position in several arrays .*samples.0.q, samples.1.q, samples.2.q',
    ),
    'samples of one joint in records': (
        [
            {
                't': rows[0][0],
                'samples': [{'position': q[0], 'torque': tau[0]} for _, q, _, tau in rows],
            }
            for rows in THREES
        ],
        'successive samples of one signal, not joints',
    ),
    'batches': (
        [
            {
                'time': rows[0][0],
                'position': [row[1][0] for row in rows],
                'effort': [row[3][0] for row in rows],
            }
            for rows in THREES
        ],
        'successive samples of one signal, not joints',
    ),
    'batches, joints first': (
        [
            {
                'time': rows[0][0],
                'position': lists(np.transpose([row[1] for row in rows])),
                'effort': lists(np.transpose([row[3] for row in rows])),
            }
            for rows in THREES
        ],
        'position in several arrays',
    ),
    'values with their times': (
        {
            't': lists(TIME),
            **{
                f'{word}_{name}': lists(np.column_stack([TIME, values[:, k]]))
                for word, values in (('q', Q), ('tau', TAU))
                for k, name in enumerate(JOINTS)
            },
        },
        'position in several arrays .*q_a, q_b, q_c',
    ),
    'pairs': (
        [{'t': t, 'q': [[x, 0.0] for x in q], 'tau': tau} for t, q, _, tau in ROWS],
        'position in several arrays',
    ),
    'trials': (
        {'trials': [WHOLE, WHOLE]},
        'position in several arrays .*trials.0.q, trials.1.q',
    ),
    'trials of records': (
        [RECORDS[:600], RECORDS[600:]],
        'a list of 2, each a list of 600, each {t: a number, q: a list of 3',
    ),
    'trials of signals': (
        {'t': lists(TIME[:600]), 'q': lists(Q.reshape(2, 600, 3)), 'tau': lists(TAU[:600])},
        r't: grows like a clock from 0 to 2.995.* passed over: q \(2, 600, 3\)',
    ),
    'states of three lists': (
        [{'t': t, 'state': [q, dq, tau]} for t, q, dq, tau in ROWS],
        r'state.0\[0:3\]: smooth.* state.1\[0:3\]: derivative of state.0\[0:3\]',
    ),
    'states of one list': (
        [{'t': t, 'state': [*q, *dq, *tau]} for t, q, dq, tau in ROWS],
        r'state\[0:3\]: smooth.* state\[3:6\]: derivative of state\[0:3\]',
    ),
    'states of each joint': (
        [
            {'t': t, 'joints': {n: [q[k], dq[k], tau[k]] for k, n in enumerate(JOINTS)}}
            for t, q, dq, tau in ROWS
        ],
        r'joints.a\[1:2\]: derivative of joints.a\[0:1\]',
    ),
    'rows of a key': (
        {'fields': 't q dq tau', 'rows': FLAT},
        r'rows\[0:1\]: grows like a clock.* rows\[4:7\]: derivative of rows\[1:4\]',
    ),
    'no times': ({'q': lists(Q), 'tau': lists(TAU)}, r'looks like time .* q\[0:3\]: smooth'),
    'times of each joint': (
        [{'time': [t] * 3, 'q': q, 'tau': tau} for t, q, _, tau in ROWS],
        r'looks like time .*time\[0:3\]: grows like a clock',
    ),
    'torques alone': (
        {'t': lists(TIME), 'tau': lists(TAU)},
        r'looks like position .*t: grows like a clock .*tau\[',
    ),
    'texts': ({'a': 'b', 'c': ['d', 'e']}, 'holds {a: a text, c: a list of 2, each a text}, no'),
    'nothing': ([], 'holds a list of 0, no table'),
}


@pytest.mark.parametrize(('content', 'words'), JSON_REFUSED.values(), ids=list(JSON_REFUSED))
def test_json_that_is_not_understood_is_shown(tmp_path, content, words):
    path = tmp_path / 'a.json'
    path.write_text(json.dumps(content))
    with pytest.raises(RecordingError, match=words) as caught:
        open_table(path, OPTIONS)
    assert '\n' not in str(caught.value) and len(str(caught.value)) < 1500


def test_what_is_asked_for_can_be_given(tmp_path):
    """The example's parts, with the efforts that it asks for, read the table."""
    path = matrix(tmp_path / 'a.txt', TIME, Q, DQ, CURRENT, TAU)
    with pytest.raises(RecordingError) as caught:
        open_table(path, OPTIONS)
    example = re.search(r"--columns '(.*?)'", str(caught.value))[1]
    given = dict(part.split('=') for part in example.split())
    assert given.pop('effort') == 'FIRST..LAST'
    columns = tuple((given | {'effort': 'column11..column13'}).items())
    check(path, options=ReadOptions(urdf=OPTIONS.urdf, columns=columns), velocity=DQ)
