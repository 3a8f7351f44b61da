/* OTLP/protobuf trace requests into the model's Spans: `Decoder.decode` of `_otel_eval_native`.

   Contract: it gives what `otlp.decode_in_python` gives, or None. Whatever is malformed, unusual or
   not worth its code here is declined, and Python, which is the reference, answers or raises. So no
   request is read in two ways, and no error is worded twice.

   Surprise: Spans are frozen dataclasses, and their slots are filled by offset. The offsets are
   found when Python hands in the classes, so `model.py` stays the only place that defines them; a
   class with other slots than those named here refuses the Decoder.

   Functions return 1 to go on, or a new object. They fail with -1 or NULL: with an exception set
   where something is really wrong, and to decline without one, or with a UnicodeDecodeError. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

/* Raise it with every change of what comes out or goes in: Python leaves other versions alone, so
   that an extension installed earlier does no harm to a newer checkout. */
#define VERSION 1

#define MOST_LEVELS 32 /* of values in values; protobuf's own limit is higher */
#define LONGEST_KEPT 48
#define KEYS 2048 /* how many of each are kept: powers of two */
#define VALUES 4096
#define IDS 1024
#define DIGITS 19 /* as `integers.DIGITS` */

/* ---- The wire ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
#define TAG(number, type) ((number) << 3 | (type))

typedef struct {
    const uint8_t *at, *end;
} Bytes;

typedef struct {
    uint32_t tag;
    uint64_t number; /* of all types but BYTES */
    Bytes bytes;
} Field;

static const uint8_t NO_BYTES[1];
#define EMPTY ((Bytes){NO_BYTES, NO_BYTES})

static inline Py_ssize_t size_of(Bytes raw) { return raw.end - raw.at; }

/* Spelled in bytes: compilers make one load of it, and it is right on every machine. */
static inline uint64_t load32(const uint8_t *at) {
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24;
}

static inline uint64_t load64(const uint8_t *at) { return load32(at) | load32(at + 4) << 32; }

static inline int varint(Bytes *in, int longest, uint64_t *found) {
    *found = 0;
    for (int i = 0; i < longest && in->at < in->end; i++) {
        uint64_t byte = *in->at++;
        *found |= (byte & 0x7f) << 7 * i;
        if (byte < 0x80) return i == 9 && byte > 1 ? -1 : 1; /* no more than 64 bits */
    }
    return -1;
}

/* 1 and the next field, 0 at the end, -1 where the bytes are none: groups are no longer written. */
static inline int next_field(Bytes *in, Field *field) {
    uint64_t tag, size;
    if (in->at == in->end) return 0;
    if (varint(in, 5, &tag) < 0 || tag > UINT32_MAX || tag >> 3 == 0) return -1;
    field->tag = (uint32_t)tag;
    switch (tag & 7) {
    case VARINT:
        return varint(in, 10, &field->number);
    case BYTES:
        if (varint(in, 5, &size) < 0 || size > (uint64_t)size_of(*in)) return -1;
        field->bytes = (Bytes){in->at, in->at + size};
        in->at += size;
        return 1;
    case FIXED64:
        if (size_of(*in) < 8) return -1;
        field->number = load64(in->at);
        in->at += 8;
        return 1;
    case FIXED32:
        if (size_of(*in) < 4) return -1;
        field->number = load32(in->at);
        in->at += 4;
        return 1;
    }
    return -1;
}

/* Loops over the fields of a message, as the cases of a switch; then `more` is 0, or -1 if it
   failed. What there is no case for is skipped, as protobuf does with fields it does not know. */
#define EACH_FIELD(in) while (more > 0 && (more = next_field(&(in), &field)) > 0) switch (field.tag)

/* A field that comes once: of several numbers protobuf takes the last, and of several messages it
   makes one. No writer has them, so the second is declined. */
#define ONCE(id, type, place, part)                                                              \
    case TAG(id, type):                                                                            \
        if (seen & 1u << (id)) more = -1;                                                          \
        seen |= 1u << (id);                                                                        \
        place = field.part;                                                                        \
        break;
#define ONCE_BYTES(id, place) ONCE(id, BYTES, place, bytes)
#define ONCE_NUMBER(id, type, place) ONCE(id, type, place, number)
#define EVERY(id, call)                                                                            \
    case TAG(id, BYTES):                                                                           \
        more = call;                                                                               \
        break;

/* ---- The decoder ---- */

#define MOST_SLOTS 14
typedef struct {
    PyTypeObject *type; /* borrowed from `given` */
    int count;
    Py_ssize_t offsets[MOST_SLOTS];
} Shape;

enum { SPAN, EVENT, LINK, STATUS, SCOPE, CLASSES };
enum { UNSET = CLASSES, NO_SCOPE, KINDS, CODES, REMOTE, BASE64, GIVEN };
static char *const NAMES[] = {"span",     "event", "link",         "status", "scope",  "unset",
                              "no_scope", "kinds", "status_codes", "remote", "base64", NULL};
static const char *const SLOTS[CLASSES][MOST_SLOTS + 1] = {
    [SPAN] = {"trace_id", "span_id", "parent_id", "parent_remote", "name", "kind", "start_ns",
              "end_ns", "status", "attributes", "events", "links", "resource", "scope"},
    [EVENT] = {"name", "time_ns", "attributes"},
    [LINK] = {"trace_id", "span_id", "attributes"},
    [STATUS] = {"code", "message"},
    [SCOPE] = {"name", "version"},
};

typedef struct {
    uint64_t high, low;
    PyObject *text;
} Id;

/* What comes again and again is made once, which saves time, and memory while spans are open. Every
   text has one place in its table, and who comes last has it. */
typedef struct {
    PyObject_HEAD
    PyObject *given[GIVEN], *nothing;
    Shape shapes[CLASSES];
    PyObject *keys[KEYS], *values[VALUES];
    Id trace_ids[IDS], span_ids[IDS];
} Decoder;

/* An instance with these values in its slots. Takes them over; where one is NULL, it fails. */
static PyObject *filled(const Shape *shape, PyObject **values) {
    int complete = 1;
    for (int i = 0; i < shape->count; i++) complete &= values[i] != NULL;
    PyObject *made = complete ? shape->type->tp_alloc(shape->type, 0) : NULL;
    for (int i = 0; i < shape->count; i++) {
        if (made != NULL) *(PyObject **)((char *)made + shape->offsets[i]) = values[i];
        else Py_XDECREF(values[i]);
    }
    return made;
}

/* Takes the item over; where it is NULL, it fails. */
static int append(PyObject *list, PyObject *item) {
    int more = list != NULL && item != NULL && PyList_Append(list, item) == 0 ? 1 : -1;
    Py_XDECREF(item);
    return more;
}

/* ---- Texts and ids ---- */

static inline uint64_t mixed(uint64_t hash) {
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static inline uint64_t hash_of(Bytes raw) {
    uint64_t rest = 0, hash = (uint64_t)size_of(raw);
    for (; size_of(raw) >= 8; raw.at += 8) hash = mixed(hash ^ load64(raw.at));
    while (raw.at < raw.end) rest = rest << 8 | *raw.at++;
    return mixed(hash ^ rest);
}

static inline PyObject *text_of(Bytes raw) {
    return PyUnicode_DecodeUTF8((const char *)raw.at, size_of(raw), NULL);
}

static PyObject *shared(PyObject **table, size_t places, Bytes raw, int interned) {
    Py_ssize_t size = size_of(raw);
    PyObject **place = size <= LONGEST_KEPT ? &table[hash_of(raw) & (places - 1)] : NULL;
    PyObject *kept = place != NULL ? *place : NULL;
    if (kept != NULL && PyUnicode_IS_COMPACT_ASCII(kept) && PyUnicode_GET_LENGTH(kept) == size &&
        memcmp(PyUnicode_1BYTE_DATA(kept), raw.at, (size_t)size) == 0) {
        return Py_NewRef(kept);
    }
    PyObject *text = text_of(raw);
    if (text == NULL || (place == NULL && !interned)) return text;
    if (interned) PyUnicode_InternInPlace(&text);
    if (place == NULL) return text;
    if (kept != NULL && PyUnicode_Compare(kept, text) == 0) { /* beyond ASCII */
        Py_DECREF(text);
        return Py_NewRef(kept);
    }
    Py_XSETREF(*place, Py_NewRef(text));
    return text;
}

static PyObject *key_of(Decoder *self, Bytes raw) {
    return shared(self->keys, KEYS, raw, 1);
}

static PyObject *word_of(Decoder *self, Bytes raw) {
    return shared(self->values, VALUES, raw, 0);
}

/* Of a text that no Span has: protobuf refuses the request if it is no UTF-8. */
static int checked(Bytes raw) {
    while (raw.at < raw.end && *raw.at < 0x80) raw.at++;
    if (raw.at == raw.end) return 1;
    PyObject *text = text_of(raw);
    Py_XDECREF(text);
    return text != NULL ? 1 : -1;
}

static int is_id(Bytes raw, Py_ssize_t size) {
    return size_of(raw) == size && (load64(raw.at) || load64(raw.end - 8));
}

static PyObject *id_of(Id *table, Bytes raw) {
    uint64_t high = load64(raw.at), low = load64(raw.end - 8);
    Id *place = &table[mixed(high ^ mixed(low)) & (IDS - 1)];
    if (place->text != NULL && place->high == high && place->low == low) {
        return Py_NewRef(place->text);
    }
    PyObject *text = PyUnicode_New(2 * size_of(raw), 127);
    if (text == NULL) return NULL;
    for (Py_UCS1 *to = PyUnicode_1BYTE_DATA(text); raw.at < raw.end; raw.at++) {
        *to++ = "0123456789abcdef"[*raw.at >> 4];
        *to++ = "0123456789abcdef"[*raw.at & 15];
    }
    Py_XDECREF(place->text);
    *place = (Id){high, low, Py_NewRef(text)};
    return text;
}

/* The name of an enum's number; one of a later version is as good as the first, which is unset. */
static PyObject *named(PyObject *names, uint64_t number) {
    if (number > INT32_MAX) return NULL; /* negative, or cut off by protobuf */
    int known = number < (uint64_t)PyTuple_GET_SIZE(names);
    return Py_NewRef(PyTuple_GET_ITEM(names, known ? (Py_ssize_t)number : 0));
}

/* ---- Attributes ---- */

static PyObject *value_of(Decoder *self, Bytes in, int levels);

static int put_pair(Decoder *self, PyObject *attributes, Bytes in, int levels) {
    Field field = {0};
    Bytes name = EMPTY, held = EMPTY;
    unsigned seen = 0;
    int more = attributes != NULL ? 1 : -1;
    EACH_FIELD(in) {
        ONCE_BYTES(1, name)
        ONCE_BYTES(2, held)
    }
    if (more < 0) return -1;
    PyObject *key = key_of(self, name);
    PyObject *value = key != NULL ? value_of(self, held, levels) : NULL;
    more = value != NULL && PyDict_SetItem(attributes, key, value) == 0 ? 1 : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return more;
}

static int put_value(Decoder *self, PyObject *list, Bytes in, int levels) {
    return append(list, value_of(self, in, levels));
}

/* Of an ArrayValue or a KeyValueList: both have what they hold in field 1. */
static PyObject *container_of(Decoder *self, PyObject *made, Bytes in, int levels,
                              int (*put)(Decoder *, PyObject *, Bytes, int)) {
    Field field = {0};
    int more = made != NULL && levels < MOST_LEVELS ? 1 : -1;
    EACH_FIELD(in) { EVERY(1, put(self, made, field.bytes, levels + 1)) }
    if (more < 0) Py_CLEAR(made);
    return made;
}

/* Of an AnyValue. Of several values protobuf takes the last, and a field that is unknown here may
   be a kind of value to a newer one: both are declined. */
static PyObject *value_of(Decoder *self, Bytes in, int levels) {
    Field field = {0};
    double real;
    int more = next_field(&in, &field);
    if (more == 0) Py_RETURN_NONE;
    if (more < 0 || in.at != in.end) return NULL;
    switch (field.tag) {
    case TAG(1, BYTES):
        return word_of(self, field.bytes);
    case TAG(2, VARINT):
        return field.number <= 1 ? PyBool_FromLong((long)field.number) : NULL;
    case TAG(3, VARINT):
        return PyLong_FromLongLong((int64_t)field.number);
    case TAG(4, FIXED64):
        memcpy(&real, &field.number, sizeof real);
        return PyFloat_FromDouble(real);
    case TAG(5, BYTES):
        return container_of(self, PyList_New(0), field.bytes, levels, put_value);
    case TAG(6, BYTES):
        return container_of(self, PyDict_New(), field.bytes, levels, put_pair);
    case TAG(7, BYTES):
        return PyObject_CallFunction(self->given[BASE64], "y#", (const char *)field.bytes.at,
                                     size_of(field.bytes));
    }
    return NULL;
}

/* ---- Spans ---- */

static PyObject *status_of(Decoder *self, Bytes in) {
    Field field = {0};
    Bytes message = EMPTY;
    uint64_t code = 0;
    unsigned seen = 0;
    int more = 1;
    EACH_FIELD(in) {
        ONCE_BYTES(2, message)
        ONCE_NUMBER(3, VARINT, code)
    }
    PyObject *name = more < 0 ? NULL : named(self->given[CODES], code);
    if (name == NULL) return NULL;
    if (name == PyTuple_GET_ITEM(self->given[CODES], 0) && size_of(message) == 0) {
        Py_DECREF(name);
        return Py_NewRef(self->given[UNSET]);
    }
    PyObject *values[] = {name, word_of(self, message)};
    return filled(&self->shapes[STATUS], values);
}

static PyObject *event_of(Decoder *self, Bytes in) {
    Field field = {0};
    Bytes name = EMPTY;
    uint64_t time_ns = 0;
    unsigned seen = 0;
    int more = 1;
    PyObject *attributes = PyDict_New();
    EACH_FIELD(in) {
        ONCE_NUMBER(1, FIXED64, time_ns)
        ONCE_BYTES(2, name)
        EVERY(3, put_pair(self, attributes, field.bytes, 0))
    }
    PyObject *text = more < 0 ? NULL : word_of(self, name);
    PyObject *values[] = {text, text ? PyLong_FromUnsignedLongLong(time_ns) : NULL, attributes};
    return filled(&self->shapes[EVENT], values);
}

static PyObject *link_of(Decoder *self, Bytes in) {
    Field field = {0};
    Bytes trace = EMPTY, span = EMPTY;
    unsigned seen = 0;
    int more = 1;
    PyObject *attributes = PyDict_New();
    EACH_FIELD(in) {
        ONCE_BYTES(1, trace)
        ONCE_BYTES(2, span)
        EVERY(3, checked(field.bytes)) /* trace_state */
        EVERY(4, put_pair(self, attributes, field.bytes, 0))
    }
    int valid = more == 0 && is_id(trace, 16) && is_id(span, 8);
    PyObject *values[] = {valid ? id_of(self->trace_ids, trace) : NULL,
                          valid ? id_of(self->span_ids, span) : NULL, attributes};
    return filled(&self->shapes[LINK], values);
}

/* What a span holds, as it is found: owned, and NULL where there is none. */
typedef struct {
    Bytes trace_id, span_id, parent_id, name, status;
    uint64_t flags, kind, start_ns, end_ns;
    PyObject *attributes, *events, *links;
} Draft;

static int append_late(PyObject **list, PyObject *item) {
    if (*list == NULL && item != NULL) *list = PyList_New(0);
    return append(*list, item);
}

static int read_span(Decoder *self, Bytes in, Draft *draft) {
    Field field = {0};
    unsigned seen = 0;
    int more = 1;
    EACH_FIELD(in) {
        ONCE_BYTES(1, draft->trace_id)
        ONCE_BYTES(2, draft->span_id)
        EVERY(3, checked(field.bytes)) /* trace_state */
        ONCE_BYTES(4, draft->parent_id)
        ONCE_BYTES(5, draft->name)
        ONCE_NUMBER(6, VARINT, draft->kind)
        ONCE_NUMBER(7, FIXED64, draft->start_ns)
        ONCE_NUMBER(8, FIXED64, draft->end_ns)
        EVERY(9, put_pair(self, draft->attributes, field.bytes, 0))
        EVERY(11, append_late(&draft->events, event_of(self, field.bytes)))
        EVERY(13, append_late(&draft->links, link_of(self, field.bytes)))
        ONCE_BYTES(15, draft->status)
        ONCE_NUMBER(16, FIXED32, draft->flags)
    }
    return more == 0 && is_id(draft->trace_id, 16) && is_id(draft->span_id, 8) ? 1 : -1;
}

static int append_span(Decoder *self, PyObject *spans, Bytes in, PyObject *resource,
                       PyObject *scope) {
    Draft draft = {EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, 0, 0, 0, 0, PyDict_New(), NULL, NULL};
    int read = read_span(self, in, &draft) > 0;
    PyObject *name = read ? word_of(self, draft.name) : NULL;
    PyObject *status = name != NULL ? status_of(self, draft.status) : NULL;
    if (status == NULL) {
        Py_XDECREF(draft.attributes);
        Py_XDECREF(draft.events);
        Py_XDECREF(draft.links);
        Py_XDECREF(name);
        return -1;
    }
    int parent = is_id(draft.parent_id, 8);
    PyObject *remote = PyTuple_GET_ITEM(self->given[REMOTE], draft.flags >> 8 & 3);
    PyObject *values[MOST_SLOTS] = {
        id_of(self->trace_ids, draft.trace_id),
        id_of(self->span_ids, draft.span_id),
        parent ? id_of(self->span_ids, draft.parent_id) : Py_NewRef(Py_None),
        Py_NewRef(parent ? remote : Py_None),
        name,
        named(self->given[KINDS], draft.kind),
        PyLong_FromUnsignedLongLong(draft.start_ns),
        PyLong_FromUnsignedLongLong(draft.end_ns),
        status,
        draft.attributes,
        draft.events != NULL ? draft.events : Py_NewRef(self->nothing),
        draft.links != NULL ? draft.links : Py_NewRef(self->nothing),
        Py_NewRef(resource),
        Py_NewRef(scope),
    };
    return append(spans, filled(&self->shapes[SPAN], values));
}

/* ---- What spans are in ---- */

/* Into the attributes that the spans of this resource share, be they read before it or after. */
static int read_resource(Decoder *self, Bytes in, PyObject *attributes) {
    Field field = {0};
    int more = 1;
    EACH_FIELD(in) {
        EVERY(1, put_pair(self, attributes, field.bytes, 0))
        EVERY(3, -1) /* entities: protobuf would look into them */
    }
    return more < 0 ? -1 : 1;
}

static PyObject *scope_of(Decoder *self, Bytes in) {
    Field field = {0};
    Bytes name = EMPTY, version = EMPTY;
    unsigned seen = 0;
    int more = 1;
    PyObject *unused = PyDict_New();
    if (unused == NULL) return NULL;
    EACH_FIELD(in) {
        ONCE_BYTES(1, name)
        ONCE_BYTES(2, version)
        EVERY(3, put_pair(self, unused, field.bytes, 0))
    }
    Py_DECREF(unused);
    if (more < 0) return NULL;
    if (size_of(name) == 0 && size_of(version) == 0) return Py_NewRef(self->given[NO_SCOPE]);
    PyObject *text = key_of(self, name);
    PyObject *values[] = {text, text ? key_of(self, version) : NULL};
    return filled(&self->shapes[SCOPE], values);
}

/* A scope that comes behind spans is declined: they have to have it. */
static int read_scope_spans(Decoder *self, Bytes in, PyObject *spans, PyObject *resource) {
    Field field = {0};
    PyObject *scope = NULL;
    int more = 1;
    EACH_FIELD(in) {
        EVERY(1, scope == NULL && (scope = scope_of(self, field.bytes)) != NULL ? 1 : -1)
    case TAG(2, BYTES):
        if (scope == NULL) scope = Py_NewRef(self->given[NO_SCOPE]);
        more = append_span(self, spans, field.bytes, resource, scope);
        break;
        EVERY(3, checked(field.bytes)) /* schema_url */
    }
    Py_XDECREF(scope);
    return more < 0 ? -1 : 1;
}

static int read_resource_spans(Decoder *self, Bytes in, PyObject *spans) {
    Field field = {0};
    int seen = 0, more = 1;
    PyObject *resource = PyDict_New();
    if (resource == NULL) return -1;
    EACH_FIELD(in) {
        EVERY(1, seen++ ? -1 : read_resource(self, field.bytes, resource))
        EVERY(2, read_scope_spans(self, field.bytes, spans, resource))
        EVERY(3, checked(field.bytes)) /* schema_url */
    }
    Py_DECREF(resource);
    return more < 0 ? -1 : 1;
}

static PyObject *decode(PyObject *decoder, PyObject *body) {
    if (!PyBytes_Check(body)) Py_RETURN_NONE;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(body);
    Bytes in = {start, start + PyBytes_GET_SIZE(body)};
    Field field = {0};
    PyObject *spans = PyList_New(0);
    int more = spans != NULL ? 1 : -1;
    EACH_FIELD(in) { EVERY(1, read_resource_spans((Decoder *)decoder, field.bytes, spans)) }
    if (more == 0) return spans;
    Py_XDECREF(spans);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* ---- The Decoder as Python sees it ---- */

/* Finds the slots of a class, which must have those that are named and no others. */
static int look_at(Shape *shape, PyObject *class, const char *const *slots) {
    shape->type = (PyTypeObject *)class;
    for (; slots[shape->count] != NULL; shape->count++) {
        PyObject *slot = PyObject_GetAttrString(class, slots[shape->count]);
        int fits = slot != NULL && Py_IS_TYPE(slot, &PyMemberDescr_Type);
        PyMemberDef *member = fits ? ((PyMemberDescrObject *)slot)->d_member : NULL;
        fits = fits && member->type == T_OBJECT_EX;
        shape->offsets[shape->count] = fits ? member->offset : 0;
        Py_XDECREF(slot);
        if (!fits) break;
    }
    Py_ssize_t size = (Py_ssize_t)(sizeof(PyObject) + (size_t)shape->count * sizeof(PyObject *));
    if (slots[shape->count] == NULL && shape->type->tp_basicsize == size) return 1;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s has other slots than expected", shape->type->tp_name);
    return -1;
}

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Decoder *self = (Decoder *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    PyObject **to = self->given;
    PyTypeObject *class = &PyType_Type, *tuple = &PyTuple_Type;
    int more = PyArg_ParseTupleAndKeywords(
                   args, kwargs, "$O!O!O!O!O!OOO!O!O!O:Decoder", (char **)NAMES, class, &to[SPAN],
                   class, &to[EVENT], class, &to[LINK], class, &to[STATUS], class, &to[SCOPE],
                   &to[UNSET], &to[NO_SCOPE], tuple, &to[KINDS], tuple, &to[CODES], tuple,
                   &to[REMOTE], &to[BASE64])
                   ? 1
                   : -1;
    for (int i = 0; i < GIVEN; i++) Py_XINCREF(to[i]);
    for (int i = 0; more > 0 && i < CLASSES; i++) more = look_at(&self->shapes[i], to[i], SLOTS[i]);
    if (more > 0 && (!PyTuple_GET_SIZE(to[KINDS]) || !PyTuple_GET_SIZE(to[CODES]) ||
                     PyTuple_GET_SIZE(to[REMOTE]) != 4)) {
        PyErr_SetString(PyExc_ValueError, "expected kinds, status codes, and four of remote");
        more = -1;
    }
    if (more < 0 || (self->nothing = PyTuple_New(0)) == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static void clear_all(PyObject **texts, size_t count) {
    for (size_t i = 0; i < count; i++) Py_CLEAR(texts[i]);
}

/* No garbage collection: a Decoder is not in a cycle, and lives as long as the process does. */
static void decoder_dealloc(PyObject *decoder) {
    Decoder *self = (Decoder *)decoder;
    PyTypeObject *type = Py_TYPE(self);
    clear_all(self->given, GIVEN);
    clear_all(&self->nothing, 1);
    clear_all(self->keys, KEYS);
    clear_all(self->values, VALUES);
    for (int i = 0; i < IDS; i++) {
        Py_CLEAR(self->trace_ids[i].text);
        Py_CLEAR(self->span_ids[i].text);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef decoder_methods[] = {
    {"decode", decode, METH_O, "The spans of a request, or None to decline it."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot decoder_slots[] = {
    {Py_tp_doc, "Reads requests, into the classes that it is given."},
    {Py_tp_new, decoder_new},
    {Py_tp_dealloc, decoder_dealloc},
    {Py_tp_methods, decoder_methods},
    {0, NULL},
};

static PyType_Spec decoder_spec = {
    .name = "_otel_eval_native.Decoder",
    .basicsize = sizeof(Decoder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = decoder_slots,
};

/* ---- The module ---- */

static inline int is_digit(int kind, const void *data, Py_ssize_t at) {
    Py_UCS4 letter = PyUnicode_READ(kind, data, at);
    return letter >= '0' && letter <= '9';
}

/* As `integers.has_long_integer`: so many digits in a row cannot lie between two characters of
   every 19th, and only around one that is a digit are others looked at. */
static PyObject *has_long_integer(PyObject *Py_UNUSED(module), PyObject *text) {
    if (!PyUnicode_Check(text)) {
        return PyErr_Format(PyExc_TypeError, "a text expected, not %s", Py_TYPE(text)->tp_name);
    }
#if PY_VERSION_HEX < 0x030c0000
    if (PyUnicode_READY(text) < 0) return NULL;
#endif
    int kind = (int)PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    Py_ssize_t length = PyUnicode_GET_LENGTH(text), at = DIGITS - 1;
    for (; at < length; at += DIGITS) {
        if (!is_digit(kind, data, at)) continue;
        Py_ssize_t first = at;
        while (first > 0 && is_digit(kind, data, first - 1)) first--;
        while (++at < length && is_digit(kind, data, at)) continue;
        if (at - first >= DIGITS) Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
}

static PyMethodDef methods[] = {
    {"has_long_integer", has_long_integer, METH_O, "As otel_eval.integers has it."},
    {NULL, NULL, 0, NULL},
};

static int exec_module(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &decoder_spec, NULL);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Decoder", type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, exec_module}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_otel_eval_native",
    .m_doc = "The compiled part of otel_eval; see otel_eval/native.py.",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__otel_eval_native(void) { return PyModuleDef_Init(&module); }
