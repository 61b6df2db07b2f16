"""Self-contained pages from results: report, validation, comparison."""

from collections.abc import Mapping
from pathlib import Path

from ...exceptions import MissingPackageError
from ..atomic import write_text
from ..comparison.checked_parameters import CheckedParameters
from ..results import Results


def write_report(results: Results, path: str | Path) -> Path:
    """
    Write the report of an identification.

    Parameters
    ----------
    results : what was identified; figures of torques need its `torques`
    path : of the page

    Returns
    -------
    The path.

    Raises
    ------
    MissingPackageError : Bokeh is not installed
    FileError : the page cannot be written

    """
    check_plotting()
    from .identification_page import render

    return write_text(path, render(results))


def write_report_if_possible(results: Results, path: str | Path) -> str:
    """
    Write the report where its plotting library is installed; all other files go without it.

    Returns
    -------
    Why there is none, with the remedy; '' where it was written.

    """
    try:
        write_report(results, path)
    except MissingPackageError as error:
        return str(error)
    return ''


def write_validation(checked: CheckedParameters, path: str | Path) -> Path:
    """Write the page of a validation; parameters and errors as in `write_report`."""
    check_plotting()
    from .validation_page import render

    return write_text(path, render(checked))


def write_comparison(results: Mapping[str, Results], path: str | Path) -> Path:
    """Write the page that sets results side by side, by name; errors as in `write_report`."""
    check_plotting()
    from .comparison_page import render

    return write_text(path, render(results))


def check_plotting() -> None:
    """
    Check that the plotting library of pages can be imported; it takes most of a second.

    Raises
    ------
    MissingPackageError : it cannot; says the remedy

    """
    try:
        import bokeh.plotting  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            f'the report needs bokeh ({error}): pip install bokeh, then robotid report FOLDER'
        ) from error
