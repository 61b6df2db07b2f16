"""Self-contained pages from results: report, validation, comparison."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ...exceptions import FileError, MissingPackageError
from ..atomic import write_text
from ..results import Results

# Kinds of pages that are not in `pages`.
OWN_MODULES = ('design', 'rollouts')


def save_page(kind: str, path: str | Path, *subject: Any, overwrite: bool = True) -> Path:
    """
    Write a page, and return its path.

    Of the kinds 'identification' shows `Results` and their folder, 'validation'
    `CheckedParameters`, 'comparison' `Results` by name, 'design' and 'rollouts' what
    `design_page` and `rollouts_page` take.
    MissingPackageError: Bokeh is not installed; FileError: the page cannot be written;
    TrajectoryError: the design is for other joints.
    """
    check_plotting()
    module = import_module(f'.{kind if kind in OWN_MODULES else "pages"}', __package__)
    return write_text(path, getattr(module, f'{kind}_page')(*subject), overwrite=overwrite)


def write_report_if_possible(results: Results, path: str | Path) -> str:
    """
    Write the report where its plotting library is installed; all other files go without it.

    Returns why there is none, with the remedy; '' where it was written.
    """
    try:
        save_page('identification', path, results, Path(path).absolute().parent)
    except MissingPackageError as error:
        return str(error)
    return ''


def page_beside(path: str | Path) -> Path:
    """
    Return where the page of a file goes: beside it, under its name.

    FileError: the file has the name of its page, or none.
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

    MissingPackageError: it cannot; says the remedy.
    """
    try:
        import bokeh.plotting  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            f'the page needs bokeh ({error}): pip install bokeh and repeat the command; robotid '
            'report FOLDER writes that of an identification'
        ) from error
