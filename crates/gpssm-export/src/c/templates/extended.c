/* ---- square-root extended Kalman filter ---------------------------------------------------------------------------- */

/* Makes the n x m matrix a (row-major, m >= n) lower triangular, a a' as before, by rotations of its columns. */
static void triangularise(size_t n, size_t m, real a[])
{
    for (size_t i = 0U; i < n; i++) {
        for (size_t j = i + 1U; j < m; j++) {
            const real p = a[i * m + i];
            const real q = a[i * m + j];
            if (q != R(0.0)) {
                const real r = HYPOT(p, q);
                const real c = p / r;
                const real s = q / r;
                for (size_t k = i; k < n; k++) {
                    const real v = a[k * m + i];
                    const real w = a[k * m + j];
                    a[k * m + i] = c * v + s * w;
                    a[k * m + j] = c * w - s * v;
                }
            }
        }
        if (a[i * m + i] < R(0.0)) {
            for (size_t k = i; k < n; k++) {
                a[k * m + i] = -a[k * m + i];
            }
        }
    }
}

/* x and its factor through f; a a' = A S S' A' + Q + variance of f. */
static unsigned predict(size_t scenario, real mean[], real chol[], const real u[])
{
    enum { M = 2 * NX };
    real next[NX];
    real variance[NX];
    real slopes[NX * NZ];
    real noise[NX * NX];
    real a[NX * M];
    unsigned flags = evaluate(scenario, mean, u, next, (scenario == 0U) ? variance : NULL, slopes, NULL);
    process_noise(scenario, (scenario == 0U) ? variance : NULL, noise);
    for (size_t d = 0U; d < NX; d++) {
        for (size_t e = 0U; e < NX; e++) {
            real sum = R(0.0);
            for (size_t c = e; c < NX; c++) {
                sum += slopes[d * NZ + c] * chol[c * NX + e];
            }
            a[d * M + e] = sum;
            a[d * M + NX + e] = noise[d * NX + e];
        }
    }
    triangularise(NX, M, a);
    for (size_t d = 0U; d < NX; d++) {
        mean[d] = next[d];
        for (size_t e = 0U; e < NX; e++) {
            chol[d * NX + e] = (e <= d) ? a[d * M + e] : R(0.0);
        }
    }
    return flags | check_finite(NX * NX, chol);
}

/* Takes an observation: outputs that are NaN are missing. */
static unsigned update(real mean[], real chol[], const real y[], const real u[], real *log_likelihood)
{
    enum { ALL = NX + NY };
    real expected[NY];
    real slopes[NY * NZ];
    real b[ALL * ALL];
    real residual[NY];
    size_t seen[NY];
    size_t n = 0U;
    unsigned flags = @UPPER@_OK;
    output(mean, u, expected, NULL, slopes);
    for (size_t k = 0U; k < NY; k++) {
        if (!isnan(y[k])) {
            seen[n] = k;
            residual[n] = y[k] - expected[k];
            n++;
        }
    }
    *log_likelihood = R(0.0);
    if (n == 0U) {
        return flags;
    }
    const size_t m = n + NX;
    for (size_t i = 0U; i < m * m; i++) {
        b[i] = R(0.0);
    }
    sensor_factor(n, seen, b, m);
    for (size_t i = 0U; i < n; i++) {
        for (size_t e = 0U; e < NX; e++) {
            real sum = R(0.0);
            for (size_t c = e; c < NX; c++) {
                sum += slopes[seen[i] * NZ + c] * chol[c * NX + e];
            }
            b[i * m + n + e] = sum;
        }
    }
    for (size_t d = 0U; d < NX; d++) {
        for (size_t e = 0U; e <= d; e++) {
            b[(n + d) * m + n + e] = chol[d * NX + e];
        }
    }
    triangularise(m, m, b);
    for (size_t i = 0U; i < n; i++) {
        for (size_t j = 0U; j < i; j++) {
            residual[i] -= b[i * m + j] * residual[j];
        }
        residual[i] /= b[i * m + i];
        *log_likelihood -= R(0.5) * residual[i] * residual[i] + LOG(b[i * m + i]) + HALF_LOG_2_PI;
    }
    for (size_t d = 0U; d < NX; d++) {
        for (size_t i = 0U; i < n; i++) {
            mean[d] += b[(n + d) * m + i] * residual[i];
        }
        for (size_t e = 0U; e <= d; e++) {
            chol[d * NX + e] = b[(n + d) * m + n + e];
        }
    }
    return flags | check_finite(NX, mean) | check_finite(NX * NX, chol);
}

static void copy(size_t n, const real from[], real to[])
{
    for (size_t i = 0U; i < n; i++) {
        to[i] = from[i];
    }
}

/* One row. What leads to no finite numbers is left out, so that the next row finds a state to go on from. */
static unsigned step(size_t scenario, real mean[], real chol[], int started, const real u_before[], const real y[],
                     const real u[], real *log_likelihood)
{
    unsigned flags = @UPPER@_OK;
    real next[NX];
    real factor[NX * NX];
    copy(NX, mean, next);
    copy(NX * NX, chol, factor);
    if (started != 0) {
        flags |= predict(scenario, next, factor, u_before);
        if ((check_finite(NX, next) | check_finite(NX * NX, factor)) == @UPPER@_OK) {
            copy(NX, next, mean);
            copy(NX * NX, factor, chol);
        } else {
            copy(NX, mean, next);
            copy(NX * NX, chol, factor);
            flags |= @UPPER@_NOT_FINITE;
        }
    }
    flags |= update(next, factor, y, u, log_likelihood);
    if ((check_finite(NX, next) | check_finite(NX * NX, factor) | check_finite(1U, log_likelihood)) == @UPPER@_OK) {
        copy(NX, next, mean);
        copy(NX * NX, factor, chol);
    } else {
        *log_likelihood = R(0.0);
        flags |= @UPPER@_NOT_FINITE;
    }
    return flags;
}

@scenario_steps@void @NAME@_filter_init_at(@NAME@_filter *filter, const real mean[], const real factor[])
{
    if ((filter == NULL) || (mean == NULL) || (factor == NULL)) {
        return;
    }
    filter->started = 0;
    for (size_t c = 0U; c < ((NU > 0U) ? NU : 1U); c++) {
        filter->u[c] = R(0.0);
    }
    for (size_t d = 0U; d < NX; d++) {
        filter->mean[d] = mean[d];
        for (size_t e = 0U; e < NX; e++) {
            filter->factor[d * NX + e] = (e <= d) ? factor[d * NX + e] : R(0.0);
        }
    }
@init_scenarios@}

unsigned @NAME@_filter_step(@NAME@_filter *filter, const real y[], const real u[], real *log_likelihood)
{
    real log_density = R(0.0);
    real own_y[NY];
    real own_u[(NU > 0U) ? NU : 1U];
    unsigned flags;
    if ((filter == NULL) || (y == NULL) || ((u == NULL) && (NU > 0U))) {
        return @UPPER@_BAD_ARGUMENT;
    }
    flags = take_row(y, u, filter->u, own_y, own_u);
    flags |= step(0U, filter->mean, filter->factor, filter->started, filter->u, own_y, own_u, &log_density);
@step_scenarios@    copy((NU > 0U) ? NU : 1U, own_u, filter->u);
    filter->started = 1;
    if (log_likelihood != NULL) {
        *log_likelihood = log_density;
    }
    return flags;
}

void @NAME@_filter_estimate(const @NAME@_filter *filter, real mean[], real covariance[])
{
    if (filter == NULL) {
        return;
    }
    for (size_t d = 0U; d < NX; d++) {
        if (mean != NULL) {
            mean[d] = filter->mean[d];
        }
        for (size_t e = 0U; (e < NX) && (covariance != NULL); e++) {
            covariance[d * NX + e] = dot(((d < e) ? d : e) + 1U, &filter->factor[d * NX], &filter->factor[e * NX]);
        }
    }
}
