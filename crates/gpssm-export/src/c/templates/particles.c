/* ---- particle filter ----------------------------------------------------------------------------------------------- */

/* Uniform on (0, 1): a counter through a mixing function (splitmix64). */
static real uniform(uint64_t *state)
{
    uint64_t bits;
    *state += UINT64_C(0x9E3779B97F4A7C15);
    bits = *state;
    bits = (bits ^ (bits >> 30U)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27U)) * UINT64_C(0x94D049BB133111EB);
    bits ^= bits >> 31U;
    return ((real)(bits >> @SHIFT@U) + R(0.5)) * R(@STEP@);
}

static real normal(uint64_t *state)
{
    const real radius = SQRT(R(-2.0) * LOG(uniform(state)));
    return radius * COS(R(6.283185307179586) * uniform(state));
}

/* x + L e, e standard normal. */
static void disturb(real x[], const real l[], uint64_t *state)
{
    real e[NX];
    for (size_t d = 0U; d < NX; d++) {
        e[d] = normal(state);
    }
    for (size_t d = 0U; d < NX; d++) {
        x[d] += dot(d + 1U, &l[d * NX], e);
    }
}

/* Particles by their weights: systematic resampling in place through `room`. */
static void resample(@NAME@_filter *filter)
{
    const real first = uniform(&filter->state);
    real sum = filter->weight[0];
    size_t i = 0U;
    for (size_t n = 0U; n < PARTICLES; n++) {
        const real place = ((real)n + first) / (real)PARTICLES;
        while ((sum < place) && (i + 1U < PARTICLES)) {
            i++;
            sum += filter->weight[i];
        }
        for (size_t d = 0U; d < NX; d++) {
            filter->room[n * NX + d] = filter->x[i * NX + d];
        }
    }
    for (size_t n = 0U; n < PARTICLES * NX; n++) {
        filter->x[n] = filter->room[n];
    }
    for (size_t n = 0U; n < PARTICLES; n++) {
        filter->weight[n] = R(1.0) / (real)PARTICLES;
    }
}

/* Multiplies the weights by the density of y; the log of their sum. */
static unsigned weigh(@NAME@_filter *filter, const real y[], const real u[], real *log_likelihood)
{
    real most = -INFINITY;
    real sum = R(0.0);
    size_t missing = 0U;
    *log_likelihood = R(0.0);
    for (size_t k = 0U; k < NY; k++) {
        missing += isnan(y[k]) ? 1U : 0U;
    }
    if (missing == NY) {
        return @UPPER@_OK;
    }
    for (size_t n = 0U; n < PARTICLES; n++) {
        const real density = log_density(&filter->x[n * NX], u, y) + LOG(filter->weight[n]);
        filter->room[n] = isnan(density) ? -INFINITY : density;
        most = (filter->room[n] > most) ? filter->room[n] : most;
    }
    if (!isfinite(most)) {
        return @UPPER@_NOT_FINITE;
    }
    for (size_t n = 0U; n < PARTICLES; n++) {
        filter->weight[n] = EXP(filter->room[n] - most);
        sum += filter->weight[n];
    }
    for (size_t n = 0U; n < PARTICLES; n++) {
        filter->weight[n] /= sum;
    }
    *log_likelihood = most + LOG(sum);
    return @UPPER@_OK;
}

void @NAME@_filter_seed(@NAME@_filter *filter, uint64_t seed)
{
    if (filter != NULL) {
        filter->state = seed;
    }
}

void @NAME@_filter_init_at(@NAME@_filter *filter, const real mean[], const real factor[])
{
    if ((filter == NULL) || (mean == NULL) || (factor == NULL)) {
        return;
    }
    filter->started = 0;
    for (size_t d = 0U; d < NX; d++) {
        filter->first_mean[d] = mean[d];
        for (size_t e = 0U; e < NX; e++) {
            filter->first_factor[d * NX + e] = factor[d * NX + e];
        }
    }
    for (size_t c = 0U; c < ((NU > 0U) ? NU : 1U); c++) {
        filter->u[c] = R(0.0);
    }
}

static void start(@NAME@_filter *filter)
{
    for (size_t n = 0U; n < PARTICLES; n++) {
        filter->weight[n] = R(1.0) / (real)PARTICLES;
        for (size_t d = 0U; d < NX; d++) {
            filter->x[n * NX + d] = filter->first_mean[d];
        }
        disturb(&filter->x[n * NX], filter->first_factor, &filter->state);
    }
}

unsigned @NAME@_filter_step(@NAME@_filter *filter, const real y[], const real u[], real *log_likelihood)
{
    real log_sum = R(0.0);
    real next[NX];
    real variance[NX];
    real noise[NX * NX];
    real own_y[NY];
    real own_u[(NU > 0U) ? NU : 1U];
    unsigned flags;
    if ((filter == NULL) || (y == NULL) || ((u == NULL) && (NU > 0U))) {
        return @UPPER@_BAD_ARGUMENT;
    }
    flags = take_row(y, u, filter->u, own_y, own_u);
    if (filter->started == 0) {
        start(filter);
    } else {
        resample(filter);
        for (size_t n = 0U; n < PARTICLES; n++) {
            real *const x = &filter->x[n * NX];
            /* One particle far out is no extrapolation of the estimate. */
            const unsigned own = evaluate(0U, x, filter->u, next, variance, NULL, NULL) & @UPPER@_NOT_FINITE;
            flags |= own;
            if (own == @UPPER@_OK) {
                process_noise(0U, variance, noise);
                for (size_t d = 0U; d < NX; d++) {
                    x[d] = next[d];
                }
                disturb(x, noise, &filter->state);
            }
        }
    }
    flags |= weigh(filter, own_y, own_u, &log_sum);
    for (size_t c = 0U; c < ((NU > 0U) ? NU : 1U); c++) {
        filter->u[c] = own_u[c];
    }
    filter->started = 1;
    if (log_likelihood != NULL) {
        *log_likelihood = log_sum;
    }
    return flags;
}

void @NAME@_filter_estimate(const @NAME@_filter *filter, real mean[], real covariance[])
{
    real center[NX];
    if (filter == NULL) {
        return;
    }
    for (size_t d = 0U; d < NX; d++) {
        center[d] = R(0.0);
        for (size_t n = 0U; n < PARTICLES; n++) {
            center[d] += filter->weight[n] * filter->x[n * NX + d];
        }
        if (mean != NULL) {
            mean[d] = center[d];
        }
    }
    for (size_t d = 0U; (d < NX) && (covariance != NULL); d++) {
        for (size_t e = 0U; e < NX; e++) {
            real sum = R(0.0);
            for (size_t n = 0U; n < PARTICLES; n++) {
                sum += filter->weight[n] * (filter->x[n * NX + d] - center[d]) * (filter->x[n * NX + e] - center[e]);
            }
            covariance[d * NX + e] = sum;
        }
    }
}
