"""The sections of a configuration file, but for its rules: what may be written, what is default."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from otel_eval.quantities import Count, Duration, Listen, Mib, Positive, Regex, Target

OWN_LABELS: Final = frozenset({"agent", "rule", "evaluator", "verdict", "code", "le", "quantile"})
IDENTITIES: Final = frozenset(
    {
        "enduser.id",
        "gen_ai.conversation.id",
        "langfuse.session.id",
        "langfuse.user.id",
        "session.id",
        "span_id",
        "trace_id",
        "user.id",
    }
)
"""Attributes with a value per person, session or trace: as labels they would never end."""

_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class Section(BaseModel):
    """Frozen and closed; the text below a field is its description in the JSON Schema."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, use_attribute_docstrings=True
    )


class Tls(Section):
    """Our certificate, and whose certificates we believe."""

    cert_file: Path | None = None
    """Our certificate chain, PEM; read again when it changes."""
    key_file: Path | None = None
    """The private key of the certificate, PEM."""

    @model_validator(mode="after")
    def _is_a_pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together; give both")
        return self


class ServerTls(Tls):
    """TLS for who sends to us; off without a certificate."""

    client_ca_file: Path | None = None
    """Only clients with a certificate of this authority are let in (mTLS)."""

    @model_validator(mode="after")
    def _has_a_certificate(self) -> Self:
        if self.client_ca_file is not None and self.cert_file is None:
            raise ValueError("client_ca_file needs cert_file and key_file")
        return self


class ClientTls(Tls):
    """TLS towards an https:// endpoint; the system's authorities unless given."""

    ca_file: Path | None = None
    """The authority that the endpoint's certificate must be of, PEM."""


class Grpc(Section):
    """OTLP over gRPC."""

    endpoint: Listen = "127.0.0.1:4317"
    """Where to listen: host:port."""
    tls: ServerTls = ServerTls()
    max_message_mib: Mib = 64.0
    """The largest request, after decompression."""


class Http(Section):
    """OTLP over HTTP, as protobuf or JSON."""

    endpoint: Listen = "127.0.0.1:4318"
    """Where to listen: host:port."""
    tls: ServerTls = ServerTls()
    max_message_mib: Mib = 64.0
    """The largest request, after decompression."""


class Auth(Section):
    """Who may send; everyone unless a token is given."""

    bearer_tokens: tuple[str, ...] = Field(default=(), repr=False)
    """Any of these is let in; several at a time let you change them one by one."""
    token_file: Path | None = None
    """A file with further tokens, one per line; read again when it changes."""

    @field_validator("bearer_tokens")
    @classmethod
    def _no_empty_token(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(token.strip() for token in value):
            raise ValueError("an empty token lets everyone in; leave it out or give a real one")
        return value


class Otlp(Section):
    """The OTLP receivers of the sidecar."""

    grpc: Grpc = Grpc()
    http: Http = Http()
    auth: Auth = Auth()


class Receivers(Section):
    """Where spans come from."""

    otlp: Otlp = Otlp()


class Admin(Section):
    """The port for operators: /metrics, /healthz, /readyz."""

    endpoint: Listen = "127.0.0.1:9464"
    """Where to listen: host:port."""


class GroupingSettings(Section):
    """When traces and sessions are complete, and how much of them is kept in memory."""

    settle: Duration = 10.0
    """How long after its last span a trace with an ended root closes; in the exporter 2s."""
    local_settle: Duration = 30.0
    """The same for a trace of which only the part of some processes arrives."""
    idle: Duration = 300.0
    """How long after its last span a trace without a root closes."""
    max_age: Positive = 3600.0
    """How long a trace may stay open."""
    session_idle: Duration = 600.0
    """How long after its last trace a session closes."""
    session_max_age: Positive = 86400.0
    """How long a session may stay open."""
    max_open_traces: Count = 50_000
    """Beyond, the least recently active trace is closed and scored."""
    max_open_sessions: Count = 50_000
    """Beyond, the least recently active session is closed and scored."""
    max_spans_per_trace: Count = 10_000
    """Beyond, the trace is closed and scored."""
    max_trace_mib: Mib = 32.0
    """Beyond, the trace is closed and scored."""
    max_buffer_mib: Mib = Field(default=512.0, validate_default=True)
    """All open traces and sessions together."""

    @field_validator("max_buffer_mib")
    @classmethod
    def _one_trace_fits(cls, value: float, info: ValidationInfo) -> float:
        if info.data.get("max_trace_mib", 0) > value:
            raise ValueError("must not be smaller than max_trace_mib")
        return value


class Extract(Section):
    """Extra attribute names, tried before those that the dialects know."""

    agent_keys: tuple[str, ...] = ()
    """Attributes that hold the agent's name."""
    session_keys: tuple[str, ...] = ()
    """Attributes that hold the session's id."""


class OtlpTarget(Section):
    """How to reach an OTLP endpoint."""

    protocol: Literal["grpc", "http"] = "grpc"
    """`http` is OTLP over HTTP with protobuf."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """Sent with every request, for example `authorization`."""
    tls: ClientTls = ClientTls()
    compression: Literal["gzip", "none"] = "gzip"
    timeout: Positive = 10.0
    """How long one request may take."""


class Forward(OtlpTarget):
    """Where the spans go on to; nowhere unless given."""

    endpoint: Target
    """https:// is encrypted, http:// is not."""
    mode: Literal["through", "attach"] = "through"
    """`through`: at once and unchanged. `attach`: anchors wait for their scores as span events."""
    queue_mib: Mib = 256.0
    """What may wait for the endpoint; when full, senders are asked to try again later."""
    max_hold: Duration = 30.0
    """With `attach`, how long an anchor may wait."""


class Logs(OtlpTarget):
    """Where log events go in the sidecar; all as in `forward` unless an endpoint is given."""

    endpoint: Target | None = None
    """https:// is encrypted, http:// is not."""


class Metrics(OtlpTarget):
    """The labels of metrics, and where the sidecar pushes them to."""

    endpoint: Target | None = None
    """Without it nothing is pushed: /metrics is there to be scraped."""
    interval: Positive = 60.0
    """How often metrics are pushed."""
    labels: dict[str, str] = {}
    """Extra labels by name: the attribute of the anchor, or else of its resource."""
    max_agents: int = Field(default=500, ge=0)
    """Further agents are counted as `__other__`, but never those named in a rule."""

    @field_validator("labels")
    @classmethod
    def _labels_are_sound(cls, value: dict[str, str]) -> dict[str, str]:
        wrong = [text for text in map(_label_problem, value, value.values()) if text]
        if wrong:
            raise ValueError("\n".join(wrong))
        return value


def _label_problem(label: str, attribute: str) -> str | None:
    if not _LABEL.fullmatch(label):
        return f"{label}: no label name; use letters, digits and _"
    if label in OWN_LABELS:
        return f"{label}: otel_eval sets this label itself; choose another name"
    if attribute in IDENTITIES:
        return f"{label}: {attribute} has a value of its own per session, trace or person"
    return None


class Emit(Section):
    """What is said about each evaluation, and where."""

    events: tuple[Literal["log", "span"], ...] = ("log", "span")
    """Log events, span events, both, or with [] neither."""
    content: bool = False
    """Whether arguments, results and judges' words may appear in events."""
    logs: Logs = Logs()
    metrics: Metrics = Metrics()


class Journal(Section):
    """A write-ahead file that saves what was acknowledged from kill -9; none unless given."""

    path: Path
    """A directory of its own."""
    sync: Literal["interval", "always"] = "interval"
    """`interval`: to disk every 200 ms. `always`: before each acknowledgement."""
    max_mib: Mib = 4096.0
    """When full, senders are asked to try again later."""


class Cache(Section):
    """Judgements kept by the hash of what was judged; none unless a path is given."""

    path: Path | None = None
    """An SQLite file."""
    max_mib: Mib = 256.0


def _names_provider(value: str) -> str:
    provider, _, model = value.partition(":")
    if not provider or not model:
        raise ValueError("no provider; write provider:model, such as openai:gpt-5-mini")
    return value


class Judge(Section):
    """The model that judges ask, unless an evaluator names its own."""

    model: Annotated[str, AfterValidator(_names_provider)] | None = None
    """`provider:model`, such as openai:…, anthropic:…, bedrock:…, google:…"""
    base_url: Target | None = None
    """Any server that speaks OpenAI's chat API, such as a local one."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Sent only if given: reasoning models refuse it."""
    timeout: Positive = 30.0
    """How long one judgement may take."""
    max_concurrency: Count = 4
    """How many judgements run at a time."""
    max_calls_per_minute: Count = 60
    """Beyond, evaluations are skipped with the code `budget`."""
    cache: Cache = Cache()
    redact: tuple[Regex, ...] = ()
    """RE2 expressions; what they match never leaves the process."""
    max_input_chars: Count = 60_000
    """Longer histories are cut, and the judge is told so."""


class Log(Section):
    """What the sidecar says about itself, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"
