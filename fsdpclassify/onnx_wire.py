"""Reads the two facts of an ONNX file that are checked before a runtime may load it.

Input: the bytes of a model; output: whether any tensor lives in another file, and the shapes of the
graph's outputs. Only the protobuf wire format is walked, so nothing of the file is executed and the
`onnx` package is not needed at run time. A damaged file raises `ValueError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Field numbers of onnx.proto: where each message keeps the messages that may hold a tensor.
_GRAPH_OF_MODEL = 7
_FUNCTIONS_OF_MODEL = 25
_NODES, _TENSORS, _SPARSE, _OUTPUTS = 1, 5, 15, 12
_ATTRIBUTES_OF_NODE = 5
_NODES_OF_FUNCTION = 7
_TENSOR_OF_ATTRIBUTE = {5, 10}
_GRAPH_OF_ATTRIBUTE = {6, 11}
_SPARSE_OF_ATTRIBUTE = {22, 23}
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14
_MAX_DEPTH = 32
#: Runs of an attribute's floats (field 7) and integers (field 8): trees hold thousands, and none can be a tensor.
_NUMBERS = re.compile(rb"(?:\x3d[\s\S]{4}|\x40[\x80-\xff]{0,9}[\x00-\x7f])+")


def output_shapes(model: bytes) -> dict[str, tuple[int | str | None, ...]]:
    """Return the shape of each graph output by name; a dimension is a size, a symbol, or unknown."""
    shapes = {}
    for graph in _messages(model, {_GRAPH_OF_MODEL}):
        for value in _messages(graph, {_OUTPUTS}):
            name = next((bytes(v).decode() for v in _messages(value, {1})), "")
            shapes[name] = tuple(
                _dimension(dimension)
                for kind in _messages(value, {2})
                for tensor in _messages(kind, {1})
                for shape in _messages(tensor, {2})
                for dimension in _messages(shape, {1})
            )
    return shapes


def has_external_data(model: bytes) -> bool:
    """Whether any tensor of the model, in subgraphs and functions too, is stored outside the file."""
    graphs = any(_graph_is_external(graph, 0) for graph in _messages(model, {_GRAPH_OF_MODEL}))
    return graphs or any(
        _node_is_external(node, 0)
        for function in _messages(model, {_FUNCTIONS_OF_MODEL})
        for node in _messages(function, {_NODES_OF_FUNCTION})
    )


def _graph_is_external(graph: memoryview, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        raise ValueError("subgraphs are nested too deeply")
    return (
        any(map(_tensor_is_external, _messages(graph, {_TENSORS})))
        or any(map(_sparse_is_external, _messages(graph, {_SPARSE})))
        or any(_node_is_external(node, depth) for node in _messages(graph, {_NODES}))
    )


def _node_is_external(node: memoryview, depth: int) -> bool:
    return any(
        any(map(_tensor_is_external, _messages(attribute, _TENSOR_OF_ATTRIBUTE)))
        or any(map(_sparse_is_external, _messages(attribute, _SPARSE_OF_ATTRIBUTE)))
        or any(_graph_is_external(graph, depth + 1) for graph in _messages(attribute, _GRAPH_OF_ATTRIBUTE))
        for attribute in _messages(node, {_ATTRIBUTES_OF_NODE})
    )


def _sparse_is_external(sparse: memoryview) -> bool:
    return any(map(_tensor_is_external, _messages(sparse, {1, 2})))


def _tensor_is_external(tensor: memoryview) -> bool:
    return any(field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value != 0) for field, value in _fields(tensor))


def _dimension(dimension: memoryview) -> int | str | None:
    for field, value in _fields(dimension):
        if field == 1 and isinstance(value, int):
            return value
        if field == 2 and isinstance(value, memoryview):
            return bytes(value).decode()
    return None


def _messages(data: bytes | memoryview, wanted: set[int]) -> Iterator[memoryview]:
    """The length-delimited fields with one of the wanted numbers."""
    for field, value in _fields(memoryview(data)):
        if field in wanted:
            if not isinstance(value, memoryview):
                raise ValueError(f"field {field} is not a message")
            yield value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of one message, but for plain numbers of attributes: number, and value as an integer or as bytes."""
    at = 0
    while at < len(data):
        if (run := _NUMBERS.match(data, at)) is not None:
            at = run.end()
            continue
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield field, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} is not used by ONNX")
        if at + size > len(data):
            raise ValueError("the file ends inside a field")
        yield field, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("the file ends inside a number")
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a number is longer than ten bytes")
