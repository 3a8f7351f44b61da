"""OTLP's messages as protobuf describes them, but with some of their fields left as bytes.

Most attributes come again and again, with the same key and the same value. As bytes they can be
looked up, which takes a fraction of the time that it takes to read them out of their messages, or
to make messages of them. Spans that are only passed on need not be read at all.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.trace.v1 import trace_pb2


def with_bytes(
    theirs: FileDescriptor, *, package: str, fields: Container[str]
) -> Callable[[str], Any]:
    """Looks up messages of one of OTLP's files by name; the same on the wire, but `fields`, such as
    `Span.attributes`, are serialized messages instead of messages."""
    pool = Default()
    pool.AddSerializedFile(_description(theirs, package, fields).SerializeToString())
    return lambda name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def _description(
    theirs: FileDescriptor, package: str, fields: Container[str]
) -> FileDescriptorProto:
    """OTLP's own, in another package and with these fields changed."""
    file = FileDescriptorProto()
    theirs.CopyToProto(file)
    file.name, file.package = f"{package.replace('.', '/')}.proto", package
    for holder, message in _named(file.message_type):
        for field in message.field:
            if field.type_name.startswith(f".{theirs.package}."):
                field.type_name = field.type_name.replace(theirs.package, package)
            if f"{holder}.{field.name}" in fields:
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")
    return file


def _named(
    messages: Iterable[DescriptorProto], within: str = ""
) -> Iterator[tuple[str, DescriptorProto]]:
    for message in messages:
        name = f"{within}{message.name}"
        yield name, message
        yield from _named(message.nested_type, f"{name}.")


TracesData: Final = with_bytes(
    trace_pb2.DESCRIPTOR, package="otel_eval.wire", fields={"Span.attributes"}
)("TracesData")
"""A trace_pb2.TracesData but for `Span.attributes`."""
