"""From an identification to its files: parameters, robot description, report."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path
from typing import Any

from ..core.finding_codes import finding
from ..core.pipeline.results import Identification
from ..core.pipeline.several_logs import LogSet
from .atomic import write_text
from .collect_results import collect_results
from .export.identified_urdf import identified_urdf
from .identification_input import AnyRecording
from .report.page import write_report_if_possible
from .results import Results, URDF
from .results_file import REPORT, write_results


def save(
    identification: Identification,
    recording: AnyRecording | LogSet,
    folder: str | Path,
    settings: Mapping[str, Any] | None = None,
    command: str = '',
) -> Results:
    """
    Write `parameters.yaml`, `torques.npz`, `identified.urdf` and `report.html`.

    Parameters
    ----------
    identification : what was found
    recording : where from, one or several
    folder : made when missing; files of the same names are replaced
    settings : the configuration's nested mapping, kept with the result
    command : that repeats it, for the report

    Returns
    -------
    The results, as plain values; with a warning where the report's plotting library is missing.

    Raises
    ------
    FileError : the folder cannot be written

    """
    results = collect_results(identification, recording, settings, command)
    description = identified_urdf(
        identification.robot, identification.standard.value, identification.plain_friction
    )
    write_text(Path(folder) / URDF, description)
    write_results(results, folder)
    if reason := write_report_if_possible(results, Path(folder) / REPORT):
        missing = finding('no_report', reason=reason)
        results = dataclasses.replace(results, findings=(*results.findings, missing))
    return results
