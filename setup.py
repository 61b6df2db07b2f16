"""Installed by colcon on a robot, by pip anywhere else."""

from glob import glob
from pathlib import Path
import xml.etree.ElementTree as ElementTree

from setuptools import find_packages, setup

manifest = ElementTree.parse(Path(__file__).parent / 'package.xml').getroot()
NAME = manifest.findtext('name')

NODES = (
    *('simulated_robot', 'excitation', 'recorder', 'identification'),
    *('feedforward', 'gravity_compensation', 'force_torque', 'live'),
)


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
    package_data={
        NAME: [
            'py.typed',
            'files/export/controller_package/**/*.jinja',
            'files/export/descriptions/*',
            'files/templates/*',
            'files/report/*.css',
            'files/report/*.js',
            'files/report/templates/*.html',
            'nodes/common/loopback.xml',
        ]
    },
    python_requires='>=3.10',
    long_description=(Path(__file__).parent / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    # What the command line and the library need, without ROS.
    install_requires=[
        'setuptools',
        'argcomplete>=3',
        'bokeh>=3.7',  # older scripts know no window_axis
        'clarabel>=0.9',
        'jinja2>=3.1',
        'mcap>=1.5',
        'numpy>=1.26',
        'pin>=3',
        'PyYAML',
        'rich>=13',
        'rosbags>=0.11',
        'scipy>=1.11',
        'tornado>=6.2',
    ],
    extras_require={
        # Simulated robots, `rid.simulate`.
        'sim': ['mujoco>=3.2'],
        # What rosdep brings on a robot, from PyPI: nodes, but for messages of ros2_control.
        'ros': [
            'mujoco>=3.2',
            'ros-jazzy-common-interfaces',
            'ros-jazzy-rclpy[fastrtps]',
        ],
        # Logs and robot descriptions of others: MATLAB 7.3 and HDF5, Parquet, xacro.
        'formats': ['h5py>=3.10', 'pyarrow>=14', 'xacro'],
        # `robotid fleet`: many robots, on Dask.
        'fleet': ['dask[distributed]>=2024', 'pyarrow>=14'],
        'dev': [
            'axe-playwright-python',
            'dask[distributed]',
            'h5py',
            'hypothesis',
            'matplotlib',
            'mujoco>=3.2',
            'mypy',
            'playwright',
            'pyarrow',
            'pytest',
            'pytest-timeout',
            'pytest-xdist',
            'ruff',
            'usd-core',
            'xacro',
        ],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        shared('launch', '*.launch.py'),
        shared('config', '*.yaml'),
        shared('config/security', '*.xml'),
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
