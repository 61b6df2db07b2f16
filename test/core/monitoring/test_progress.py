"""A motion ends when enough is known: of noise more is learnt, of what the model lacks not."""

import dataclasses
import itertools

import numpy as np
import pytest

from robotid_ros.core.excitation.settings import Until
from robotid_ros.core.excitation.working_motion import SLOWEST, working_motion
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import regressor
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.pinocchio_model import body_frame
from robotid_ros.core.monitoring.progress import follow, Knowledge
from robotid_ros.core.payload.payload import payload_from_recordings
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.verdict import parameter_error
from robotid_ros.exceptions import ConfigurationError

SETTINGS = IdentificationSettings(model='plain', essential=False)
WLS = dataclasses.replace(SETTINGS, method='wls')


def followed(log, robot, first=8.0, step=1.0, until=None, settings=SETTINGS, carrier=None):
    edges = [0.0, *np.arange(first, log.time[-1] + 0.5, step)]
    parts = (log.between(a, b) for a, b in itertools.pairwise(edges))
    return list(follow(parts, robot, settings, until or Until(), carrier))


def progress(error, model=(0.0, 0.0), **sigma):
    error = np.array(error)
    return Knowledge(('a', 'b'), 10.0, error, 1.2 * error, np.array(model), sigma)


def test_more_motion_reduces_what_noise_leaves(robot, record):
    known = followed(record(duration=60.0, noise=0.05), robot, step=2.0)
    worst = [each.error[each.worst] for each in known]
    assert known[-1].time > 55.0 and np.all(np.diff([each.time for each in known]) > 0.0)
    # As time⁻½, few blocks of residuals aside, whose σ are wider.
    early, late = (np.median(part) for part in (worst[5:10], worst[-5:]))
    assert 0.4 < late / early < 0.85
    expected = known[8].error_after(known[-1].time - known[8].time)
    assert expected == pytest.approx(late, rel=0.35)
    assert all(np.all(each.highest > each.error) for each in known)


def test_the_error_is_that_of_the_verdict_and_of_the_truth(robot, truth, record):
    log = record(duration=30.0, noise=0.05)
    known = followed(log, robot, step=10.9)[-1]
    judged, _ = parameter_error(identify(log, robot, SETTINGS))
    np.testing.assert_allclose(known.error, judged, rtol=0.35)
    # Over draws of the noise, the actual error has the expected size.
    base, ratios = base_parameters(robot), []
    true = base.of(truth)
    q, dq, ddq, _ = working_motion(robot, *3 * [np.ones(3)])
    W = regressor(robot, q, dq, ddq, columns=base.columns)
    moving = np.abs(dq.T) > SLOWEST
    effort = np.linalg.norm(np.where(moving, W @ true, 0.0), axis=1)
    for seed in range(6):
        own = record(seed=seed, duration=20.0, noise=0.05)
        expected = followed(own, robot, 19.9)[0].error
        value = estimate_base_parameters(own, robot, base, WLS, str).estimate.value
        error = np.linalg.norm(np.where(moving, W @ (value - true), 0.0), axis=1) / effort
        ratios.append(error / expected)
    assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 1.3


def test_friction_that_is_chosen_costs_what_the_verdict_says(robot, record):
    """Columns that are shrunk have errors, too, which plain friction would not tell."""
    log, default = record(duration=30.0, noise=0.05), IdentificationSettings(essential=False)
    dq = np.gradient(log.position, log.time, axis=0)
    stribeck = 1.5 * np.exp(-np.abs(dq / 0.2)) * np.sign(dq)
    log = dataclasses.replace(log, effort=log.effort + stribeck)
    free = dataclasses.replace(robot, open_friction=(True,) * robot.n)
    known = followed(log, free, 29.9, settings=default)[0]
    judged, _ = parameter_error(identify(log, free, default))
    np.testing.assert_allclose(known.error, judged, rtol=0.35)
    more = known.error / followed(log, free, 29.9)[0].error
    assert more.min() > 1.0 and np.median(more) > 1.2  # at a joint, few kinds are open


def test_a_payload_is_known_as_its_recordings_tell(robot, truth, record):
    body, carrier = truth.copy(), body_frame(robot)
    body[robot.body_columns[carrier.link]] += (0.02, 0, 0, 0.02, 0, 0.02, 0.05, 0, 0.05, 0.8)
    empty, loaded = (record(seed, noise=0.05, of=of) for seed, of in enumerate((truth, body)))
    payload, _ = payload_from_recordings(empty, loaded, robot, SETTINGS, str)
    known = [followed(log, robot, 19.9, carrier=carrier)[0] for log in (empty, loaded)]
    sigma = np.array([each.sigma['mass'] for each in known])
    assert np.sqrt(np.mean(sigma**2)) == pytest.approx(payload.central_sigma[0], rel=0.35)
    assert abs(payload.mass - 0.8) < 4.0 * payload.central_sigma[0]
    assert known[1].enough(Until(sigma={'mass': 1.01 * sigma[1]}))
    assert not known[1].enough(Until(sigma={'mass': 0.99 * sigma[1]}))
    with pytest.raises(ConfigurationError, match=r"'M2' is no figure of a payload"):
        followed(loaded, robot, until=Until(sigma={'M2': 0.1}), carrier=carrier)


def test_what_the_model_lacks_is_told_and_not_awaited(robot, record):
    log = record(duration=30.0, noise=0.001)
    ripple = 0.15 * log.effort.std(axis=0) * np.sin(4.0 * log.position)
    rippled = dataclasses.replace(log, effort=log.effort + ripple)
    assert followed(log, robot, 29.9)[0].model.max() < 0.01
    assert 0.03 < followed(rippled, robot, 29.9)[0].model.max() < 0.11
    strict = Until(prediction=1e-6)
    assert progress([0.03, 0.01], (0.0, 0.1)).enough(strict)
    assert not progress([0.04, 0.01], (0.0, 0.1)).enough(strict)


def test_all_that_is_asked_for_has_to_be_known():
    known = progress([0.015, 0.01], M1=0.2, M2=0.01)
    assert known.enough(Until(prediction=0.02))
    assert not known.enough(Until(prediction=0.01))
    assert known.enough(Until(sigma={'M2': 0.02})) and known.enough(Until())
    assert not known.enough(Until(sigma={'M1': 0.02}))
    assert not known.enough(Until(sigma={'M3': 0.02}))
    assert not progress([0.015, 0.01], M1=np.nan).enough(Until(sigma={'M1': 0.02}))
    assert not known.enough(Until(prediction=0.01, sigma={'M2': 0.02}))
    # Nothing ends a motion before its time where no more is given.
    assert not Until(prediction=0.0, time=60.0).asks and Until(time=60.0).asks
    assert not progress([np.nan, 0.01]).enough(Until(prediction=0.02))
    assert not progress([np.inf, 0.01]).enough(Until(prediction=0.02))


def test_the_longest_time_is_whole_periods():
    assert Until().most_periods(3, 10.0) == 3
    assert [Until(time=t).most_periods(3, 10.0) for t in (5.0, 20.0, 69.9)] == [1, 2, 6]


def test_what_is_asked_for_must_be_there(robot, record):
    with pytest.raises(ConfigurationError, match=r"until\.sigma: 'M9' is no base parameter"):
        followed(record(), robot, until=Until(sigma={'M9': 0.1}))


def test_nothing_is_known_of_too_little_motion(robot, record):
    log = record(duration=20.0, noise=0.05)
    still = dataclasses.replace(log, position=np.ones_like(log.position), effort=log.effort)
    assert followed(still, robot) == []
    # A session may be stopped before anything is over.
    free = dataclasses.replace(robot, open_friction=(True,) * robot.n)
    assert list(follow(iter(()), free, IdentificationSettings(), Until())) == []
