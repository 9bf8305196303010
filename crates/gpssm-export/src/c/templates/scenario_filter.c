/* Each scenario follows the record with its own function and noise, and is weighed by how well it predicts. */
static unsigned step_scenarios(@NAME@_filter *filter, const real y[], const real u[])
{
    unsigned flags = @UPPER@_OK;
    real most = -INFINITY;
    for (size_t k = 0U; k < @UPPER@_SCENARIOS; k++) {
        real log_density = R(0.0);
        flags |= step(k + 1U, &filter->scenario_mean[k * NX], &filter->scenario_factor[k * NX * NX], filter->started,
                      filter->u, y, u, &log_density);
        filter->log_weight[k] += log_density;
        most = (filter->log_weight[k] > most) ? filter->log_weight[k] : most;
    }
    for (size_t k = 0U; (k < @UPPER@_SCENARIOS) && isfinite(most); k++) {
        filter->log_weight[k] -= most;
    }
    return flags;
}

unsigned @NAME@_filter_scenario(const @NAME@_filter *filter, size_t k, real mean[], real factor[], real *weight)
{
    real sum = R(0.0);
    if ((filter == NULL) || (k >= @UPPER@_SCENARIOS)) {
        return @UPPER@_BAD_ARGUMENT;
    }
    for (size_t d = 0U; (d < NX) && (mean != NULL); d++) {
        mean[d] = filter->scenario_mean[k * NX + d];
    }
    for (size_t i = 0U; (i < NX * NX) && (factor != NULL); i++) {
        factor[i] = filter->scenario_factor[k * NX * NX + i];
    }
    for (size_t j = 0U; j < @UPPER@_SCENARIOS; j++) {
        sum += EXP(filter->log_weight[j]);
    }
    if (weight != NULL) {
        *weight = EXP(filter->log_weight[k]) / sum;
    }
    return @UPPER@_OK;
}

