"""Results of elastic robots: written and read back like those of rigid ones."""

import numpy as np

from robotid_ros.core.pipeline.identification import identify
from robotid_ros.files.collect_results import save
from robotid_ros.files.export.identified_urdf import identified_urdf
from robotid_ros.files.results_file import read_results

from .test_elastic_estimation import build, motion, recording, SETTINGS, truth


def test_springs_come_back_from_the_files(tmp_path):
    robot = build()
    chi = truth(robot.elastic)
    samples = motion(robot.elastic, chi)
    effort = np.hstack([samples.tau[:, 2:]] * 2)
    effort += 0.01 * np.random.default_rng(4).normal(size=effort.shape)
    measured = recording(samples, effort=effort)
    save(identify(measured, robot, SETTINGS), measured, tmp_path)
    results = read_results(tmp_path)
    found = {entry.name: entry for entry in results.base}
    assert abs(found['K1'].value / 20000.0 - 1.0) < 0.01
    assert found['K1'].unit == 'N·m/rad'
    assert found['K1'].joint == 'joint_1'
    assert [row.joint for row in results.identification] == list(robot.recorded_joints)
    assert list(results.consistent) == list(robot.joints)


def test_description_of_an_elastic_robot_is_that_of_its_links():
    robot = build()
    values = dict(zip((p.name for p in robot.parameters), robot.prior, strict=True))
    values['ZZ2'] += 0.1
    rigid = np.array([values[p.name] for p in robot.parameters])
    elastic = np.array([values.get(p.name, 2e4) for p in robot.elastic.parameters])
    text = identified_urdf(robot.elastic, elastic)
    assert text.count(', K 20000.0') == 2
    assert text.replace(', K 20000.0', '') == identified_urdf(robot, rigid)
