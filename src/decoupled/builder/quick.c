/* A learner's plain decide() and observe(), each as one call of a function that Python takes for a built-in.

decoupled.native.quick describes what they are for, and fills in the two structures below; their fields are in the same
order there. The functions of the interpreter are given and not linked, so compiling this needs neither the headers nor
a library of Python. All of them belong to the stable ABI, so one library serves every version. */

typedef struct Object Object; /* a Python object */

static struct Python {
    int (*PyDict_DelItem)(Object *, Object *);
    Object *(*PyDict_GetItemWithError)(Object *, Object *); /* borrowed */
    int (*PyDict_SetItem)(Object *, Object *, Object *);
    long long (*PyDict_Size)(Object *);
    Object *(*PyErr_Occurred)(void); /* borrowed */
    void (*PyErr_SetString)(Object *, const char *);
    double (*PyFloat_AsDouble)(Object *);
    Object *(*PyFloat_FromDouble)(double);
    Object *(*PyList_GetItem)(Object *, long long); /* borrowed */
    long long (*PyLong_AsLongLong)(Object *);
    void *(*PyLong_AsVoidPtr)(Object *);
    Object *(*PyLong_FromLongLong)(long long);
    Object *(*PyObject_CallNoArgs)(Object *);
    Object *(*PyObject_Type)(Object *);
    Object *(*PySequence_GetItem)(Object *, long long);
    Object *(*PyTuple_GetItem)(Object *, long long); /* borrowed */
    Object *(*PyTuple_New)(long long);
    int (*PyTuple_SetItem)(Object *, long long, Object *); /* takes the reference, even if it fails */
    long long (*PyTuple_Size)(Object *);
    Object *(*PyUnicode_FromStringAndSize)(const char *, long long);
    void (*Py_DecRef)(Object *); /* accepts NULL */
    void (*Py_IncRef)(Object *);
    Object *(*new_tuple)(Object *type, Object *arguments, Object *keywords);
    Object *none, *yes, *no, *float_type, *str_type, *runtime_error;
} python;

typedef struct Learner {
    int (*decide)(void *); /* the shipped machine code: takes the address of a block and returns a status */
    int (*update)(void *);
    void *decide_block, *update_block;
    const struct { long long exploit, explore; double weight, propensity; } *drawn; /* in the block of decide */
    struct { long long arm; double weight, loss; } *observed;                       /* in the block of update */
    const double *round;
    long long *made;    /* the number of decisions made */
    long long *sharing; /* the number of decisions made with the baselines of this round; see Running */
    long long limit, has_baselines, stopped, tag_length;
    double low, high;                                       /* the range of losses */
    Object *pending, *names, *shared, *locked;              /* locked: the method of the learner's lock */
    Object *decision_type, *blank;                          /* blank: the arguments that make a decision of Nones */
    char tag[64];                                           /* the start of every id */
} Learner;

/* The fields of a decision, and of a pending record. */
enum { ID, ROUND, EXPLOIT, EXPLORE, PROPENSITY, WEIGHT, FIELDS };
enum { DECISION, ARM, COVERED, BASELINE, RECORD };

void decoupled_quick_python(const struct Python *given) { python = *given; }

static Learner *learner_of(Object *self) { return python.PyLong_AsVoidPtr(python.PyTuple_GetItem(self, 0)); }

static Object *owned(Object *object) {
    python.Py_IncRef(object);
    return object;
}

static int is_exactly(Object *type, Object *object) {
    Object *found = python.PyObject_Type(object);
    python.Py_DecRef(found);
    return found == type;
}

/* Whether a thread is inside one of the learner's other methods, or a part of the learner was replaced. */
static int is_busy(const Learner *learner) {
    if (learner->stopped) return 1;
    Object *answer = python.PyObject_CallNoArgs(learner->locked);
    python.Py_DecRef(answer);
    return answer != python.no;
}

/* The tag and a number, such as 0a1b2c3d4e5f-17. */
static Object *id_of(const Learner *learner, long long number) {
    char text[sizeof learner->tag + 20];
    char *end = text + sizeof text, *at = end;
    do *--at = (char)('0' + number % 10);
    while (number /= 10);
    for (long long left = learner->tag_length; left--;) *--at = learner->tag[left];
    return python.PyUnicode_FromStringAndSize(at, end - at);
}

static Object *failed(const char *message) {
    python.PyErr_SetString(python.runtime_error, message);
    return 0;
}

/* Fill in the decision and its record. A failure leaves the error set, and perhaps empty fields. */
static void fill(const Learner *learner, Object *decision, Object *record, Object *baseline) {
    long long exploit = learner->drawn->exploit, explore = learner->drawn->explore;
    double weight = learner->drawn->weight, propensity = learner->drawn->propensity;
    int known = propensity == propensity; /* NaN means unknown */
    python.PyTuple_SetItem(decision, ID, id_of(learner, *learner->made + 1));
    python.PyTuple_SetItem(decision, ROUND, python.PyLong_FromLongLong((long long)*learner->round));
    python.PyTuple_SetItem(decision, EXPLOIT, python.PySequence_GetItem(learner->names, exploit));
    python.PyTuple_SetItem(decision, EXPLORE, python.PySequence_GetItem(learner->names, explore));
    python.PyTuple_SetItem(
        decision, PROPENSITY, known ? python.PyFloat_FromDouble(propensity) : owned(python.none));
    python.PyTuple_SetItem(decision, WEIGHT, python.PyFloat_FromDouble(weight));
    python.PyTuple_SetItem(record, DECISION, owned(decision));
    python.PyTuple_SetItem(record, ARM, python.PyLong_FromLongLong(explore));
    python.PyTuple_SetItem(record, COVERED, owned(python.none));
    python.PyTuple_SetItem(record, BASELINE, owned(baseline));
}

/* Draw a decision, record it as pending and return it. Return None, with nothing changed, if this needs more. */
static Object *decided(Learner *learner, Object *decision, Object *record) {
    Object *baseline = python.PyList_GetItem(learner->shared, 0);
    if (is_busy(learner) || python.PyDict_Size(learner->pending) >= learner->limit ||
        (learner->has_baselines && baseline == python.none))
        return owned(python.none);
    if (learner->decide(learner->decide_block))
        return failed("decide: the shipped machine code failed; set DECOUPLED_NATIVE=off to compile it here");
    fill(learner, decision, record, baseline);
    if (python.PyErr_Occurred() ||
        python.PyDict_SetItem(learner->pending, python.PyTuple_GetItem(decision, ID), record))
        return 0;
    ++*learner->made;
    *learner->sharing += learner->has_baselines;
    return owned(decision);
}

Object *decoupled_quick_decide(Object *self, Object *unused) {
    (void)unused;
    Learner *learner = learner_of(self);
    /* These two come first because they may start a garbage collection, which may run code that uses the learner, or
    let another thread run. Nothing after them runs Python code, so no thread sees a decision half made. */
    Object *decision = python.new_tuple(learner->decision_type, learner->blank, 0);
    Object *record = python.PyTuple_New(RECORD);
    Object *result = decision && record ? decided(learner, decision, record) : 0;
    python.Py_DecRef(decision);
    python.Py_DecRef(record);
    return result;
}

/* The record of a decision that awaits feedback and needs nothing but an update, or NULL. */
static Object *plain_record(const Learner *learner, Object *decision, Object *id) {
    /* Other keys than strings may have comparisons of their own, in Python code. */
    Object *record = is_exactly(python.str_type, id) ? python.PyDict_GetItemWithError(learner->pending, id) : 0;
    if (!record || python.PyTuple_GetItem(record, DECISION) != decision ||
        python.PyTuple_GetItem(record, COVERED) != python.none ||
        python.PyTuple_GetItem(record, BASELINE) != python.PyList_GetItem(learner->shared, 0) ||
        (learner->has_baselines && *learner->sharing != 1))
        return 0;
    return record;
}

/* Apply the feedback of a decision and return True. Return False, with nothing changed, if this needs more. */
Object *decoupled_quick_observe(Object *self, Object *const *arguments, long long count) {
    Learner *learner = learner_of(self);
    Object *decision = arguments[0];
    if (count != 2 || !is_exactly(learner->decision_type, decision) || python.PyTuple_Size(decision) != FIELDS ||
        !is_exactly(python.float_type, arguments[1]) || is_busy(learner))
        return owned(python.no);
    double loss = python.PyFloat_AsDouble(arguments[1]);
    Object *id = python.PyTuple_GetItem(decision, ID);
    Object *record = loss >= learner->low && loss <= learner->high ? plain_record(learner, decision, id) : 0;
    if (!record) return owned(python.no);
    learner->observed->arm = python.PyLong_AsLongLong(python.PyTuple_GetItem(record, ARM));
    learner->observed->weight = python.PyFloat_AsDouble(python.PyTuple_GetItem(decision, WEIGHT));
    learner->observed->loss = (loss - learner->low) / (learner->high - learner->low);
    if (learner->update(learner->update_block))
        return failed("update: the shipped machine code failed; set DECOUPLED_NATIVE=off to compile it here");
    *learner->sharing = 0;
    return python.PyDict_DelItem(learner->pending, id) ? 0 : owned(python.yes);
}
