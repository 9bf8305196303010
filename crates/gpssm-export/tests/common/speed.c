/* CPU nanoseconds of one call. */
#include "plant.h"

#include <stdio.h>
#include <time.h>

enum { CALLS = 200000, STEPS = 20000 };

static double per_call(clock_t from, int calls)
{
    return 1e9 * (double)(clock() - from) / CLOCKS_PER_SEC / calls;
}

int main(void)
{
    enum { NX = PLANT_NX, NU = PLANT_NU, NY = PLANT_NY };
    static plant_filter filter;
    plant_real x[NX], u[NU], y[NY], mean[NX], variance[NX], sum = 0;
    plant_real mean_x[NX * NX], mean_u[NX * NU], variance_x[NX * NX], variance_u[NX * NU];
    clock_t from;
    for (int c = 0; c < NU; c++) {
        u[c] = 0.1 * c;
    }
    for (int d = 0; d < NX; d++) {
        x[d] = 0.2 * d;
    }
    for (int round = 0; round < 3; round++) {
        from = clock();
        for (int i = 0; i < CALLS; i++) {
            x[0] = 1e-5 * i;
            plant_f(x, u, mean, NULL);
            sum += mean[0];
        }
        printf("mean %.0f, ", per_call(from, CALLS));
        from = clock();
        for (int i = 0; i < CALLS; i++) {
            x[0] = 1e-5 * i;
            plant_f_jacobian(x, u, mean, NULL, mean_x, mean_u, NULL, NULL);
            sum += mean[0] + mean_x[0];
        }
        printf("mean and its slopes %.0f, ", per_call(from, CALLS));
        from = clock();
        for (int i = 0; i < CALLS; i++) {
            x[0] = 1e-5 * i;
            plant_f(x, u, mean, variance);
            sum += mean[0] + variance[0];
        }
        printf("mean and variance %.0f, ", per_call(from, CALLS));
        from = clock();
        for (int i = 0; i < CALLS; i++) {
            x[0] = 1e-5 * i;
            plant_f_jacobian(x, u, mean, variance, mean_x, mean_u, variance_x, variance_u);
            sum += mean[0] + variance_u[0];
        }
        printf("both and all slopes %.0f, ", per_call(from, CALLS));
        plant_filter_init(&filter);
        from = clock();
        for (int i = 0; i < STEPS; i++) {
            y[0] = 0.3 * (i % 7);
            plant_filter_step(&filter, y, u, &y[0]);
            sum += y[0];
        }
        printf("filter step %.0f ns (%g)\n", per_call(from, STEPS), sum * 0.0);
    }
    return 0;
}
