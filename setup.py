"""Installed by colcon on a robot, by pip anywhere else."""

from glob import glob
from pathlib import Path
import xml.etree.ElementTree as ElementTree

from setuptools import find_packages, setup

manifest = ElementTree.parse(Path(__file__).parent / 'package.xml').getroot()
NAME = manifest.findtext('name')

NODES = ('simulated_robot', 'excitation', 'recorder', 'identification')


def shared(folder: str, pattern: str) -> tuple[str, list[str]]:
    """Files of a folder, for the package's share directory."""
    return f'share/{NAME}/{folder}', sorted(glob(f'{folder}/{pattern}'))


setup(
    name=NAME,
    version=manifest.findtext('version'),
    description=' '.join(manifest.findtext('description').split()),
    maintainer=manifest.find('maintainer').text,
    maintainer_email=manifest.find('maintainer').get('email'),
    license=manifest.findtext('license'),
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['py.typed', 'files/report/*.css']},
    python_requires='>=3.10',
    install_requires=[
        'setuptools',
        'clarabel>=0.9',
        'matplotlib',
        'mcap>=1.5',
        'numpy>=1.26',
        'PyYAML',
        'rosbags>=0.11',
        'scipy>=1.11',
    ],
    extras_require={
        # What rosdep brings on a robot, from PyPI.
        'pip': [
            'mujoco>=3.2',
            'pin>=3',
            'ros-jazzy-common-interfaces',
            'ros-jazzy-rclpy[fastrtps]',
        ],
        # Logs and robot descriptions of others: MATLAB 7.3 and HDF5, Parquet, xacro.
        'formats': ['h5py>=3.10', 'pyarrow>=14', 'xacro'],
        'test': [
            'h5py',
            'hypothesis',
            'pyarrow',
            'pytest',
            'pytest-timeout',
            'pytest-xdist',
            'xacro',
        ],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        shared('launch', '*.launch.py'),
        shared('config', '*.yaml'),
        shared('config/security', '*.xml'),
        shared('config/views', '*.rviz'),
        shared('config/trajectories', '*.yaml'),
        shared('urdf', '*.urdf'),
    ],
    zip_safe=True,
    entry_points={
        'console_scripts': [
            *(f'{name} = {NAME}.entry:{name}' for name in ('robotid', *NODES)),
        ],
    },
)
