/* Frozen records, made quickly: `Maker` of `_otel_eval_records`, for `drafts.quick`.

   Contract: a Maker takes the fields of a frozen, slotted dataclass by keyword and gives an instance
   of it, as the class itself would.

   Surprise: the slots are filled by their offsets, so what the class does when attributes are set,
   which is to refuse, is not asked. A class whose fields are no slots refuses the Maker. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define VERSION 1 /* as in native.c */
#define MOST_FIELDS 32

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *record;
    Py_ssize_t count;
    PyObject *names[MOST_FIELDS], *defaults[MOST_FIELDS]; /* no default: NULL */
    Py_ssize_t offsets[MOST_FIELDS];
} Maker;

static inline PyObject **slot_of(Maker *self, PyObject *made, Py_ssize_t field) {
    return (PyObject **)((char *)made + self->offsets[field]);
}

/* Names are interned nearly always, and most callers name the fields in their order. */
static Py_ssize_t field_of(Maker *self, PyObject *name, Py_ssize_t likely) {
    if (likely < self->count && self->names[likely] == name) return likely;
    for (Py_ssize_t at = 0; at < self->count; at++) {
        if (self->names[at] == name) return at;
    }
    for (Py_ssize_t at = 0; at < self->count; at++) {
        if (PyUnicode_Compare(self->names[at], name) == 0) return at;
    }
    return -1;
}

static PyObject *make(PyObject *maker, PyObject *const *args, size_t given, PyObject *names) {
    Maker *self = (Maker *)maker;
    const char *record = self->record->tp_name;
    if (PyVectorcall_NARGS(given) > 0) {
        return PyErr_Format(PyExc_TypeError, "%s takes its fields by name", record);
    }
    PyObject *made = self->record->tp_alloc(self->record, 0);
    if (made == NULL) return NULL;
    Py_ssize_t field = -1, count = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *name = PyTuple_GET_ITEM(names, at);
        field = field_of(self, name, field + 1);
        if (field < 0) {
            PyErr_Format(PyExc_TypeError, "%s has no field %R", record, name);
            Py_DECREF(made);
            return NULL;
        }
        Py_XSETREF(*slot_of(self, made, field), Py_NewRef(args[at])); /* odd names come twice */
    }
    for (Py_ssize_t at = 0; count < self->count && at < self->count; at++) {
        if (*slot_of(self, made, at) != NULL) continue;
        if (self->defaults[at] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s needs %R", record, self->names[at]);
            Py_DECREF(made);
            return NULL;
        }
        *slot_of(self, made, at) = Py_NewRef(self->defaults[at]);
    }
    return made;
}

/* The offset of a field that is a slot, or -1. */
static Py_ssize_t offset_of(PyTypeObject *record, PyObject *name) {
    PyObject *slot = PyObject_GetAttr((PyObject *)record, name);
    int fits = slot != NULL && Py_IS_TYPE(slot, &PyMemberDescr_Type) &&
               PyType_IsSubtype(record, PyDescr_TYPE(slot));
    PyMemberDef *member = fits ? ((PyMemberDescrObject *)slot)->d_member : NULL;
    Py_ssize_t offset = fits && member->type == T_OBJECT_EX ? member->offset : -1;
    Py_XDECREF(slot);
    PyErr_Clear();
    if (offset < 0) PyErr_Format(PyExc_TypeError, "%s.%U is no slot", record->tp_name, name);
    return offset;
}

static PyObject *maker_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *record, *names, *defaults, *missing;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        return PyErr_Format(PyExc_TypeError, "Maker takes no keywords");
    }
    if (!PyArg_ParseTuple(args, "O!O!O!O:Maker", &PyType_Type, &record, &PyTuple_Type, &names,
                          &PyTuple_Type, &defaults, &missing)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    if (count > MOST_FIELDS || count != PyTuple_GET_SIZE(defaults)) {
        return PyErr_Format(PyExc_TypeError, "expected up to %d fields, each with its default",
                            MOST_FIELDS);
    }
    Maker *self = (Maker *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = make;
    self->record = (PyTypeObject *)Py_NewRef(record);
    for (; self->count < count; self->count++) {
        PyObject *name = PyTuple_GET_ITEM(names, self->count);
        PyObject *preset = PyTuple_GET_ITEM(defaults, self->count);
        Py_ssize_t offset = PyUnicode_Check(name) ? offset_of(self->record, name) : -1;
        if (offset < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a name is no text");
            Py_DECREF(self);
            return NULL;
        }
        self->offsets[self->count] = offset;
        self->names[self->count] = Py_NewRef(name);
        PyUnicode_InternInPlace(&self->names[self->count]);
        self->defaults[self->count] = preset == missing ? NULL : Py_NewRef(preset);
    }
    return (PyObject *)self;
}

/* No garbage collection: a Maker is not in a cycle, and lives as long as the process does. */
static void maker_dealloc(PyObject *maker) {
    Maker *self = (Maker *)maker;
    PyTypeObject *type = Py_TYPE(self);
    for (Py_ssize_t at = 0; at < self->count; at++) {
        Py_DECREF(self->names[at]);
        Py_XDECREF(self->defaults[at]);
    }
    Py_XDECREF(self->record);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef maker_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Maker, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot maker_slots[] = {
    {Py_tp_doc, "Makes instances of a record: (class, names, defaults, what says no default)."},
    {Py_tp_new, maker_new},
    {Py_tp_dealloc, maker_dealloc},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, maker_members},
    {0, NULL},
};

static PyType_Spec maker_spec = {
    .name = "_otel_eval_records.Maker",
    .basicsize = sizeof(Maker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = maker_slots,
};

static int exec_module(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &maker_spec, NULL);
    int failed = type == NULL || PyModule_AddObjectRef(module, "Maker", type) < 0;
    Py_XDECREF(type);
    return failed ? -1 : PyModule_AddIntConstant(module, "VERSION", VERSION);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, exec_module}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_otel_eval_records",
    .m_doc = "The compiled part of otel_eval.drafts; see otel_eval/native.py.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__otel_eval_records(void) { return PyModuleDef_Init(&module); }
