unsigned @NAME@_scenario(size_t k, const real x[], const real u[], real next[], real next_x[], real next_u[])
{
    real slopes[NX * NZ];
    const int wants_slopes = (next_x != NULL) || (next_u != NULL);
    unsigned flags;
    if (is_missing(x, u) || (next == NULL) || (k >= @UPPER@_SCENARIOS)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    flags = evaluate(k + 1U, x, u, next, NULL, wants_slopes ? slopes : NULL, NULL);
    if (wants_slopes) {
        split(NX, slopes, next_x, next_u);
        flags |= check_finite(NX * NZ, slopes);
    }
    return flags;
}
