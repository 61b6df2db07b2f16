"""From two recordings to a payload and its file; runs in a process of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ...core.arrays import Array
from ...core.payload import payload_from_recordings
from ...core.payload.payload import CENTRAL, CENTRAL_UNITS
from ...files.atomic import new_names
from ...files.configuration import Configuration, read_urdf
from ...files.export.payload import maker_lines, write_payload
from ...files.payload_input import is_results, open_payload
from .payload_messages import PayloadOutcome


def identify_payload_bag(
    empty: str,
    loaded: str,
    configuration: Configuration,
    description: str,
    progress: Callable[[str], None],
) -> PayloadOutcome:
    """
    Identify a payload and write its file beside the recording.

    Parameters
    ----------
    empty : recording without it, or results of one
    loaded : recording with it
    configuration : of the robot
    description : URDF to use when neither recording nor configuration has one
    progress : called with what is being done

    Raises
    ------
    RobotIdError : a recording cannot be used; says why

    """
    progress(f"reading '{empty}' and '{loaded}'")
    settings = configuration.identification
    # Results hold the friction that was chosen with them.
    own = None if is_results(empty) else configuration
    fallback = description or read_urdf(configuration) or ''
    given = open_payload(empty, loaded, settings.payload.frame, own, fallback=fallback)
    payload, findings = payload_from_recordings(
        given.empty, given.loaded, given.robot, given.settings, progress, given.frame.name
    )
    path = Path(loaded)
    file = path.with_name(f'{path.stem if path.is_file() else path.name}_payload.yaml')
    file = Path(settings.output_dir) / file.name if settings.output_dir else file
    # What was identified before stays.
    file = next(name for name in new_names(file) if not name.exists())
    facts = {'robot': given.robot.name, 'empty': empty, 'loaded': loaded}
    write_payload(file, payload, facts, findings, given.frame.body)
    return PayloadOutcome(
        frame=payload.frame,
        link=given.frame.body,
        central=_table(CENTRAL, payload.central, payload.central_sigma, CENTRAL_UNITS),
        parameters=_table(payload.names, payload.value, payload.sigma, payload.units),
        lines=maker_lines(payload),
        findings=findings,
        path=str(file),
    )


def _table(
    names: Sequence[str], values: Array, sigmas: Array, units: Sequence[str]
) -> dict[str, tuple[float, float, str]]:
    rows = zip(names, values.tolist(), sigmas.tolist(), units, strict=True)
    return {name: (value, sigma, unit) for name, value, sigma, unit in rows}
