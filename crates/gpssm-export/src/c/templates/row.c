/* The row that a filter takes: an input that is no finite number keeps its last value, an infinite output is missing. */
static unsigned take_row(const real y[], const real u[], const real last[], real own_y[], real own_u[])
{
    unsigned flags = @UPPER@_OK;
    for (size_t k = 0U; k < NY; k++) {
        own_y[k] = isfinite(y[k]) ? y[k] : NAN;
        flags |= (isfinite(y[k]) || isnan(y[k])) ? @UPPER@_OK : @UPPER@_NOT_FINITE;
    }
    own_u[0] = last[0];
    for (size_t c = NX; c < NZ; c++) {
        own_u[c - NX] = isfinite(u[c - NX]) ? u[c - NX] : last[c - NX];
        flags |= isfinite(u[c - NX]) ? @UPPER@_OK : @UPPER@_NOT_FINITE;
    }
    return flags;
}

