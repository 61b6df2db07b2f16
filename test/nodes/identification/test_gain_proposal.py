"""Proposed gains: as parameters of the controller, and what is said of them."""

from dataclasses import replace

import pytest

from robotid_ros.core.verification.gains import GainProposal, JointGains
from robotid_ros.files.verification import gain_parameters, proposal_sentence

OLD, NEW = {'a': JointGains(1.0, 2.0, 3.0, 1.0)}, {'a': JointGains(2.0, 4.0, 4.0, 1.0)}
BETTER = GainProposal(OLD, NEW, (4.0, 1.0), (2.5, 0.9), (0.5,), True)


def test_parameters_are_named_as_the_controller_names_them():
    named = gain_parameters(OLD)
    assert named == {'gains.a.p': 1.0, 'gains.a.i': 2.0, 'gains.a.d': 3.0}


def test_better_gains_are_told_with_their_margins():
    said = '0.50 to 0.50 times the tracking error in a simulation, margins of 8.0 dB and 52°'
    assert proposal_sentence(BETTER) == said


@pytest.mark.parametrize('why', ['', 'margins', 'swings', 'saturates'])
def test_gains_that_cannot_be_better_are_told_with_the_reason(why: str):
    found = replace(BETTER, new=OLD, better=False, why=why)
    sentence = proposal_sentence(found)
    assert 'the gains in place (margins of 12.0 dB and 57°) are as good as can be had' in sentence
    assert ('0.50 times' in sentence) == (not why)


@pytest.mark.parametrize('margins', [(1.5, 1.0), (4.0, 0.5), (1.0, 0.0)])
@pytest.mark.parametrize('why', ['', 'margins'])
def test_gains_without_their_margins_are_not_praised(margins: tuple[float, float], why: str):
    found = replace(BETTER, new=OLD, margins=margins, better=False, why=why)
    sentence = proposal_sentence(found)
    assert 'stay: ' in sentence and 'good' not in sentence


def test_springs_are_the_reason_by_themselves():
    assert 'springs' in proposal_sentence(GainProposal(OLD, OLD, why='springs'))
