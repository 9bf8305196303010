/* The functions of FMI 3.0 for co-simulation around the model. */
#include "@NAME@.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

enum { NX = @NX@, NU = @NU@, NY = @NY@ };
enum { FIRST_INPUT = @INPUTS@, FIRST_STATE = @STATES@, FIRST_STATE_SD = @STATE_SDS@, FIRST_OUTPUT = @OUTPUTS@,
       FIRST_OUTPUT_SD = @OUTPUT_SDS@, FIRST_START = @FIRST@, FLAGS = @FLAGS@, SCENARIO = @SCENARIO@ };
#define STEP @STEP@
#define TOKEN "@TOKEN@"

/* Types of the standard. */
typedef void *Instance;
typedef void *Environment;
typedef void *State;
typedef uint32_t Reference;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Logger)(Environment environment, Status status, const char *category, const char *message);

typedef struct {
    double u[@ROOM@];
    double x[NX];
    double first[NX];
    double sd[NX];
    double y[NY];
    double y_sd[NY];
    double time;
    double start;
    uint32_t flags;
    uint32_t scenario;
    int is_current;
    int is_running;
    int logs;
    Logger logger;
    Environment environment;
} Unit;

static const double first_input[@ROOM@] = {@U_START@};
static const double first_state[NX] = {@X_START@};

static void begin(Unit *unit)
{
    memcpy(unit->u, first_input, sizeof first_input);
    memcpy(unit->x, first_state, sizeof first_state);
    memcpy(unit->first, first_state, sizeof first_state);
    unit->time = 0.0;
    unit->start = 0.0;
    unit->flags = 0U;
    unit->scenario = 0U;
    unit->is_current = 0;
    unit->is_running = 0;
}

static void say(const Unit *unit, Status status, const char *message)
{
    if ((unit->logger != NULL) && ((unit->logs != 0) || (status >= ERROR))) {
        unit->logger(unit->environment, status, (status == WARNING) ? "logStatusWarning" : "logStatusError", message);
    }
}

static Status refuse(Instance instance, const char *message)
{
    if (instance != NULL) {
        say((const Unit *)instance, ERROR, message);
    }
    return ERROR;
}

/* What follows from state and input. */
static void refresh(Unit *unit)
{
    double mean[NX];
    double variance[NX];
    double spread[NY];
    if (unit->is_current != 0) {
        return;
    }
    if (unit->is_running == 0) {
        memcpy(unit->x, unit->first, sizeof unit->x);
    }
    unit->flags |= (uint32_t)@NAME@_f(unit->x, unit->u, mean, variance);
    unit->flags |= (uint32_t)@NAME@_output(unit->x, unit->u, unit->y, spread);
    for (int d = 0; d < NX; d++) {
        unit->sd[d] = sqrt(variance[d]);
    }
    for (int k = 0; k < NY; k++) {
        unit->y_sd[k] = sqrt(spread[k]);
    }
    unit->is_current = 1;
}

static Status complain(const Unit *unit)
{
    if ((unit->flags & 2U) != 0U) {
        say(unit, WARNING, "the state or an output is no finite number");
        return WARNING;
    }
    if ((unit->flags & 1U) != 0U) {
        say(unit, WARNING, "the state or an input lies outside of the range of the training data");
        return WARNING;
    }
    return OK;
}

EXPORT const char *fmi3GetVersion(void);
const char *fmi3GetVersion(void)
{
    return "3.0";
}

EXPORT Status fmi3SetDebugLogging(Instance instance, _Bool on, size_t n, const char *const categories[]);
Status fmi3SetDebugLogging(Instance instance, _Bool on, size_t n, const char *const categories[])
{
    (void)n;
    (void)categories;
    if (instance == NULL) {
        return ERROR;
    }
    ((Unit *)instance)->logs = on ? 1 : 0;
    return OK;
}

EXPORT Instance fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, _Bool visible,
                                            _Bool logging, _Bool events, _Bool early, const Reference required[],
                                            size_t n_required, Environment environment, Logger logger, void *update);
Instance fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, _Bool visible,
                                     _Bool logging, _Bool events, _Bool early, const Reference required[],
                                     size_t n_required, Environment environment, Logger logger, void *update)
{
    Unit *unit;
    (void)name;
    (void)resources;
    (void)visible;
    (void)early;
    (void)required;
    (void)n_required;
    (void)update;
    if ((token == NULL) || (strcmp(token, TOKEN) != 0) || events) {
        if (logger != NULL) {
            logger(environment, ERROR, "logStatusError", "another instantiation token, or events, which the model has not");
        }
        return NULL;
    }
    unit = (Unit *)calloc(1U, sizeof(Unit));
    if (unit != NULL) {
        unit->logger = logger;
        unit->environment = environment;
        unit->logs = logging ? 1 : 0;
        begin(unit);
    }
    return unit;
}

EXPORT void fmi3FreeInstance(Instance instance);
void fmi3FreeInstance(Instance instance)
{
    free(instance);
}

EXPORT Status fmi3EnterInitializationMode(Instance instance, _Bool has_tolerance, double tolerance, double start,
                                          _Bool has_stop, double stop);
Status fmi3EnterInitializationMode(Instance instance, _Bool has_tolerance, double tolerance, double start,
                                   _Bool has_stop, double stop)
{
    Unit *const unit = (Unit *)instance;
    (void)has_tolerance;
    (void)tolerance;
    (void)has_stop;
    (void)stop;
    if (unit == NULL) {
        return ERROR;
    }
    unit->time = start;
    unit->start = start;
    return OK;
}

EXPORT Status fmi3ExitInitializationMode(Instance instance);
Status fmi3ExitInitializationMode(Instance instance)
{
    Unit *const unit = (Unit *)instance;
    if (unit == NULL) {
        return ERROR;
    }
    unit->flags = 0U;
    unit->is_current = 0;
    refresh(unit);
    unit->is_running = 1;
    return complain(unit);
}

EXPORT Status fmi3Terminate(Instance instance);
Status fmi3Terminate(Instance instance)
{
    return (instance != NULL) ? OK : ERROR;
}

EXPORT Status fmi3Reset(Instance instance);
Status fmi3Reset(Instance instance)
{
    if (instance == NULL) {
        return ERROR;
    }
    begin((Unit *)instance);
    return OK;
}

EXPORT Status fmi3GetFloat64(Instance instance, const Reference references[], size_t n, double values[], size_t n_values);
Status fmi3GetFloat64(Instance instance, const Reference references[], size_t n, double values[], size_t n_values)
{
    Unit *const unit = (Unit *)instance;
    if ((unit == NULL) || (n != n_values)) {
        return refuse(instance, "values and references do not fit");
    }
    refresh(unit);
    for (size_t i = 0U; i < n; i++) {
        const int r = (int)references[i];
        if (r == 0) {
            values[i] = unit->time;
        } else if (r < FIRST_STATE) {
            values[i] = unit->u[r - FIRST_INPUT];
        } else if (r < FIRST_STATE_SD) {
            values[i] = unit->x[r - FIRST_STATE];
        } else if (r < FIRST_OUTPUT) {
            values[i] = unit->sd[r - FIRST_STATE_SD];
        } else if (r < FIRST_OUTPUT_SD) {
            values[i] = unit->y[r - FIRST_OUTPUT];
        } else if (r < FIRST_START) {
            values[i] = unit->y_sd[r - FIRST_OUTPUT_SD];
        } else if (r < FLAGS) {
            values[i] = unit->first[r - FIRST_START];
        } else {
            return refuse(instance, "there is no 64-bit variable with this reference");
        }
    }
    return OK;
}

EXPORT Status fmi3SetFloat64(Instance instance, const Reference references[], size_t n, const double values[],
                             size_t n_values);
Status fmi3SetFloat64(Instance instance, const Reference references[], size_t n, const double values[], size_t n_values)
{
    Unit *const unit = (Unit *)instance;
    if ((unit == NULL) || (n != n_values)) {
        return refuse(instance, "values and references do not fit");
    }
    for (size_t i = 0U; i < n; i++) {
        const int r = (int)references[i];
        if ((r >= FIRST_INPUT) && (r < FIRST_STATE)) {
            unit->u[r - FIRST_INPUT] = values[i];
        } else if ((r >= FIRST_START) && (r < FLAGS) && (unit->is_running == 0)) {
            unit->first[r - FIRST_START] = values[i];
        } else {
            return refuse(instance, "this variable cannot be set now");
        }
    }
    unit->is_current = 0;
    return OK;
}

EXPORT Status fmi3GetUInt32(Instance instance, const Reference references[], size_t n, uint32_t values[], size_t n_values);
Status fmi3GetUInt32(Instance instance, const Reference references[], size_t n, uint32_t values[], size_t n_values)
{
    Unit *const unit = (Unit *)instance;
    if ((unit == NULL) || (n != n_values)) {
        return refuse(instance, "values and references do not fit");
    }
    refresh(unit);
    for (size_t i = 0U; i < n; i++) {
        if (references[i] == (Reference)FLAGS) {
            values[i] = unit->flags;
        } else if ((references[i] == (Reference)SCENARIO) && (@SCENARIOS@ > 0)) {
            values[i] = unit->scenario;
        } else {
            return refuse(instance, "there is no whole variable with this reference");
        }
    }
    return OK;
}

EXPORT Status fmi3SetUInt32(Instance instance, const Reference references[], size_t n, const uint32_t values[],
                            size_t n_values);
Status fmi3SetUInt32(Instance instance, const Reference references[], size_t n, const uint32_t values[], size_t n_values)
{
    Unit *const unit = (Unit *)instance;
    if ((unit == NULL) || (n != n_values)) {
        return refuse(instance, "values and references do not fit");
    }
    for (size_t i = 0U; i < n; i++) {
        if ((references[i] != (Reference)SCENARIO) || (values[i] > @SCENARIOS@U) || (@SCENARIOS@ == 0) ||
            (unit->is_running != 0)) {
            return refuse(instance, "this variable cannot be set now, or there is no such scenario");
        }
        unit->scenario = values[i];
    }
    return OK;
}

EXPORT Status fmi3DoStep(Instance instance, double from, double length, _Bool no_set_before, _Bool *event, _Bool *terminate,
                         _Bool *early, double *last);
Status fmi3DoStep(Instance instance, double from, double length, _Bool no_set_before, _Bool *event, _Bool *terminate,
                  _Bool *early, double *last)
{
    Unit *const unit = (Unit *)instance;
    const double steps = floor(length / STEP + 0.5);
    (void)no_set_before;
    if (unit == NULL) {
        return ERROR;
    }
    if ((steps < 1.0) || (fabs(steps * STEP - length) > 1e-6 * STEP * steps)) {
        return refuse(instance, "a communication step must be a whole number of steps of the model");
    }
    unit->flags = 0U;
    for (double step = 0.0; step < steps; step += 1.0) {
        double next[NX];
        unit->flags |= (uint32_t)(@NEXT@);
        memcpy(unit->x, next, sizeof next);
    }
    unit->time = from + length;
    unit->is_current = 0;
    refresh(unit);
    *event = 0;
    *terminate = 0;
    *early = 0;
    *last = unit->time;
    return complain(unit);
}

EXPORT Status fmi3EnterStepMode(Instance instance);
Status fmi3EnterStepMode(Instance instance)
{
    return refuse(instance, "the model has no event mode");
}

EXPORT Status fmi3EnterEventMode(Instance instance);
Status fmi3EnterEventMode(Instance instance)
{
    return refuse(instance, "the model has no event mode");
}

EXPORT Status fmi3EnterConfigurationMode(Instance instance);
Status fmi3EnterConfigurationMode(Instance instance)
{
    return refuse(instance, "the model has no structural parameters");
}

EXPORT Status fmi3ExitConfigurationMode(Instance instance);
Status fmi3ExitConfigurationMode(Instance instance)
{
    return refuse(instance, "the model has no structural parameters");
}

/* What the standard wants to be there and the model does not have: all of it is refused. */
#define REFUSED(name, ...)                                        \
    EXPORT Status name(Instance instance, __VA_ARGS__);           \
    Status name(Instance instance, __VA_ARGS__)                   \
    {                                                             \
        return refuse(instance, #name ": the model has no such"); \
    }

#define NUMBERS(kind, type)                                                                              \
    REFUSED(fmi3Get##kind, const Reference r[] UNUSED, size_t n UNUSED, type v[] UNUSED, size_t m UNUSED) \
    REFUSED(fmi3Set##kind, const Reference r[] UNUSED, size_t n UNUSED, const type v[] UNUSED, size_t m UNUSED)

#if defined(__GNUC__)
#define UNUSED __attribute__((unused))
#else
#define UNUSED
#endif

NUMBERS(Float32, float)
NUMBERS(Int8, int8_t)
NUMBERS(UInt8, uint8_t)
NUMBERS(Int16, int16_t)
NUMBERS(UInt16, uint16_t)
NUMBERS(Int32, int32_t)
NUMBERS(Int64, int64_t)
NUMBERS(UInt64, uint64_t)
NUMBERS(Boolean, _Bool)
REFUSED(fmi3GetString, const Reference r[] UNUSED, size_t n UNUSED, const char *v[] UNUSED, size_t m UNUSED)
REFUSED(fmi3SetString, const Reference r[] UNUSED, size_t n UNUSED, const char *const v[] UNUSED, size_t m UNUSED)
REFUSED(fmi3GetBinary, const Reference r[] UNUSED, size_t n UNUSED, size_t s[] UNUSED, const uint8_t *v[] UNUSED, size_t m UNUSED)
REFUSED(fmi3SetBinary, const Reference r[] UNUSED, size_t n UNUSED, const size_t s[] UNUSED, const uint8_t *const v[] UNUSED, size_t m UNUSED)
REFUSED(fmi3GetClock, const Reference r[] UNUSED, size_t n UNUSED, _Bool v[] UNUSED)
REFUSED(fmi3SetClock, const Reference r[] UNUSED, size_t n UNUSED, const _Bool v[] UNUSED)
REFUSED(fmi3GetNumberOfVariableDependencies, Reference r UNUSED, size_t *n UNUSED)
REFUSED(fmi3GetVariableDependencies, Reference r UNUSED, size_t e[] UNUSED, Reference i[] UNUSED, size_t f[] UNUSED, int k[] UNUSED, size_t n UNUSED)
REFUSED(fmi3GetFMUState, State *s UNUSED)
REFUSED(fmi3SetFMUState, State s UNUSED)
REFUSED(fmi3FreeFMUState, State *s UNUSED)
REFUSED(fmi3SerializedFMUStateSize, State s UNUSED, size_t *n UNUSED)
REFUSED(fmi3SerializeFMUState, State s UNUSED, uint8_t b[] UNUSED, size_t n UNUSED)
REFUSED(fmi3DeserializeFMUState, const uint8_t b[] UNUSED, size_t n UNUSED, State *s UNUSED)
REFUSED(fmi3GetDirectionalDerivative, const Reference a[] UNUSED, size_t n UNUSED, const Reference b[] UNUSED, size_t m UNUSED, const double s[] UNUSED, size_t k UNUSED, double d[] UNUSED, size_t l UNUSED)
REFUSED(fmi3GetAdjointDerivative, const Reference a[] UNUSED, size_t n UNUSED, const Reference b[] UNUSED, size_t m UNUSED, const double s[] UNUSED, size_t k UNUSED, double d[] UNUSED, size_t l UNUSED)
REFUSED(fmi3GetIntervalDecimal, const Reference r[] UNUSED, size_t n UNUSED, double i[] UNUSED, int q[] UNUSED)
REFUSED(fmi3GetIntervalFraction, const Reference r[] UNUSED, size_t n UNUSED, uint64_t c[] UNUSED, uint64_t s[] UNUSED, int q[] UNUSED)
REFUSED(fmi3GetShiftDecimal, const Reference r[] UNUSED, size_t n UNUSED, double s[] UNUSED)
REFUSED(fmi3GetShiftFraction, const Reference r[] UNUSED, size_t n UNUSED, uint64_t c[] UNUSED, uint64_t s[] UNUSED)
REFUSED(fmi3SetIntervalDecimal, const Reference r[] UNUSED, size_t n UNUSED, const double i[] UNUSED)
REFUSED(fmi3SetIntervalFraction, const Reference r[] UNUSED, size_t n UNUSED, const uint64_t c[] UNUSED, const uint64_t s[] UNUSED)
REFUSED(fmi3SetShiftDecimal, const Reference r[] UNUSED, size_t n UNUSED, const double s[] UNUSED)
REFUSED(fmi3SetShiftFraction, const Reference r[] UNUSED, size_t n UNUSED, const uint64_t c[] UNUSED, const uint64_t s[] UNUSED)
REFUSED(fmi3GetOutputDerivatives, const Reference r[] UNUSED, size_t n UNUSED, const int32_t o[] UNUSED, double v[] UNUSED, size_t m UNUSED)

EXPORT Status fmi3EvaluateDiscreteStates(Instance instance);
Status fmi3EvaluateDiscreteStates(Instance instance)
{
    return refuse(instance, "the model has no event mode");
}

REFUSED(fmi3ActivateModelPartition, Reference r UNUSED, double t UNUSED)
REFUSED(fmi3CompletedIntegratorStep, _Bool n UNUSED, _Bool *e UNUSED, _Bool *t UNUSED)
REFUSED(fmi3SetTime, double t UNUSED)
REFUSED(fmi3GetContinuousStates, double x[] UNUSED, size_t n UNUSED)
REFUSED(fmi3SetContinuousStates, const double x[] UNUSED, size_t n UNUSED)
REFUSED(fmi3GetContinuousStateDerivatives, double x[] UNUSED, size_t n UNUSED)
REFUSED(fmi3GetNominalsOfContinuousStates, double x[] UNUSED, size_t n UNUSED)
REFUSED(fmi3GetEventIndicators, double z[] UNUSED, size_t n UNUSED)
REFUSED(fmi3GetNumberOfContinuousStates, size_t *n UNUSED)
REFUSED(fmi3GetNumberOfEventIndicators, size_t *n UNUSED)

EXPORT Status fmi3EnterContinuousTimeMode(Instance instance);
Status fmi3EnterContinuousTimeMode(Instance instance)
{
    return refuse(instance, "the model is discrete in time");
}

REFUSED(fmi3UpdateDiscreteStates, _Bool *a UNUSED, _Bool *b UNUSED, _Bool *c UNUSED, _Bool *d UNUSED, _Bool *e UNUSED, double *t UNUSED)

/* Kinds of simulation that the model is not for. */
EXPORT Instance fmi3InstantiateModelExchange(const char *name);
Instance fmi3InstantiateModelExchange(const char *name)
{
    (void)name;
    return NULL;
}

EXPORT Instance fmi3InstantiateScheduledExecution(const char *name);
Instance fmi3InstantiateScheduledExecution(const char *name)
{
    (void)name;
    return NULL;
}
