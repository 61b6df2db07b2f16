"""Self-contained pages from results: report, validation, comparison."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import FileError, MissingPackageError
from ..atomic import write_text
from ..comparison import CheckedParameters
from ..results import Results

if TYPE_CHECKING:
    from ...core.excitation.design import Design
    from ...core.model import Robot
    from ..configuration import Configuration


def write_report(results: Results, path: str | Path) -> Path:
    """
    Write the report of an identification, and return its path.

    Parameters
    ----------
    results : what was identified; figures of torques need its `torques`
    path : of the page

    Raises
    ------
    MissingPackageError : Bokeh is not installed
    FileError : the page cannot be written

    """
    check_plotting()
    from .pages import identification_page

    return write_text(path, identification_page(results))


def write_report_if_possible(results: Results, path: str | Path) -> str:
    """
    Write the report where its plotting library is installed; all other files go without it.

    Returns why there is none, with the remedy; '' where it was written.
    """
    try:
        write_report(results, path)
    except MissingPackageError as error:
        return str(error)
    return ''


def write_validation(
    checked: CheckedParameters, path: str | Path, *, overwrite: bool = True
) -> Path:
    """Write the page of a validation; parameters and errors as in `write_report`."""
    check_plotting()
    from .pages import validation_page

    return write_text(path, validation_page(checked), overwrite=overwrite)


def write_comparison(
    results: Mapping[str, Results], path: str | Path, *, overwrite: bool = True
) -> Path:
    """Write the page that sets results side by side, by name; errors as in `write_report`."""
    check_plotting()
    from .pages import comparison_page

    return write_text(path, comparison_page(results), overwrite=overwrite)


def write_design_page(
    path: str | Path,
    design: 'Design',
    robot: 'Robot',
    configuration: 'Configuration',
    command: str = '',
    *,
    overwrite: bool = True,
) -> Path:
    """
    Write the page of a design, with the arm that moves.

    Parameters
    ----------
    path : of the page
    design : what it shows
    robot : that it was designed for
    configuration : its groups `robot` and `excitation`, as they were used
    command : that repeats it
    overwrite : False refuses to replace an existing file

    Raises
    ------
    MissingPackageError : Bokeh is not installed
    FileError : the page cannot be written
    TrajectoryError : the design is for other joints

    """
    check_plotting()
    from .design import design_page

    text = design_page(design, robot, configuration, command)
    return write_text(path, text, overwrite=overwrite)


def page_beside(path: str | Path) -> Path:
    """
    Return where the page of a file goes: beside it, under its name.

    Raises
    ------
    FileError : the file has the name of its page, or none

    """
    if not Path(path).name.strip('.'):
        raise FileError(f"'{path}' is a folder: name a file in it")
    page = Path(path).with_suffix('.html')
    if page == Path(path):
        raise FileError(f"'{path}' would be its own page: let the name of the file end in .yaml")
    return page


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
            f'the page needs bokeh ({error}): pip install bokeh and repeat the command; robotid '
            'report FOLDER writes that of an identification'
        ) from error
