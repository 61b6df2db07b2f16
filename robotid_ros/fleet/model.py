"""The model of a type of robots, which all its sessions share."""

from collections.abc import Sequence
import dataclasses
from functools import lru_cache
import hashlib
import json
from typing import Any

from ..core.identification_settings import IdentificationSettings
from ..core.model import build_robot, Robot, RobotSettings
from ..core.model.base_parameters import base_parameters, BaseParameters
from ..core.pipeline.choices import without_choice
from ..core.pipeline.estimation import check_method
from ..core.pipeline.logs import LogSet
from ..exceptions import ConfigurationError
from ..files.configuration import load, read_urdf
from ..settings import parse
from .settings import FleetSettings

# Methods that need no more than triangular factors, which can be merged.
MERGED_METHODS = ('auto', 'wls', 'ols', 'tls')
_FIELDS = [field.name for field in dataclasses.fields(IdentificationSettings)]


@dataclasses.dataclass(frozen=True)
class FleetModel:
    """
    What the robots of a type have in common.

    Nothing is chosen bag by bag but filters and delays: factors merge only where they have the
    same columns. `content` has URDF, robot and identification as JSON, from which all else
    follows.
    """

    type: str
    content: str

    @property
    def hash(self) -> str:
        """Hash of all that a result depends on besides its bag."""
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def urdf(self) -> str:
        """Text of the robot description."""
        return str(json.loads(self.content)['urdf'])

    def build(self) -> tuple[Robot, BaseParameters, IdentificationSettings]:
        """Build the robot, once a process; RobotIdError: a fleet cannot be identified so."""
        return _build(self.content)


@lru_cache(maxsize=16)
def _build(content: str) -> tuple[Robot, BaseParameters, IdentificationSettings]:
    groups: dict[str, Any] = json.loads(content)
    settings = without_choice(parse(IdentificationSettings, groups['identification']))
    if settings.method not in MERGED_METHODS:
        raise ConfigurationError(
            f'a fleet is identified by merging triangular factors, which method '
            f"'{settings.method}' cannot: use one of {', '.join(MERGED_METHODS)}"
        )
    robot = build_robot(groups['urdf'], parse(RobotSettings, groups['robot']))
    check_method(LogSet(()), robot.elastic or robot, settings)
    return robot, base_parameters(robot), settings


def load_models(configurations: Sequence[str]) -> tuple[dict[str, FleetModel], FleetSettings]:
    """Read configurations, each a file or TYPE=FILE: models by type, and settings of the first."""
    models: dict[str, FleetModel] = {}
    first = FleetSettings()
    for number, text in enumerate(configurations):
        named, _, file = text.rpartition('=')
        configuration = load(file)
        urdf = read_urdf(configuration)
        if urdf is None:
            raise ConfigurationError(f"'{file}' names no robot description: add robot.urdf")
        robot = configuration.robot
        settings = dataclasses.asdict(configuration.identification)
        groups = {
            'urdf': urdf,
            'robot': dataclasses.asdict(dataclasses.replace(robot, urdf='')),
            # Those of a node have more, which say nothing of the results.
            'identification': {name: settings[name] for name in _FIELDS},
        }
        model = FleetModel(named or robot.name, json.dumps(groups, sort_keys=True))
        model = dataclasses.replace(model, type=model.type or model.build()[0].name)
        model.build()  # what is wrong with it is said before the work begins
        if model.type in models:
            raise ConfigurationError(
                f"two configurations are of type '{model.type}': name them TYPE=FILE"
            )
        models[model.type] = model
        first = configuration.fleet if not number else first
    return models, first
