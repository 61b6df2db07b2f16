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

from ...core.model.robot import Robot
from ...core.signals.recording import STANDSTILL
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
    """Return the package's files, and what they lack; ConfigurationError: unusable results."""
    if note := unusable_note(model.results):
        raise ConfigurationError(f'no controller is written: {note}')
    robot = model.robot.rigid
    notes = explain_losses(model, EVERYTHING)
    package = re.sub(r'[^a-z0-9]+', '_', robot.name.lower()).strip('_')
    package = f'{package if package[:1].isalpha() else f"robot_{package}"}_dynamics'
    links, whole = [], model.robot
    for joint, columns in zip(whole.links, whole.body_columns, strict=True):
        parameters = [(whole.parameters[c], float(model.chi[c])) for c in columns]
        # Its `MOMENTS` but for factors.
        xx, xy, xz, yy, yz, zz, *first, mass = (value for _, value in parameters)
        moments = [mass, *first, yy + zz - xx, xy, xz, xx + zz - yy, yz, xx + yy - zz]
        links.append({'joint': joint, 'parameters': parameters, 'values': moments})
    # Of each drive, coupled ones too, its speed per joint speed.
    ratios = {name: np.eye(robot.n)[j] for j, name in enumerate(robot.joints)}
    ratios |= {coupling.name: coupling.ratios for coupling in robot.couplings}
    known = drives_of(model)
    drives = [
        {'name': f'drive{k}', 'of': name, 'ratios': r, 'values': astuple(known[name])}
        for k, (name, r) in enumerate(ratios.items(), 1)
    ]
    values = {
        'package': package,
        'guard': package.upper(),
        'robot': robot,
        'notes': notes,
        'limits': robot.largest_efforts,
        'links': links,
        'last': robot.links[-1],
        'drives': drives,
        'functions': _functions(robot, links, drives),
        'friction_share': FRICTION_SHARE,
        'standstill': STANDSTILL,
    }
    infinite = 'std::numeric_limits<double>::infinity()'
    templates = text_templates(
        TEMPLATES, literal=lambda x: repr(float(x)) if np.isfinite(x) else infinite
    )
    return {
        name.removesuffix('.jinja').replace('PACKAGE', package): (
            templates.get_template(name).render(values)
        )
        for name in templates.list_templates(['jinja'])
    }, notes


def moveit(model: IdentifiedModel) -> tuple[str, list[str]]:
    """Return what stands in MoveIt's `moveit_controllers.yaml` instead of the arm's controller."""
    entry = {
        'type': 'FollowJointTrajectory',
        'action_ns': 'follow_joint_trajectory',
        'default': True,
        'joints': list(model.robot.recorded_joints),
    }
    manager = {'controller_names': ['feedforward'], 'feedforward': entry}
    note = "the node 'feedforward' must run: it forwards MoveIt's goals to the arm's controller"
    return f'# {note}\n{dump_yaml({"moveit_simple_controller_manager": manager})}', [note]


@dataclass(frozen=True)
class Expression:
    """A C++ expression, in brackets unless it is a variable or a call."""

    text: str

    @classmethod
    def call(cls, function: str, value: Any) -> 'Expression':
        """Return a function of a value."""
        return cls(f'{function}({_text(value)})')

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


def _functions(robot: Robot, links: Any, drives: Any) -> dict[str, list[str]]:
    """Return the statements of each function of the dynamics."""

    def struct(name: str, fields: Sequence[str], values: Sequence[float]) -> list[Any]:
        """Return the fields of a struct that are not 0."""
        pairs = zip(fields, values, strict=True)
        return [Expression(f'{name}.{field}') if value else 0.0 for field, value in pairs]

    q, dq, ddq = (
        np.array([Expression(f'{name}[{j}]') for j in range(robot.n)], dtype=object)
        for name in ('q', 'dq', 'ddq')
    )
    bodies = [struct(f'link{k}', MOMENTS, each['values']) for k, each in enumerate(links, 1)]
    bodies[-1] = struct('last', MOMENTS, [1.0] * len(MOMENTS))
    drives = [(each['ratios'], *struct(each['name'], DRIVE, each['values'])) for each in drives]
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
        sign = Expression.call('std::tanh', Expression('steepness') * speed)
        tau = tau + r * code.let(viscous * speed + dry * sign, f'drag{k}')
    return {**functions, 'friction': code.function(tau)}


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
    base = np.zeros(3, dtype=object), np.zeros(3, dtype=object), _rounded(-robot.gravity)
    links, data = list[SimpleNamespace](), model.createData()
    for k, joint in enumerate(robot.order):
        number, parent = str(joint + 1), model.parents[k + 1] - 1
        # The joint in its link's frame: it slides along an axis, or turns about it.
        jacobian_of = pinocchio.computeJointJacobian(model, data, np.zeros(model.nq), k + 1)
        column = jacobian_of.reshape(6, -1)[:, k]
        slides = not column[3:].any()
        axis = _rounded(column[:3] if slides else column[3:])
        place = model.jointPlacements[k + 1]
        fixed, point = _rounded(place.rotation), _rounded(place.translation)
        position, speed, change = q[joint], dq[joint], ddq[joint]
        turn = np.eye(3, dtype=object)
        if slides:
            point = point + fixed @ axis * position
        else:
            angle = code.let(position, f'q{number}')
            c = code.let(Expression.call('std::cos', angle), f'c{number}')
            s = code.let(Expression.call('std::sin', angle), f's{number}')
            along = np.outer(axis, axis)
            turn = along + c * (turn - along) + s * _skew(axis)
        w, dw, a = base
        if parent >= 0:
            before = links[parent]
            w, dw, a = before.w, before.dw, before.a + before.U @ point
        w, dw, a = (
            code.vector(turn.T @ code.vector(fixed.T @ v, f'{name}f'), f'{name}t')
            for v, name in ((w, f'w{number}'), (dw, f'dw{number}'), (a, f'a{number}'))
        )
        if slides:
            a = a + 2.0 * speed * (_skew(w) @ axis) + axis * change
        else:
            w, dw = w + axis * speed, dw + _skew(w) @ axis * speed + axis * change
        w, dw, a = (code.vector(v, f'{s}{number}') for v, s in ((w, 'w'), (dw, 'dw'), (a, 'a')))
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
        f, n = f'f{joint + 1}', f'n{joint + 1}'
        F, N = code.vector(link.F, f), code.vector(link.N, n)
        tau[joint] = link.axis @ (F if link.slides else N)
        if parent >= 0:
            F, N = code.vector(link.turn @ F, f'{f}t'), code.vector(link.turn @ N, f'{n}t')
            F = code.vector(link.fixed @ F, f'{f}f')
            links[parent].F = links[parent].F + F
            links[parent].N = links[parent].N + link.fixed @ N + _skew(link.point) @ F
    return jacobian.T @ tau


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=float), DECIMALS).astype(object)


def _skew(v: Any) -> Any:
    """Return [v]×, with which [v]× r = v × r."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]], dtype=object)


def _symmetric(xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> Any:
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)
