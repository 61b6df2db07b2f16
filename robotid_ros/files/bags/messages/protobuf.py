"""
Messages of Protocol Buffers, read by the definition that MCAP keeps beside them.

A definition is a message itself (descriptor.proto): files with messages, these with fields.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
import struct
from typing import Any

# Wire types.
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_MESSAGE, _STRING, _BYTES, _REPEATED = 11, 9, 12, 3
# Types of fields of fixed length, and signed ones of variable length.
_FIXED = {1: '<d', 2: '<f', 6: '<Q', 7: '<I', 15: '<i', 16: '<q'}
_SIGNED, _ZIGZAG = (3, 5), (17, 18)
MAX_DEPTH = 64


@dataclass(frozen=True)
class _Field:
    name: str
    kind: int
    repeated: bool
    message: str


Fields = Mapping[int, _Field]


def parser_of(definition: bytes, message_type: str) -> Callable[[bytes], dict[str, Any]]:
    """
    Return what turns messages of a type into {field: number, text, list or further fields}.

    Parameters
    ----------
    definition : a FileDescriptorSet
    message_type : full name

    Raises
    ------
    ValueError, LookupError : the definition is damaged, or lacks the type

    """
    types: dict[str, Fields] = {}
    for file in _of(definition, 1):
        package = b''.join(_of(file, 2)).decode()
        for message in _of(file, 4):
            _declare(types, f'{package}.' if package else '', message)
    fields = types[message_type]
    return lambda data: _decode(data, fields, types, 0)


def _declare(types: dict[str, Fields], prefix: str, message: bytes) -> None:
    name = prefix + b''.join(_of(message, 1)).decode()
    fields = {}
    for field in _of(message, 2):
        values = dict(_parts(field))
        kind, label = int(values.get(5, 0)), values.get(4)
        other = bytes(values.get(6, b'')).decode().lstrip('.')
        fields[int(values[3])] = _Field(values[1].decode(), kind, label == _REPEATED, other)
    types[name] = fields
    for nested in _of(message, 3):
        _declare(types, f'{name}.', nested)


def _of(data: bytes, number: int) -> list[bytes]:
    return [value for own, value in _parts(data) if own == number]


def _parts(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number of each field and its bytes, or its number where its length varies."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        wire = key & 7
        if wire == _VARINT:
            value: Any
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if wire == _LENGTH:
            size, place = _varint(data, place)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f'wire type {wire} is not known')
        if place + size > len(data):
            raise ValueError('a field is longer than its message')
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError('a number does not end')
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _decode(
    data: bytes, fields: Fields, types: Mapping[str, Fields], depth: int
) -> dict[str, Any]:
    """Return the fields of a message; numbers that are 0, which are not sent, as well."""
    if depth > MAX_DEPTH:
        raise ValueError('messages are nested too deeply')
    result: dict[str, Any] = {
        field.name: [] if field.repeated else 0
        for field in fields.values()
        if field.repeated or field.kind not in (_MESSAGE, _STRING, _BYTES)
    }
    for number, raw in _parts(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.kind == _MESSAGE:
            found = [_decode(raw, types[field.message], types, depth + 1)]
        elif field.kind in (_STRING, _BYTES):
            found = [raw.decode(errors='replace')]
        else:
            found = _numbers(raw, field.kind)
        if field.repeated:
            result[field.name] += found
        elif found:
            result[field.name] = found[-1]
    return result


def _numbers(raw: Any, kind: int) -> list[Any]:
    """Return one number, or those of a packed list."""
    if kind in _FIXED:
        return [x for (x,) in struct.iter_unpack(_FIXED[kind], raw)]
    values, place = [raw] if isinstance(raw, int) else [], 0
    while not isinstance(raw, int) and place < len(raw):
        value, place = _varint(raw, place)
        values.append(value)
    if kind in _ZIGZAG:
        return [(value >> 1) ^ -(value & 1) for value in values]
    return [value - 2**64 if kind in _SIGNED and value >= 2**63 else value for value in values]
