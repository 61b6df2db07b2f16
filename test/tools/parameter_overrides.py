"""A configuration as overrides of parameters, to compose nodes in one process."""

from typing import Any

from rclpy.parameter import Parameter


def parameter_overrides(values: dict[str, Any], prefix: str = '') -> list[Parameter]:
    """Turn a nested mapping into parameter overrides."""
    result = []
    for key, value in values.items():
        name = f'{prefix}{key}'
        if isinstance(value, dict):
            result += parameter_overrides(value, f'{name}.')
        elif isinstance(value, list | tuple) and not value:
            result.append(Parameter(name, Parameter.Type.NOT_SET))
        else:
            value = list(value) if isinstance(value, tuple) else value
            result.append(Parameter(name, value=value))
    return result
