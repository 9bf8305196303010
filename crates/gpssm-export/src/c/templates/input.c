
unsigned @NAME@_filter_input(@NAME@_filter *filter, const real u[])
{
    unsigned flags = @UPPER@_OK;
    if ((filter == NULL) || (u == NULL)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    for (size_t c = 0U; c < NU; c++) {
        if (isfinite(u[c])) {
            filter->u[c] = u[c];
        } else {
            flags |= @UPPER@_NOT_FINITE;
        }
    }
    return flags;
}
