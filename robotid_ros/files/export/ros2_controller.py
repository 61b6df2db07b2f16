"""
A ros2_control controller of the identified robot: a C++ package with straight-line dynamics.

The recursive Newton-Euler algorithm runs here once, on expressions in place of numbers. Numbers
are folded, products with 0 and 1 vanish, an expression that occurs twice is computed once, and
what no result needs is left out. The rest of the package are templates in `controller_package/`.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
import itertools
from pathlib import Path
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio

from ...core.model.robot import ElasticRobot, Robot
from ...core.signals.samples import STANDSTILL
from ...exceptions import ConfigurationError
from ..text_template import text_templates
from ..verdict_text import unusable_note
from ..yaml import dump_yaml
from .identified_model import drives_of, EVERYTHING, explain_losses, IdentifiedModel

TEMPLATES = Path(__file__).parent / 'controller_package'
# Decimals of directions and places [m]: cos(π/2) becomes 0, and what is left out is rounding.
DECIMALS = 15
# Share of the friction that is added unless a parameter says otherwise: that of a gear falls when
# it warms up (Bittencourt and Gunnarsson 2012), and more than there is moves the robot by itself.
FRICTION_SHARE = 0.5
WORD, SHORT = re.compile(r'\w+'), re.compile(r'[\w.\[\]]+|\(-[\w.\[\]]+\)')
# A body's mass, first moments ∫ r dm and second moments ∫ r rᵀ dm, as the C++ struct has them.
MOMENTS = ('m', 'mx', 'my', 'mz', 'sxx', 'sxy', 'sxz', 'syy', 'syz', 'szz')
# Of a drive, in the order of `Drive`.
DRIVE = ('inertia', 'viscous', 'dry', 'stiffness', 'offset')


def ros2_controller(model: IdentifiedModel) -> tuple[dict[str, str], list[str]]:
    """
    Return the files of the package, by their paths, and sentences on what it does not hold.

    ConfigurationError: the results are marked unusable.
    """
    if note := unusable_note(model.results):
        raise ConfigurationError(f'no controller is written: {note}')
    robot = model.robot.rigid if isinstance(model.robot, ElasticRobot) else model.robot
    notes = explain_losses(model, EVERYTHING)
    package = re.sub(r'[^a-z0-9]+', '_', robot.name.lower()).strip('_')
    package = f'{package if package[:1].isalpha() else f"robot_{package}"}_dynamics'
    values = {
        'package': package,
        'guard': package.upper(),
        'robot': robot,
        'notes': notes,
        'limits': robot.largest_efforts,
        'links': _links(model),
        'last': robot.links[-1],
        'drives': _drives(model, robot),
        'functions': _functions(model, robot),
        'friction_share': FRICTION_SHARE,
        'standstill': STANDSTILL,
    }
    environment = text_templates(TEMPLATES, literal=_literal)
    files = {
        name.removesuffix('.jinja').replace('PACKAGE', package): (
            environment.get_template(name).render(values)
        )
        for name in environment.list_templates()
    }
    return files, notes


def _literal(value: float) -> str:
    if np.isfinite(value):
        return repr(float(value))
    return 'std::numeric_limits<double>::infinity()'


def moveit(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Return what stands in MoveIt's `moveit_controllers.yaml` instead of the arm's controller."""
    name = 'feedforward'
    entry = {
        'type': 'FollowJointTrajectory',
        'action_ns': 'follow_joint_trajectory',
        'default': True,
        'joints': list(model.robot.recorded_joints),
    }
    manager = {'controller_names': [name], name: entry}
    note = "the node 'feedforward' must run: it hands MoveIt's goals on to the arm's controller"
    return f'# {note}\n{dump_yaml({"moveit_simple_controller_manager": manager})}', [note]


# Expressions


@dataclass(frozen=True)
class Expression:
    """A C++ expression, in brackets unless it is a variable or a call."""

    text: str

    def __neg__(self) -> 'Expression':
        return Expression(f'(-{self.text})')

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array multiplies its elements
        if not isinstance(other, Expression) and other in (0, 1, -1):
            return 0.0 if other == 0 else self if other == 1 else -self
        return Expression(f'({self.text} * {_text(other)})')

    def __add__(self, other: Any) -> 'Expression':
        if not isinstance(other, Expression) and other == 0:
            return self
        return Expression(f'({self.text} + {_text(other)})')

    def __sub__(self, other: Any) -> 'Expression':
        return self + -other

    def __rsub__(self, other: Any) -> 'Expression':
        return -self + other

    __rmul__, __radd__ = __mul__, __add__


def _text(value: Any) -> str:
    return value.text if isinstance(value, Expression) else repr(float(value))


class Statements:
    """Lines of C++ that give names to expressions: {expression: name}."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def let(self, value: Any, name: str) -> Any:
        """Return what stands for an expression from now on: a variable, or itself if short."""
        if not isinstance(value, Expression) or SHORT.fullmatch(value.text):
            return value
        return Expression(self.names.setdefault(value.text, name))

    def vector(self, values: Any, name: str) -> Any:
        """Name the components of a vector."""
        parts = zip(values, 'xyz', strict=True)
        return np.array([self.let(value, name + axis) for value, axis in parts], dtype=object)

    def function(self, results: Sequence[Any]) -> list[str]:
        """Return the statements that the results need, and those that store them in `tau`."""
        stored = [f'tau[{k}] = {_text(result)};' for k, result in enumerate(results)]
        needed, lines = set(WORD.findall(' '.join(stored))), list[str]()
        for text, name in reversed(self.names.items()):
            if name in needed:
                needed.update(WORD.findall(text))
                lines.insert(0, f'const double {name} = {text};')
        return lines + stored


# The model


def _links(model: IdentifiedModel) -> list[dict[str, Any]]:
    """Return of each link its joint, its parameters, and its `MOMENTS` but for factors."""
    robot, found = model.robot, []
    for joint, columns in zip(robot.links, robot.body_columns, strict=True):
        parameters = [(robot.parameters[c], float(model.chi[c])) for c in columns]
        xx, xy, xz, yy, yz, zz, *first, mass = (value for _, value in parameters)
        second = [yy + zz - xx, xy, xz, xx + zz - yy, yz, xx + yy - zz]
        values = [mass, *first, *second]
        found.append({'joint': joint, 'parameters': parameters, 'values': values})
    return found


def _drives(model: IdentifiedModel, robot: Robot) -> list[dict[str, Any]]:
    """Return of each drive, coupled ones too, its speed per joint speed, and its values."""
    ratios = {name: np.eye(robot.n)[j] for j, name in enumerate(robot.joints)}
    ratios |= {coupling.name: coupling.ratios for coupling in robot.couplings}
    known = drives_of(model)
    return [
        {'name': f'drive{k}', 'of': name, 'ratios': r, 'values': astuple(known[name])}
        for k, (name, r) in enumerate(ratios.items(), 1)
    ]


def _functions(model: IdentifiedModel, robot: Robot) -> dict[str, list[str]]:
    """Return the statements of each function of the dynamics."""
    q, dq, ddq = (
        np.array([Expression(f'{name}[{j}]') for j in range(robot.n)], dtype=object)
        for name in ('q', 'dq', 'ddq')
    )
    bodies = [
        _unless_zero(f'link{k}', MOMENTS, link['values'])
        for k, link in enumerate(_links(model), 1)
    ]
    bodies[-1] = _unless_zero('last', MOMENTS, [1.0] * len(MOMENTS))
    drives = [
        (each['ratios'], *_unless_zero(each['name'], DRIVE, each['values']))
        for each in _drives(model, robot)
    ]
    zero, functions = np.zeros(robot.n, dtype=object), {}
    for name, speed, change in (('inverse_dynamics', dq, ddq), ('gravity', zero, zero)):
        code = Statements()
        tau = _link_torques(code, robot, bodies, q, speed, change)
        for r, inertia, _, _, stiffness, offset in drives:
            tau = tau + r * (inertia * (r @ change) + stiffness * (r @ q) + offset)
        functions[name] = code.function(tau)
    code, tau = Statements(), zero
    for k, (r, _, viscous, dry, _, _) in enumerate(drives, 1):
        speed = code.let(r @ dq, f'speed{k}')
        sign = _call('std::tanh', Expression('steepness') * speed)
        tau = tau + r * code.let(viscous * speed + dry * sign, f'drag{k}')
    functions['friction'] = code.function(tau)
    return functions


def _unless_zero(name: str, fields: Sequence[str], values: Sequence[float]) -> list[Any]:
    pairs = zip(fields, values, strict=True)
    return [Expression(f'{name}.{field}') if value else 0.0 for field, value in pairs]


def _link_torques(code: Statements, robot: Robot, bodies: Any, q: Any, dq: Any, ddq: Any) -> Any:
    """
    Return the torques (n,) of the links, by recursive Newton-Euler.

    Vectors of a link are in its frame, at its origin: ω, its derivative, and the acceleration a
    less gravity. A point r of it accelerates by a + U r, with U = [ω̇]× + [ω]×². With the mass M,
    first moments s and second moments Σ the link takes, linear in its parameters (Khalil and
    Dombre 2002, section 9.5),

        F = M a + U s,   N = ∫ r × (a + U r) dm = s × a + (G_zy − G_yz, G_xz − G_zx, G_yx − G_xy)

    with G = U Σ. `fixed` and `turn` lead to the frame of the link before.
    """
    model, jacobian = robot.model, robot.mimic_jacobian
    offset = np.append(np.zeros(robot.n), [follower.offset for follower in robot.followers])
    q, dq, ddq = jacobian @ q + offset, jacobian @ dq, jacobian @ ddq
    still, links = np.zeros(3, dtype=object), list[SimpleNamespace]()
    for k, joint in enumerate(robot.order):
        number, parent = str(joint + 1), model.parents[k + 1] - 1
        place, (axis, slides) = model.jointPlacements[k + 1], _axis(model, k)
        fixed, point = _rounded(place.rotation), _rounded(place.translation)
        position, speed, change = q[joint], dq[joint], ddq[joint]
        turn = np.eye(3, dtype=object)
        if slides:
            point = point + fixed @ axis * position
        else:
            angle = code.let(position, f'q{number}')
            c = code.let(_call('std::cos', angle), f'c{number}')
            s = code.let(_call('std::sin', angle), f's{number}')
            along = np.outer(axis, axis)
            turn = along + c * (turn - along) + s * _skew(axis)
        if parent < 0:
            w, dw, a = still, still, _rounded(-robot.gravity)
        else:
            before = links[parent]
            w, dw, a = before.w, before.dw, before.a + before.U @ point
        turned = []
        for vector, name in ((w, 'w'), (dw, 'dw'), (a, 'a')):
            vector = code.vector(fixed.T @ vector, f'{name}{number}f')
            turned.append(code.vector(turn.T @ vector, f'{name}{number}t'))
        w, dw, a = turned
        if slides:
            a = a + 2.0 * speed * (_skew(w) @ axis) + axis * change
        else:
            w, dw = w + axis * speed, dw + _skew(w) @ axis * speed + axis * change
        w = code.vector(w, f'w{number}')
        dw, a = code.vector(dw, f'dw{number}'), code.vector(a, f'a{number}')
        xx, xy, xz, yy, yz, zz = (
            code.let(w[i] * w[j], f'w{number}{"xyz"[i]}{"xyz"[j]}')
            for i, j in itertools.combinations_with_replacement(range(3), 2)
        )
        U = _symmetric(-(yy + zz), xy, xz, -(xx + zz), yz, -(xx + yy)) + _skew(dw)
        U = np.array([code.vector(U[i], f'u{number}{"xyz"[i]}') for i in range(3)])
        mass, mx, my, mz, *second = bodies[joint]
        first, G = np.array([mx, my, mz], dtype=object), U @ _symmetric(*second)
        F = mass * a + U @ first
        N = _skew(first) @ a + (G - G.T)[[2, 0, 1], [1, 2, 0]]
        own = {'axis': axis, 'slides': slides, 'fixed': fixed, 'turn': turn, 'point': point}
        links.append(SimpleNamespace(**own, w=w, dw=dw, a=a, U=U, F=F, N=N))
    tau = np.zeros(len(links), dtype=object)
    for k, link in reversed(list(enumerate(links))):
        joint, parent = robot.order[k], model.parents[k + 1] - 1
        number = str(joint + 1)
        F, N = code.vector(link.F, f'f{number}'), code.vector(link.N, f'n{number}')
        tau[joint] = link.axis @ (F if link.slides else N)
        if parent >= 0:
            F, N = (
                code.vector(link.turn @ F, f'f{number}t'),
                code.vector(link.turn @ N, f'n{number}t'),
            )
            F = code.vector(link.fixed @ F, f'f{number}f')
            links[parent].F = links[parent].F + F
            links[parent].N = links[parent].N + link.fixed @ N + _skew(link.point) @ F
    return jacobian.T @ tau


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=float), DECIMALS).astype(object)


def _axis(model: Any, k: int) -> tuple[Any, bool]:
    """Return the axis of a joint in its link's frame, and whether it slides along it."""
    data = model.createData()
    jacobian = pinocchio.computeJointJacobian(model, data, np.zeros(model.nq), k + 1)
    column = jacobian.reshape(6, -1)[:, k]
    slides = not column[3:].any()
    return _rounded(column[:3] if slides else column[3:]), slides


def _skew(v: Any) -> Any:
    """Return [v]×, with which [v]× r = v × r."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=object)


def _symmetric(xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> Any:
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)


def _call(function: str, value: Any) -> Expression:
    return Expression(f'{function}({_text(value)})')
