/* ---- f ------------------------------------------------------------------------------------------------------------- */

/* Internal units; says whether x and u are numbers within the range of the training data. */
static unsigned to_internal(const real x[], const real u[], real z[])
{
    unsigned flags = @UPPER@_OK;
    for (size_t c = 0U; c < NZ; c++) {
        const real value = (c < NX) ? x[c] : u[c - NX];
        if (!(value >= z_low[c] && value <= z_high[c])) {
            flags |= isfinite(value) ? @UPPER@_EXTRAPOLATION : @UPPER@_NOT_FINITE;
        }
        z[c] = (value - z_shift[c]) / z_scale[c];
    }
    return flags;
}

static unsigned check_finite(size_t n, const real values[])
{
    for (size_t i = 0U; i < n; i++) {
        if (!isfinite(values[i])) {
            return @UPPER@_NOT_FINITE;
        }
    }
    return @UPPER@_OK;
}

/* One state with its kernel evaluated: mean, variance (unless NULL) and their slopes (unless NULL), internal units.
   k(z, U), dk (component, inducing input), k(z, z) and its slope. */
static void combine(const sparse_function *f, const real coefficients[], const real z[], real k[], const real dk[],
                    real prior, const real prior_slope[], real *mean, real *variance, real mean_slope[],
                    real variance_slope[])
{
    real room[MOST_INDUCING];
    *mean = f->offset + dot(NZ, f->slopes, z) + dot(f->n, coefficients, k);
    if (mean_slope != NULL) {
        for (size_t c = 0U; c < NZ; c++) {
            mean_slope[c] = f->slopes[c];
        }
        for (size_t a = 0U; a < f->n_active; a++) {
            mean_slope[f->active[a]] += dot(f->n, coefficients, &dk[a * f->n]);
        }
    }
    if (variance == NULL) {
        return;
    }
    solve_lower(f->n, f->chol, k);
    multiply_transposed(f->n, f->factor, k, room);
    const real own = prior - dot(f->n, k, k);
    *variance = ((own > R(0.0)) ? own : R(0.0)) + dot(f->n, room, room);
    if (variance_slope != NULL) {
        /* k(z, z) - |phi|^2 + |S' phi|^2 with phi = L^-1 k. */
        if (own <= R(0.0)) {
            for (size_t i = 0U; i < f->n; i++) {
                k[i] = R(0.0);
            }
        }
        subtract_product(f->n, f->factor, room, k);
        solve_lower_transposed(f->n, f->chol, k);
        for (size_t c = 0U; c < NZ; c++) {
            variance_slope[c] = R(0.0);
        }
        for (size_t a = 0U; a < f->n_active; a++) {
            const real slope = (own > R(0.0)) ? prior_slope[a] : R(0.0);
            variance_slope[f->active[a]] = slope - R(2.0) * dot(f->n, k, &dk[a * f->n]);
        }
    }
}

/* Scenario 0 is the mean over all posterior functions. Slopes are row-major (state, component of (x, u)). */
static unsigned evaluate(size_t scenario, const real x[], const real u[], real mean[], real variance[],
                         real mean_slope[], real variance_slope[])
{
    real z[NZ];
    real k[MOST_INDUCING];
    real dk[MOST_SLOPES];
    real prior_slope[NZ];
    real prior = R(0.0);
    const real *slopes = NULL;
    const real *prior_slopes = NULL;
    unsigned flags = to_internal(x, u, z);
    (void)scenario;
@states@
    for (size_t d = 0U; d < NX; d++) {
        mean[d] = z_shift[d] + z_scale[d] * mean[d];
        if (variance != NULL) {
            variance[d] *= z_scale[d] * z_scale[d];
        }
        for (size_t c = 0U; c < NZ; c++) {
            if (mean_slope != NULL) {
                mean_slope[d * NZ + c] *= z_scale[d] / z_scale[c];
            }
            if (variance_slope != NULL) {
                variance_slope[d * NZ + c] *= z_scale[d] * z_scale[d] / z_scale[c];
            }
        }
    }
    flags |= check_finite(NX, mean);
    if (variance != NULL) {
        flags |= check_finite(NX, variance);
    }
    return flags;
}

/* Splits slopes by (x, u) into those by x and those by u. */
static void split(size_t n, const real slopes[], real by_x[], real by_u[])
{
    for (size_t i = 0U; i < n; i++) {
        for (size_t c = 0U; c < NZ; c++) {
            if (c < NX) {
                if (by_x != NULL) {
                    by_x[i * NX + c] = slopes[i * NZ + c];
                }
            } else if (by_u != NULL) {
                by_u[i * NU + (c - NX)] = slopes[i * NZ + c];
            } else {
                /* Not asked for. */
            }
        }
    }
}

static int is_missing(const real x[], const real u[])
{
    return (x == NULL) || ((u == NULL) && (NU > 0U));
}

unsigned @NAME@_check(size_t n_x, size_t n_u, size_t n_y)
{
    return ((n_x == NX) && (n_u == NU) && (n_y == NY)) ? @UPPER@_OK : @UPPER@_BAD_SIZE;
}

unsigned @NAME@_f(const real x[], const real u[], real mean[], real variance[])
{
    if (is_missing(x, u) || (mean == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    return evaluate(0U, x, u, mean, variance, NULL, NULL);
}

unsigned @NAME@_f_jacobian(const real x[], const real u[], real mean[], real variance[], real mean_x[], real mean_u[],
                      real variance_x[], real variance_u[])
{
    real mean_slope[NX * NZ];
    real variance_slope[NX * NZ];
    real unused[NX];
    const int wants_slopes = (variance_x != NULL) || (variance_u != NULL);
    unsigned flags;
    if (is_missing(x, u) || (mean == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    if (wants_slopes) {
        flags = evaluate(0U, x, u, mean, (variance != NULL) ? variance : unused, mean_slope, variance_slope);
        split(NX, variance_slope, variance_x, variance_u);
        flags |= check_finite(NX * NZ, variance_slope);
    } else {
        flags = evaluate(0U, x, u, mean, variance, mean_slope, NULL);
    }
    split(NX, mean_slope, mean_x, mean_u);
    return flags | check_finite(NX * NZ, mean_slope);
}
