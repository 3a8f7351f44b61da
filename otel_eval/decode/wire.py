"""OTLP's trace data as protobuf describes it, but with the attributes of spans left as bytes.

Most attributes come again and again, with the same key and the same value. As bytes they can be
looked up, which takes a fraction of the time that it takes to read them out of their messages.
"""

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.proto.trace.v1 import trace_pb2

_PACKAGE: Final = "otel_eval.wire"


def _description() -> FileDescriptorProto:
    """OTLP's own, in another package and with one field changed: the same on the wire."""
    file = FileDescriptorProto()
    trace_pb2.DESCRIPTOR.CopyToProto(file)
    theirs, ours = f".{file.package}.", f".{_PACKAGE}."
    file.name, file.package = "otel_eval/wire.proto", _PACKAGE
    for field in _fields(file.message_type):
        if field.type_name.startswith(theirs):
            field.type_name = field.type_name.replace(theirs, ours)
    span = next(each for each in file.message_type if each.name == "Span")
    attributes = next(each for each in span.field if each.name == "attributes")
    attributes.type = FieldDescriptorProto.TYPE_BYTES
    attributes.ClearField("type_name")
    return file


def _fields(messages: Iterable[Any]) -> Iterable[FieldDescriptorProto]:
    for message in messages:
        yield from message.field
        yield from _fields(message.nested_type)


def _traces_data() -> Any:
    pool = Default()
    pool.AddSerializedFile(_description().SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.TracesData"))


TracesData: Final = _traces_data()
"""A trace_pb2.TracesData but for `Span.attributes`: a list of serialized KeyValues."""
