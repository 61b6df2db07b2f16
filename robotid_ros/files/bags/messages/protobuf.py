"""Messages of Protocol Buffers, read by the definition that MCAP keeps beside them."""

from collections.abc import Callable, Mapping
from typing import Any


def parser_of(definition: bytes, message_type: str) -> Callable[[bytes], dict[str, Any]]:
    """
    Return what turns messages of a type into {field: number, text, list or further fields}.

    Parameters
    ----------
    definition : a FileDescriptorSet
    message_type : full name

    Raises
    ------
    DecodeError, TypeError, LookupError : the definition is damaged, or lacks the type

    """
    from google.protobuf import descriptor_pb2, message_factory

    files = descriptor_pb2.FileDescriptorSet.FromString(definition).file
    message = message_factory.GetMessages(files)[message_type]
    return lambda data: _fields(message.FromString(data))


def _fields(message: Any) -> dict[str, Any]:
    """Return the fields of a message; numbers that are 0, which are not sent, as well."""
    unset = {
        field.name: field.default_value
        for field in message.DESCRIPTOR.fields
        if field.message_type is None and field.default_value not in ('', b'')
    }
    return unset | {field.name: _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors='replace')
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items()}
    return _fields(value) if hasattr(value, 'DESCRIPTOR') else [_value(item) for item in value]
