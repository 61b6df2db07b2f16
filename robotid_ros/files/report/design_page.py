"""The page of a design: the arm along its motion, and whether it is worth running."""

import dataclasses
from datetime import datetime, timezone
import hashlib

from ...core.excitation import Design
from ...core.excitation.limits import check_joints
from ...core.excitation.settings import payload_settings
from ...core.model import Robot
from ..configuration import Configuration
from ..provenance import versions
from .html import contents, page
from .plots.canvas import Plots
from .sections import design as parts
from .sections.provenance import origin


def render(design: Design, robot: Robot, configuration: Configuration, command: str = '') -> str:
    """Compose the page; arguments and errors as in `write_design_page`."""
    check_joints(robot, design.trajectory.joints)
    plots, settings = Plots(), payload_settings(configuration.excitation)
    remarks, moving = parts.remarks(design), parts.moving(design, robot, settings, plots)
    rest = (
        parts.shares(design),
        parts.search(design, plots),
        _provenance(design, robot, configuration, command),
    )
    # Nothing stands before the arm but what forbids or limits its motion.
    severe = bool(design.shortcomings or design.unchecked)
    shown = ''.join((moving, *rest) if severe else (moving, remarks, *rest))
    first = parts.verdict(design, settings) + (remarks if severe else '')
    body = first + contents(shown) + shown
    name, t = robot.name or 'robot', design.trajectory
    subtitle = f'motion that identifies, {t.family} {t.hash}, {t.period:g} s, order {t.order}'
    title = f'{name}: designed motion'
    return page(title, name, subtitle, body, plots.script(), behaviours=('report', 'motion'))


def _provenance(design: Design, robot: Robot, configuration: Configuration, command: str) -> str:
    validation = design.validation
    facts = {
        'hash of the excitation': design.trajectory.hash,
        'hash of the validation': validation.hash if validation else None,
        'robot description': configuration.robot.urdf,
        'SHA-256 of the robot description': hashlib.sha256(robot.urdf.encode()).hexdigest(),
        'designed in': f'{design.elapsed:.1f} s' if design.elapsed else None,
        'page written at': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        **{f'version of {package}': number for package, number in versions().items()},
    }
    settings = {
        group: dataclasses.asdict(getattr(configuration, group))
        for group in ('robot', 'excitation')
    }
    return origin('Design and versions', facts, command, settings)
