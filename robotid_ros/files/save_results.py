"""From an identification to its files: parameters, robot description, report."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.pipeline.results import Identification
from ..core.pipeline.several_logs import LogSet
from .atomic import write_text
from .collect_results import collect_results
from .export.identified_urdf import identified_urdf
from .identification_input import AnyRecording
from .results import Results, URDF
from .results_file import REPORT, write_results


def save(
    identification: Identification,
    recording: AnyRecording | LogSet,
    folder: str | Path,
    settings: Mapping[str, Any] | None = None,
) -> Results:
    """
    Write `parameters.yaml`, `torques.npz`, `identified.urdf` and `report.html`.

    Parameters
    ----------
    identification : what was found
    recording : where from, one or several
    folder : made when missing; files of the same names are replaced
    settings : the configuration's nested mapping, kept with the result

    Returns
    -------
    The results, as plain values.

    Raises
    ------
    FileError : the folder cannot be written

    """
    from .report.page import write_report  # matplotlib is slow to import and not for every node

    results = collect_results(identification, recording, settings)
    description = identified_urdf(identification.robot, identification.standard.value)
    write_text(Path(folder) / URDF, description)
    write_results(results, folder)
    write_report(results, Path(folder) / REPORT)
    return results
