"""Mutations of a module's source: small mistakes that a test has to see."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FLIPPED = {
    ast.Lt: '>', ast.LtE: '>=', ast.Gt: '<', ast.GtE: '<=', ast.Eq: '!=', ast.NotEq: '=='
}  # fmt: skip
# Functions that are replaced by their first argument.
TRANSPARENT = frozenset(
    'abs sqrt exp log tanh arctan sign cbrt sin cos maximum minimum clip cumsum gradient diff '
    'decimate filter_without_phase lowpass'.split()
)
# Numbers below guard against a division by zero or rounding: a factor there changes nothing.
GUARD = 1e-6
FACTOR = 3  # of a constant


@dataclass(frozen=True)
class Mutation:
    """One change of the source of a module, from `start` to `stop` in its bytes."""

    module: str
    line: int
    kind: str
    old: str
    new: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """What `--only` looks for."""
        return f'{self.module}:{self.line} {self.change}'

    @property
    def change(self) -> str:
        """What is changed, wherever in its module."""
        return f'{self.kind}: {self.old} → {self.new}'

    def apply(self, source: str) -> str:
        """Return the source with the mistake."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.stop :]).decode()


def mutations(module: str, source: str) -> list[Mutation]:
    """Return all mutations of the functions of a module, in the order of its lines."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = lines[node.lineno - 1] + node.col_offset
        return start, lines[node.end_lineno - 1] + node.end_col_offset

    found = []
    for node in _expressions(ast.parse(source)):
        for kind, target, new in _changes(node):
            start, stop = place(target)
            old = source.encode()[start:stop].decode()
            found.append(Mutation(module, target.lineno, kind, old, new, start, stop))
    return sorted(found, key=lambda each: (each.start, each.stop, each.new))


def _expressions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what functions compute: no annotations, errors, or texts for a user."""
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda))
    seen = set[int]()
    for function in functions:
        stack: list[ast.AST] = (
            list(function.body) if isinstance(function, ast.FunctionDef) else [function.body]
        )
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) or id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            children = ast.iter_child_nodes(node)
            skipped = getattr(node, 'annotation', None)
            stack += [child for child in children if child is not skipped]


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield kind, node to replace, and what by."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPPED:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        if not _is_guard(node):
            yield 'comparison', node, f'({left} {FLIPPED[type(node.ops[0])]} {right})'
    elif isinstance(node, ast.BinOp) and not _is_guard(node):
        left, right = f'({ast.unparse(node.left)})', f'({ast.unparse(node.right)})'
        if isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node):
            yield 'term dropped', node, left
            other = '-' if isinstance(node.op, ast.Add) else '+'
            yield 'sign', node, f'({left} {other} {right})'
        elif isinstance(node.op, ast.Mult | ast.Div):
            yield 'factor dropped', node, left
        elif isinstance(node.op, ast.Pow):
            yield 'power dropped', node, left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield 'sign', node, f'({ast.unparse(node.operand)})'
    elif isinstance(node, ast.Constant) and type(node.value) is float and abs(node.value) > GUARD:
        yield 'constant', node, repr(FACTOR * node.value)
    elif isinstance(node, ast.Call) and node.args and _name(node.func) in TRANSPARENT:
        if not _is_guard(node) and not isinstance(node.args[0], ast.Starred):
            yield 'call dropped', node, f'({ast.unparse(node.args[0])})'
    elif isinstance(node, ast.If) and not isinstance(node.body[0], ast.Raise):
        yield 'branch skipped', node.test, 'False'


def _name(function: ast.expr) -> str:
    return getattr(function, 'attr', getattr(function, 'id', ''))


def _is_guard(node: ast.AST) -> bool:
    """Tell whether an operand is a number that guards against division by zero or rounding."""
    values = (n.value for n in ast.iter_child_nodes(node) if isinstance(n, ast.Constant))
    return any(type(value) is float and abs(value) <= GUARD for value in values)


def _is_text(node: ast.BinOp) -> bool:
    """Tell whether texts, lists or tuples are joined."""
    joined = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)
    return any(
        isinstance(n, joined) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in (node.left, node.right)
    )
