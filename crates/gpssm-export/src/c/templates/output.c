unsigned @NAME@_output(const real x[], const real u[], real mean[], real variance[])
{
    if (is_missing(x, u) || (mean == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    output(x, u, mean, variance, NULL);
    return check_finite(NY, mean);
}

unsigned @NAME@_output_jacobian(const real x[], const real u[], real mean[], real mean_x[], real mean_u[])
{
    real slopes[NY * NZ];
    if (is_missing(x, u) || (mean == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    output(x, u, mean, NULL, slopes);
    split(NY, slopes, mean_x, mean_u);
    return check_finite(NY, mean) | check_finite(NY * NZ, slopes);
}

static unsigned simulate(size_t scenario, const real x0[], const real u[], size_t n_rows, real y[], real x_last[])
{
    real x[NX];
    real next[NX];
    unsigned flags = @UPPER@_OK;
    if ((x0 == NULL) || ((u == NULL) && (NU > 0U)) || (y == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    for (size_t d = 0U; d < NX; d++) {
        x[d] = x0[d];
    }
    for (size_t t = 0U; t < n_rows; t++) {
        const real *const now = (NU > 0U) ? &u[t * NU] : x;
        output(x, now, &y[t * NY], NULL, NULL);
        flags |= check_finite(NY, &y[t * NY]);
        flags |= evaluate(scenario, x, now, next, NULL, NULL, NULL);
        for (size_t d = 0U; d < NX; d++) {
            x[d] = next[d];
        }
    }
    for (size_t d = 0U; (d < NX) && (x_last != NULL); d++) {
        x_last[d] = x[d];
    }
    return flags;
}

unsigned @NAME@_simulate(const real x0[], const real u[], size_t n_rows, real y[], real x_last[])
{
    return simulate(0U, x0, u, n_rows, y, x_last);
}
