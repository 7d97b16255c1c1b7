/* A learner's plain decide() and observe(), each as one call of a built-in method.

`decoupled.native.quick` describes what they are for. It gives the addresses of the shipped machine code, and buffers: the
blocks that this code takes, and numbers that Python reads and writes too. Everything here belongs to the limited API of
Python 3.11, so one file serves every later version. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

typedef int (*Step)(void *); /* takes the address of a block and returns a status, 0 if all went well */

/* A call whose block is complete but for the last argument; the result comes after it. */
typedef struct {
    Step step;
    Py_buffer block;
} Call;

typedef struct {
    PyObject_HEAD
    Step decide, update;
    Py_buffer blocks; /* of decide, and from `second` on of update */
    Py_buffer round, made, sharing;
    Py_ssize_t second;
    const struct { long long exploit, explore; double weight, propensity; } *drawn; /* in the block of decide */
    struct { long long arm; double weight, loss; } *observed;                       /* in the block of update */
    Call hash, serve; /* from a key's text to a word, and from the word to an arm; `serve.step` may be NULL */
    Py_buffer text;
    long long limit;
    int has_baselines;
    char stopped;
    double low, high; /* the range of losses */
    Py_ssize_t tag_length;
    char tag[64]; /* the start of every id */
    PyObject *pending, *names, *shared, *decision_type, *blank; /* blank: what makes a decision of Nones */
    PyObject *owner;                                            /* owns what the blocks point to */
} Round;

/* The fields of a decision, and of a pending record. */
enum { ID, ROUND, EXPLOIT, EXPLORE, PROPENSITY, WEIGHT, FIELDS };
enum { DECISION, ARM, COVERED, BASELINE, RECORD };

static PyObject *failed(const char *step) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: the shipped machine code failed; set DECOUPLED_NATIVE=off to compile it here", step);
    return NULL;
}

static long long result_of(Call *call, long long given, int *status) {
    long long *words = call->block.buf, last = call->block.len / 8 - 1;
    words[last - 1] = given;
    *status |= call->step(words);
    return words[last];
}

/* The tag and a number, such as 0a1b2c3d4e5f-17. */
static PyObject *id_of(const Round *self, long long number) {
    char text[sizeof self->tag + 20];
    char *end = text + sizeof text, *at = end;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    for (Py_ssize_t left = self->tag_length; left--;) *--at = self->tag[left];
    return PyUnicode_FromStringAndSize(at, end - at);
}

/* Fill in the decision and its record. A failure leaves the error set, and perhaps empty fields. */
static void fill(const Round *self, long long exploit, PyObject *decision, PyObject *record, PyObject *baseline) {
    long long explore = self->drawn->explore;
    double propensity = self->drawn->propensity;
    int known = propensity == propensity; /* NaN means unknown */
    PyTuple_SetItem(decision, ID, id_of(self, *(long long *)self->made.buf + 1));
    PyTuple_SetItem(decision, ROUND, PyLong_FromLongLong((long long)*(double *)self->round.buf));
    PyTuple_SetItem(decision, EXPLOIT, PySequence_GetItem(self->names, exploit));
    PyTuple_SetItem(decision, EXPLORE, PySequence_GetItem(self->names, explore));
    PyTuple_SetItem(decision, PROPENSITY, known ? PyFloat_FromDouble(propensity) : Py_NewRef(Py_None));
    PyTuple_SetItem(decision, WEIGHT, PyFloat_FromDouble(self->drawn->weight));
    PyTuple_SetItem(record, DECISION, Py_NewRef(decision));
    PyTuple_SetItem(record, ARM, PyLong_FromLongLong(explore));
    PyTuple_SetItem(record, COVERED, Py_NewRef(Py_None));
    PyTuple_SetItem(record, BASELINE, Py_NewRef(baseline));
}

/* Write a key's text where the hash reads it and return its length, or 0 if this needs more. */
static Py_ssize_t written(Round *self, PyObject *key) {
    Py_ssize_t length;
    const char *text = PyUnicode_CheckExact(key) && self->serve.step ? PyUnicode_AsUTF8AndSize(key, &length) : NULL;
    if (!text || length > self->text.len - 8) {
        PyErr_Clear(); /* a text that is no Unicode */
        return 0;
    }
    memset((char *)self->text.buf + length / 8 * 8, 0, 8);
    memcpy(self->text.buf, text, length);
    return length;
}

/* Draw a decision, record it as pending and return it. Return None, with nothing changed, if this needs more. */
static PyObject *decided(Round *self, PyObject *key, PyObject *decision, PyObject *record) {
    PyObject *baseline = PyList_GetItem(self->shared, 0);
    if (self->stopped || PyDict_Size(self->pending) >= self->limit || (self->has_baselines && baseline == Py_None))
        return Py_NewRef(Py_None);
    Py_ssize_t length = key ? written(self, key) : 0;
    if (key && !length) return Py_NewRef(Py_None);
    int status = self->decide(self->blocks.buf);
    long long exploit = self->drawn->exploit;
    if (key) exploit = result_of(&self->serve, result_of(&self->hash, length, &status), &status);
    if (status) return failed("decide");
    fill(self, exploit, decision, record, baseline);
    if (PyErr_Occurred() || PyDict_SetItem(self->pending, PyTuple_GetItem(decision, ID), record)) return NULL;
    ++*(long long *)self->made.buf;
    *(long long *)self->sharing.buf += self->has_baselines;
    return Py_NewRef(decision);
}

static PyObject *decide(PyObject *me, PyObject *const *arguments, Py_ssize_t count) {
    Round *self = (Round *)me;
    if (count > 1) return Py_NewRef(Py_None);
    /* These two come first because they may start a garbage collection, which may run code that uses the learner, or
    let another thread run. Nothing after them runs Python code, so no thread sees a decision half made. */
    newfunc new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *decision = new_tuple((PyTypeObject *)self->decision_type, self->blank, NULL);
    PyObject *record = PyTuple_New(RECORD);
    PyObject *result = decision && record ? decided(self, count ? arguments[0] : NULL, decision, record) : NULL;
    Py_XDECREF(decision);
    Py_XDECREF(record);
    return result;
}

/* The record of a decision that awaits feedback and needs nothing but an update, or NULL. */
static PyObject *plain_record(const Round *self, PyObject *decision, PyObject *id) {
    /* Other keys than strings may have comparisons of their own, in Python code. */
    PyObject *record = PyUnicode_CheckExact(id) ? PyDict_GetItemWithError(self->pending, id) : NULL;
    if (!record || PyTuple_GetItem(record, DECISION) != decision || PyTuple_GetItem(record, COVERED) != Py_None ||
        PyTuple_GetItem(record, BASELINE) != PyList_GetItem(self->shared, 0) ||
        (self->has_baselines && *(long long *)self->sharing.buf != 1))
        return NULL;
    return record;
}

/* Apply the feedback of a decision and return True. Return False, with nothing changed, if this needs more. */
static PyObject *observe(PyObject *me, PyObject *const *arguments, Py_ssize_t count) {
    Round *self = (Round *)me;
    if (count != 2 || Py_TYPE(arguments[0]) != (PyTypeObject *)self->decision_type ||
        PyTuple_Size(arguments[0]) != FIELDS || !PyFloat_CheckExact(arguments[1]) || self->stopped)
        return Py_NewRef(Py_False);
    double loss = PyFloat_AsDouble(arguments[1]);
    PyObject *decision = arguments[0], *id = PyTuple_GetItem(decision, ID);
    PyObject *record = loss >= self->low && loss <= self->high ? plain_record(self, decision, id) : NULL;
    if (!record) return Py_NewRef(Py_False);
    self->observed->arm = PyLong_AsLongLong(PyTuple_GetItem(record, ARM));
    self->observed->weight = PyFloat_AsDouble(PyTuple_GetItem(decision, WEIGHT));
    self->observed->loss = (loss - self->low) / (self->high - self->low);
    if (self->update((char *)self->blocks.buf + self->second)) return failed("update");
    *(long long *)self->sharing.buf = 0;
    return PyDict_DelItem(self->pending, id) ? NULL : Py_NewRef(Py_True);
}

/* The object */

static PyObject *new_round(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    (void)named;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Round *self = (Round *)allocate(type, 0);
    unsigned long long decide_at, update_at, hash_at, serve_at;
    Py_ssize_t drawn, observed;
    const char *tag;
    if (!self) return NULL;
    int parsed = PyArg_ParseTuple(
        arguments, "KKw*nnnw*w*w*Lp(dd)s#O!OO!O!O!Ow*Kw*Kw*", &decide_at, &update_at, &self->blocks, &self->second,
        &drawn, &observed, &self->round, &self->made, &self->sharing, &self->limit, &self->has_baselines, &self->low,
        &self->high, &tag, &self->tag_length, &PyDict_Type, &self->pending, &self->names, &PyList_Type, &self->shared,
        &PyType_Type, &self->decision_type, &PyTuple_Type, &self->blank, &self->owner, &self->text, &hash_at,
        &self->hash.block, &serve_at, &self->serve.block);
    if (parsed) {
        Py_INCREF(self->pending), Py_INCREF(self->names), Py_INCREF(self->shared), Py_INCREF(self->decision_type);
        Py_INCREF(self->blank), Py_INCREF(self->owner);
    } else {
        self->pending = self->names = self->shared = self->decision_type = self->blank = self->owner = NULL;
    }
    if (parsed && self->tag_length > (Py_ssize_t)sizeof self->tag) {
        PyErr_SetString(PyExc_ValueError, "the tag is too long");
        parsed = 0;
    }
    if (!parsed) {
        Py_DECREF(self);
        return NULL;
    }
    memcpy(self->tag, tag, self->tag_length);
    self->decide = (Step)(uintptr_t)decide_at;
    self->update = (Step)(uintptr_t)update_at;
    self->hash.step = (Step)(uintptr_t)hash_at;
    self->serve.step = (Step)(uintptr_t)serve_at;
    self->drawn = (void *)((char *)self->blocks.buf + drawn);
    self->observed = (void *)((char *)self->blocks.buf + observed);
    self->stopped = 1;
    return (PyObject *)self;
}

static int traverse(PyObject *me, visitproc visit, void *arg) {
    Round *self = (Round *)me;
    Py_VISIT(Py_TYPE(me));
    Py_VISIT(self->pending);
    Py_VISIT(self->names);
    Py_VISIT(self->shared);
    Py_VISIT(self->blank);
    Py_VISIT(self->owner);
    return 0;
}

static void deallocate(PyObject *me) {
    Round *self = (Round *)me;
    PyTypeObject *type = Py_TYPE(me);
    PyObject_GC_UnTrack(me);
    Py_buffer *buffers[] = {&self->blocks, &self->round, &self->made,       &self->sharing,
                            &self->text,   &self->hash.block, &self->serve.block};
    for (size_t at = 0; at < sizeof buffers / sizeof *buffers; at++) PyBuffer_Release(buffers[at]);
    Py_XDECREF(self->pending);
    Py_XDECREF(self->names);
    Py_XDECREF(self->shared);
    Py_XDECREF(self->decision_type);
    Py_XDECREF(self->blank);
    Py_XDECREF(self->owner);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(me);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"decide", (PyCFunction)(void (*)(void))decide, METH_FASTCALL, "Draw a decision, or return None."},
    {"observe", (PyCFunction)(void (*)(void))observe, METH_FASTCALL, "Apply feedback and return True, or False."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"stopped", T_BOOL, offsetof(Round, stopped), 0, "Whether the two calls do nothing."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, new_round},  {Py_tp_traverse, traverse}, {Py_tp_dealloc, deallocate},
    {Py_tp_methods, methods}, {Py_tp_members, members},   {0, NULL},
};

static PyType_Spec spec = {
    "decoupled.native.plain_round.Round", sizeof(Round), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&spec);
    int status = type ? PyModule_AddObjectRef(module, "Round", type) : -1;
    Py_XDECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "plain_round", "The plain round of a learner.", 0, NULL, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_plain_round(void) { return PyModuleDef_Init(&module); }
