"""
Pictures of the documents, drawn by the package itself: `make pictures`.

`arm.png`: an arm as its collision bodies, and the way of its tool along the motion that identifies
it. `efforts.png`: efforts of a simulated session, on the motion that did not identify.
`report.png`, `design.png`: the tops of its report and of the page of that motion, in Chromium;
`report_390.png`: of the report on a telephone. `terminal.png`, `payload.png`: what commands print.
`fleet.png`: page on six robots, two of them with a fault.
"""

import contextlib
import html
import io
from pathlib import Path
import shutil
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
import mujoco
import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import robotid_ros as rid
from robotid_ros.cli.main import main as robotid
from robotid_ros.cli.results_text import print_results
from robotid_ros.files.report.page import save_page
from robotid_ros.files.trajectory_file import read_design

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'test' / 'tools'))

from small_fleet import CONFIG, write_bag  # noqa: E402

ROBOT = 'ur10'
# Shares of the period at which the arm is shown, and how clearly.
POSTURES = ((0.0, 1.0), (0.3, 0.25), (0.7, 0.25))
# Joints whose efforts are shown: one that carries the arm, one that carries little.
SHOWN = (1, 3)
# Width and height of the report's top [px], and colours of its picture.
WINDOW, TALL, NARROW, COLOURS = (1440, 1240), (1440, 1170), (390, 1600), 64
# Longest wait for a page [ms].
PATIENCE = 120_000
# What a body of 2 kg adds to the parameters of the SCARA.
BODY = (('ZZ2', 0.1), ('MX2', 0.4), ('MY2', -0.1), ('M2', 2.0))
LIGHT = np.array([0.4, -0.6, 0.7]) / np.linalg.norm([0.4, -0.6, 0.7])


def main(folder: Path) -> None:
    """Draw all."""
    folder.mkdir(parents=True, exist_ok=True)
    config = ROOT / 'config' / f'{ROBOT}.yaml'
    design = read_design(ROOT / 'config' / 'trajectories' / f'{ROBOT}.yaml')
    draw_arm(folder / 'arm.png', design)
    recording = rid.simulate(config, design)
    found = rid.identify(recording)
    draw_efforts(folder / 'efforts.png', found.validation)
    with TemporaryDirectory() as results:
        saved = rid.save(found, recording, results)
        shown, name = sorted(path.name for path in Path(results).iterdir()), Path('my_robot')
        page = save_page('identification', Path(results) / 'report.html', saved, name)
        draw_page(folder / 'report.png', page)
        draw_page(folder / 'report_390.png', page, NARROW)
        said = printed(lambda: print_results(saved, name, shown, every=False))
        draw_text(folder / 'terminal.png', f'$ robotid identify my_robot.mcap\n{said}')
        page = rid.save_design(design, config, Path(results) / 'design.yaml')
        draw_page(folder / 'design.png', page)
    with TemporaryDirectory() as work:
        draw_commands(folder, Path(work))


def draw_commands(folder: Path, work: Path) -> None:
    """Draw what commands print and write of bags of a SCARA."""
    empty = write_bag(work, 'empty')
    loaded = write_bag(work, 'with_gripper', change=BODY)
    log = ['--urdf', str(ROOT / 'urdf' / 'scara.urdf')]
    words = ['payload', str(empty), str(loaded), *log, '-o', str(work / 'payload.yaml')]
    said = printed(lambda: robotid([*words, '--quiet'])).replace(f'{work}/', '')
    draw_text(folder / 'payload.png', f'$ robotid payload empty with_gripper\n{said}')
    for robot in range(6):
        for session in range(4):
            change = [('Fc2', 0.15)] * (robot == 3) + [('Fc1', 0.4)] * (robot == 5 and session > 1)
            place, day = work / 'bags' / f'press_{robot + 1}', 7 * session + robot
            write_bag(place, f's{session}', seed=10 * robot + session, day=day, change=change)
    store = str(work / 'store')
    printed(lambda: robotid(['fleet', 'run', str(work / 'bags'), '-c', str(CONFIG), '-o', store]))
    printed(lambda: robotid(['fleet', 'report', store]))
    draw_page(folder / 'fleet.png', work / 'store' / 'report.html', TALL)


def printed(work: 'Callable[[], object]') -> str:
    """Return what is printed meanwhile."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        work()
    return said.getvalue()


@contextlib.contextmanager
def browser_at(page: Path, size: tuple[int, int]) -> 'Iterator[Page]':
    """Open a page in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which('chromium'), args=['--no-sandbox']
        )
        viewport = dict(zip(('width', 'height'), size, strict=True))
        window = browser.new_page(viewport=viewport, reduced_motion='reduce')
        window.set_default_timeout(PATIENCE)
        window.goto(page.as_uri())
        yield window
        browser.close()


def draw_page(path: Path, page: Path, size: tuple[int, int] = WINDOW) -> None:
    """Draw the top of a page as a browser shows it."""
    with browser_at(page, size) as window:
        window.wait_for_timeout(4000)
        window.screenshot(path=path)
    Image.open(path).convert('RGB').quantize(COLOURS).save(path, optimize=True)


def draw_text(path: Path, text: str) -> None:
    """Draw what a terminal of 80 columns shows."""
    style = 'display:inline-block;margin:0;padding:1em;background:#1c2430;color:#e6e9ee'
    with TemporaryDirectory() as folder:
        page = Path(folder) / 'terminal.html'
        page.write_text(
            f'<meta charset="utf-8"><pre style="{style};font:14px monospace">'
            f'{html.escape(text.rstrip())}</pre>'
        )
        with browser_at(page, WINDOW) as window:
            window.locator('pre').screenshot(path=path)
    Image.open(path).convert('RGB').quantize(COLOURS).save(path, optimize=True)


def draw_arm(path: Path, design: rid.Design) -> None:
    """Draw the arm at the start of the motion, as MuJoCo loads its description, and its tool."""
    model = mujoco.MjModel.from_xml_path(str(ROOT / 'urdf' / f'{ROBOT}.urdf'))
    data = mujoco.MjData(model)
    times = np.linspace(0.0, design.trajectory.period, 600)
    motion = design.trajectory.sample(times)
    tool = []
    for q in motion.q:
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        tool.append(data.xpos[-1].copy())
    figure = pyplot.figure(figsize=(8.0, 5.0))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), projection='3d')
    corners = [np.array(tool)]
    for share, opacity in POSTURES:
        data.qpos[:] = motion.q[round(share * (len(times) - 1))]
        mujoco.mj_kinematics(model, data)
        corners.append(data.geom_xpos.copy())
        for k in range(model.ngeom):
            add_geometry(axes, model, data, k, opacity)
    axes.plot(*np.array(tool).T, color='#d1662c', linewidth=1.4)
    axes.view_init(elev=16.0, azim=-58.0)
    axes.set_box_aspect(np.ptp(limits(axes, np.vstack(corners)), axis=0), zoom=1.25)
    axes.set_axis_off()
    save_trimmed(figure, path)
    pyplot.close(figure)


def save_trimmed(figure: 'pyplot.Figure', path: Path, margin: int = 12) -> None:
    """Write a picture without the empty space around what is drawn."""
    figure.set_dpi(130)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    rows, columns = np.nonzero((pixels < 250).any(axis=2))
    top, left = max(rows.min() - margin, 0), max(columns.min() - margin, 0)
    pyplot.imsave(path, pixels[top : rows.max() + margin, left : columns.max() + margin])


def limits(axes: 'pyplot.Axes', points: np.ndarray) -> np.ndarray:
    """Set the limits to what is shown; return its lowest and highest corner."""
    low, high = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    for name, a, b in zip('xyz', low, high, strict=True):
        getattr(axes, f'set_{name}lim')(a, b)
    return np.array([low, high])


def add_geometry(
    axes: 'pyplot.Axes', model: mujoco.MjModel, data: mujoco.MjData, k: int, opacity: float
) -> None:
    """Draw a capsule, cylinder, sphere or box as shaded patches."""
    kind, size = model.geom_type[k], model.geom_size[k]
    patches = surface(mujoco.mjtGeom(kind), size)
    if patches is None:
        return
    patches = patches @ data.geom_xmat[k].reshape(3, 3).T + data.geom_xpos[k]
    normal = np.cross(patches[:, 1] - patches[:, 0], patches[:, 2] - patches[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    shade = 0.55 + 0.4 * np.abs(normal @ LIGHT)
    colour = np.array([0.47, 0.58, 0.70])
    faces = np.clip(np.outer(shade, colour) * 1.3, 0.0, 1.0)
    faces = np.hstack([faces, np.full((len(faces), 1), opacity)])
    axes.add_collection3d(Poly3DCollection(patches, facecolors=faces, edgecolors='none'))


def surface(kind: mujoco.mjtGeom, size: np.ndarray) -> np.ndarray | None:
    """Return quadrilaterals (N, 4, 3) of a body around the origin, None for what is not drawn."""
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size
        faces = [
            [0, 1, 3, 2],
            [4, 5, 7, 6],
            [0, 1, 5, 4],
            [2, 3, 7, 6],
            [0, 2, 6, 4],
            [1, 3, 7, 5],
        ]
        return corners[faces]
    radius, half = size[0], size[1]
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        profile = [(0.0, -half), (radius, -half), (radius, half), (0.0, half)]
    elif kind in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE):
        half = half if kind == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
        angles = np.linspace(-np.pi / 2, np.pi / 2, 13)
        profile = [
            (radius * np.cos(a), radius * np.sin(a) + (half if a > 0 else -half)) for a in angles
        ]
    else:
        return None
    turn = np.linspace(0.0, 2 * np.pi, 25)
    rings = np.array([[(r * np.cos(a), r * np.sin(a), z) for a in turn] for r, z in profile])
    quads = np.stack([rings[:-1, :-1], rings[:-1, 1:], rings[1:, 1:], rings[1:, :-1]], axis=2)
    return quads.reshape(-1, 4, 3)


def draw_efforts(path: Path, found: rid.Validation) -> None:
    """Draw measured and predicted efforts of a validation, and what is left on an axis below."""
    figure, rows = pyplot.subplots(
        2, len(SHOWN), sharex=True, figsize=(9.0, 3.6), height_ratios=(2.2, 1.0), squeeze=False
    )
    for column, joint in enumerate(SHOWN):
        time, measured, predicted = (np.asarray(x) for x in series(found, joint))
        top, bottom = rows[:, column]
        top.plot(time, measured, color='#8a97a3', linewidth=1.6, label='measured')
        top.plot(time, predicted, color='#d1662c', linewidth=0.9, label='predicted')
        bottom.plot(time, measured - predicted, color='#2f5d8a', linewidth=0.7)
        top.set_title(found.joints[joint], fontsize=10)
        bottom.set_xlabel('time [s]')
        for axes in (top, bottom):
            axes.grid(alpha=0.3)
    rows[0, 0].set_ylabel('effort [N·m]')
    rows[1, 0].set_ylabel('left [N·m]')
    rows[0, 0].legend(loc='upper right', fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def series(found: rid.Validation, joint: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, measured and predicted efforts of a joint."""
    return found.time, found.measured[:, joint], found.predicted[:, joint]


if __name__ == '__main__':
    main(Path(sys.argv[1]))
