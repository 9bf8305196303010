/* Reads rows of numbers, prints what the model says of them. */
#include "plant.h"

#include <stdio.h>
#include <string.h>

static int read(int n, plant_real to[])
{
    for (int i = 0; i < n; i++) {
        double value;
        if (scanf("%lf", &value) != 1) {
            return 0;
        }
        to[i] = (plant_real)value;
    }
    return 1;
}

static int first = 1;

static void print(int n, const plant_real from[])
{
    for (int i = 0; i < n; i++) {
        printf(first ? "%.17g" : " %.17g", (double)from[i]);
        first = 0;
    }
}

static void end(void)
{
    printf("\n");
    first = 1;
}

int main(int count, char **words)
{
    enum { NX = PLANT_NX, NU = PLANT_NU, NY = PLANT_NY, NZ = NX + NU };
    static plant_filter filter;
    const char *const task = (count > 1) ? words[1] : "";
    plant_real z[NZ + 1];
    plant_real mean[NX];
    plant_real variance[NX];
    plant_real row[NY + NU + 1];
    plant_filter_init(&filter);
    if (strcmp(task, "filter") == 0) {
        while (read(NY + NU, row)) {
            plant_real log_likelihood = 0;
            plant_real covariance[NX * NX];
            plant_filter_step(&filter, row, &row[NY], &log_likelihood);
            plant_filter_estimate(&filter, mean, covariance);
            print(1, &log_likelihood);
            print(NX, mean);
            print(NX * NX, covariance);
            end();
        }
        return 0;
    }
#ifdef HAS_INPUTS
    if (strcmp(task, "controlled_filter") == 0) {
        plant_real before[NU] = {0};
        while (read(NY + NU, row)) {
            plant_real log_likelihood = 0;
            plant_filter_step(&filter, row, before, &log_likelihood);
            plant_filter_input(&filter, &row[NY]);
            plant_filter_estimate(&filter, mean, NULL);
            memcpy(before, &row[NY], sizeof before);
            print(1, &log_likelihood);
            print(NX, mean);
            end();
        }
        return 0;
    }
#endif
#ifdef PLANT_SCENARIOS
    if (strcmp(task, "scenario_filter") == 0) {
        while (read(NY + NU, row)) {
            plant_filter_step(&filter, row, &row[NY], NULL);
            for (size_t k = 0; k < PLANT_SCENARIOS; k++) {
                plant_real weight;
                plant_filter_scenario(&filter, k, mean, NULL, &weight);
                print(1, &weight);
                print(NX, mean);
            }
            end();
        }
        return 0;
    }
#endif
    while (read(NZ, z)) {
        const plant_real *const x = z;
        const plant_real *const u = &z[NX];
        if (strcmp(task, "f") == 0) {
            plant_real mean_x[NX * NX], mean_u[NX * NU + 1], variance_x[NX * NX], variance_u[NX * NU + 1];
            plant_real again[NX], wide[NX];
            plant_f(x, u, mean, variance);
            plant_f_jacobian(x, u, again, wide, mean_x, mean_u, variance_x, variance_u);
            if (memcmp(again, mean, sizeof mean) != 0 || memcmp(wide, variance, sizeof wide) != 0) {
                return 1;
            }
            print(NX, mean);
            print(NX, variance);
            for (int d = 0; d < NX; d++) {
                print(NX, &mean_x[d * NX]);
                print(NU, &mean_u[d * NU]);
            }
            for (int d = 0; d < NX; d++) {
                print(NX, &variance_x[d * NX]);
                print(NU, &variance_u[d * NU]);
            }
        } else if (strcmp(task, "flags") == 0) {
            const plant_real flags = (plant_real)plant_f(x, u, mean, variance);
            print(1, &flags);
        } else if (strcmp(task, "sizes") == 0) {
            const plant_real found[3] = {(plant_real)plant_check(NX, NU, NY), (plant_real)plant_check(NX + 1, NU, NY),
                                         (plant_real)plant_f(NULL, u, mean, variance)};
            print(3, found);
#ifdef PLANT_SCENARIOS
        } else if (strcmp(task, "scenarios") == 0) {
            for (size_t k = 0; k < PLANT_SCENARIOS; k++) {
                plant_real next_x[NX * NX];
                plant_scenario(k, x, u, mean, next_x, NULL);
                print(NX, mean);
                print(NX * NX, next_x);
            }
#endif
#ifdef HAS_OUTPUT
        } else if (strcmp(task, "output") == 0) {
            plant_real y[NY], spread[NY], again[NY], y_x[NY * NX], y_u[NY * NU + 1];
            plant_output(x, u, y, spread);
            plant_output_jacobian(x, u, again, y_x, y_u);
            print(NY, y);
            print(NY, spread);
            for (int k = 0; k < NY; k++) {
                print(NX, &y_x[k * NX]);
                print(NU, &y_u[k * NU]);
            }
        } else if (strcmp(task, "simulate") == 0) {
            plant_real y[NY];
            static plant_real state[NX];
            static int started = 0;
            for (int d = 0; d < NX && !started; d++) {
                state[d] = x[d];
            }
            started = 1;
            plant_simulate(state, u, 1U, y, state);
            print(NY, y);
            print(NX, state);
#endif
        }
        end();
    }
    return 0;
}
