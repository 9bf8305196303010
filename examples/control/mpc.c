/* Model-predictive control through an exported model, one plan for all scenarios.
 *
 * A plan is a force for each row, with gains that pull the state back to the predicted one. It is found on the mean of f by the iterative
 * linear-quadratic regulator (Li and Todorov 2004); every scenario is then led by the same plan and gains, and tells how far the cart
 * comes. The cost is a sum of squares: height of the pendulum, speeds, place of the cart, and how far it leaves the track. */
#include "cartpole.h"

#include <math.h>
#include <stddef.h>

/* The state that is planned for has the force before as its last component. */
enum { NX = CARTPOLE_NX, NU = CARTPOLE_NU, N = NX + 1, HORIZON = 20, RESIDUALS = 5 };

/* How rows are predicted: by the mean of f, or by a linear model x' = A x + B u + c; from FIRST_SCENARIO on by posterior functions. */
enum { MEAN = 0, LINEAR = 1, FIRST_SCENARIO = 2 };

static const double dt = 0.1;
static const double effort = 0.003;

static double linear[NX * (NX + NU + 1)];

void mpc_linear(const double coefficients[])
{
    for (size_t i = 0; i < NX * (NX + NU + 1); i++) {
        linear[i] = coefficients[i];
    }
}

int mpc_horizon(void)
{
    return HORIZON;
}

size_t mpc_filter_size(void)
{
    return sizeof(cartpole_filter);
}

static void next(size_t kind, const double x[], double force, double to[], double a[], double b[])
{
    const double u[NU] = {force, x[NX]};
    if (kind == MEAN) {
        (void)cartpole_f_jacobian(x, u, to, NULL, a, b, NULL, NULL);
    } else if (kind >= FIRST_SCENARIO) {
        (void)cartpole_scenario(kind - FIRST_SCENARIO, x, u, to, a, b);
    } else {
        for (size_t d = 0; d < NX; d++) {
            const double *const row = &linear[d * (NX + NU + 1)];
            to[d] = row[NX + NU];
            for (size_t c = 0; c < NX; c++) {
                to[d] += row[c] * x[c];
                a[d * NX + c] = row[c];
            }
            for (size_t c = 0; c < NU; c++) {
                to[d] += row[NX + c] * u[c];
                b[d * NU + c] = row[NX + c];
            }
        }
    }
    to[NX] = force;
}

/* Components: position, angle, and both a row before. */
static double residuals(const double x[], double track, int last, double r[], double slope[])
{
    const double end = last ? 3.0 : 1.0;
    const double beyond = fabs(x[0]) - track;
    double sum = 0.0;
    for (size_t i = 0; i < RESIDUALS * N; i++) {
        slope[i] = 0.0;
    }
    r[0] = end * 2.0 * cos(0.5 * x[1]);
    slope[1] = -end * sin(0.5 * x[1]);
    r[1] = end * 0.1 * (x[1] - x[3]) / dt;
    slope[N + 1] = end * 0.1 / dt;
    slope[N + 3] = -end * 0.1 / dt;
    r[2] = end * 0.4 * x[0];
    slope[2 * N] = end * 0.4;
    r[3] = (beyond > 0.0) ? 40.0 * beyond : 0.0;
    slope[3 * N] = (beyond > 0.0) ? ((x[0] > 0.0) ? 40.0 : -40.0) : 0.0;
    r[4] = end * 0.15 * (x[0] - x[2]) / dt;
    slope[4 * N] = end * 0.15 / dt;
    slope[4 * N + 2] = -end * 0.15 / dt;
    for (size_t q = 0; q < RESIDUALS; q++) {
        sum += r[q] * r[q];
    }
    return sum;
}

/* Leads a state along a plan with gains around planned rows; x: HORIZON + 1 rows of N. The cost. */
static double lead(size_t kind, const double plan[], const double step[], double share, const double gains[],
                   const double around[], const double track[], double most, double x[], double u[])
{
    double a[NX * NX], b[NX * NU], r[RESIDUALS], slope[RESIDUALS * N];
    double sum = 0.0;
    for (size_t t = 0; t < HORIZON; t++) {
        double force = plan[t] + share * step[t];
        for (size_t c = 0; c < N; c++) {
            force += gains[t * N + c] * (x[t * N + c] - around[t * N + c]);
        }
        u[t] = fmin(most, fmax(-most, force));
        next(kind, &x[t * N], u[t], &x[(t + 1) * N], a, b);
        sum += effort * u[t] * u[t] + residuals(&x[(t + 1) * N], track[t], t + 1 == HORIZON, r, slope);
    }
    return isfinite(sum) ? sum : INFINITY;
}

/* Gains and steps of the linear-quadratic problem along a plan. */
static void regulate(size_t kind, const double x[], const double plan[], const double track[], double most,
                     double damping, double step[], double gains[])
{
    double v[N] = {0.0}, w[N * N] = {0.0};
    for (size_t t = HORIZON; t-- > 0;) {
        double to[N], a[NX * NX], b[NX * NU], r[RESIDUALS], slope[RESIDUALS * N];
        double f[N * N] = {0.0}, g[N] = {0.0}, wf[N * N], wg[N], qx[N], qux[N], qxx[N * N];
        double qu, quu;
        next(kind, &x[t * N], plan[t], to, a, b);
        for (size_t d = 0; d < NX; d++) {
            for (size_t c = 0; c < NX; c++) {
                f[d * N + c] = a[d * NX + c];
            }
            f[d * N + NX] = b[d * NU + 1];
            g[d] = b[d * NU];
        }
        g[NX] = 1.0;
        (void)residuals(&x[(t + 1) * N], track[t], t + 1 == HORIZON, r, slope);
        for (size_t q = 0; q < RESIDUALS; q++) {
            for (size_t c = 0; c < N; c++) {
                v[c] += slope[q * N + c] * r[q];
                for (size_t e = 0; e < N; e++) {
                    w[c * N + e] += slope[q * N + c] * slope[q * N + e];
                }
            }
        }
        qu = effort * plan[t];
        quu = effort + damping;
        for (size_t c = 0; c < N; c++) {
            wg[c] = 0.0;
            for (size_t e = 0; e < N; e++) {
                wg[c] += w[c * N + e] * g[e];
                wf[c * N + e] = 0.0;
                for (size_t i = 0; i < N; i++) {
                    wf[c * N + e] += w[c * N + i] * f[i * N + e];
                }
            }
        }
        for (size_t c = 0; c < N; c++) {
            qu += g[c] * v[c];
            quu += g[c] * wg[c];
            qx[c] = 0.0;
            qux[c] = 0.0;
            for (size_t i = 0; i < N; i++) {
                qx[c] += f[i * N + c] * v[i];
                qux[c] += g[i] * wf[i * N + c];
            }
            for (size_t e = 0; e < N; e++) {
                qxx[c * N + e] = 0.0;
                for (size_t i = 0; i < N; i++) {
                    qxx[c * N + e] += f[i * N + c] * wf[i * N + e];
                }
            }
        }
        /* A force at its bound that wants to go beyond stays there. */
        if ((plan[t] >= most && qu < 0.0) || (plan[t] <= -most && qu > 0.0)) {
            step[t] = 0.0;
            for (size_t c = 0; c < N; c++) {
                gains[t * N + c] = 0.0;
            }
        } else {
            step[t] = -qu / quu;
            for (size_t c = 0; c < N; c++) {
                gains[t * N + c] = -qux[c] / quu;
            }
        }
        for (size_t c = 0; c < N; c++) {
            const double k = gains[t * N + c];
            v[c] = qx[c] + k * qu + qux[c] * step[t] + k * (quu - damping) * step[t];
            for (size_t e = 0; e < N; e++) {
                const double l = gains[t * N + e];
                w[c * N + e] = qxx[c * N + e] + k * qux[e] + qux[c] * l + k * (quu - damping) * l;
            }
        }
    }
}

/* Improves a plan by so many iterations; its cost, its gains (HORIZON x N) and the rows that it leads to (HORIZON + 1 x N). Gains and rows that
 * belong to the plan keep it from running away at the beginning: without feedback, what is unstable grows a thousandfold on the way. */
double mpc_plan(int of, const double x0[], double before, double plan[], const double track[], double most, int iterations,
                double gains[], double rows[])
{
    const size_t kind = (size_t)of;
    const double none[HORIZON] = {0.0};
    double first[(HORIZON + 1) * N], forces[HORIZON];
    double damping = 0.01;
    double now;
    for (size_t c = 0; c < NX; c++) {
        first[c] = x0[c];
    }
    first[NX] = before;
    now = lead(kind, plan, none, 0.0, gains, rows, track, most, first, forces);
    for (size_t t = 0; t < HORIZON; t++) {
        plan[t] = forces[t];
    }
    for (size_t c = 0; c < (HORIZON + 1) * N; c++) {
        rows[c] = first[c];
    }
    for (int i = 0; i < iterations; i++) {
        static const double shares[6] = {1.0, 0.6, 0.3, 0.1, 0.03, 0.01};
        double step[HORIZON], tried[HORIZON], there = INFINITY;
        double x[(HORIZON + 1) * N];
        double gain = 0.0;
        regulate(kind, rows, plan, track, most, damping, step, gains);
        for (size_t c = 0; c < N; c++) {
            x[c] = rows[c];
        }
        for (size_t s = 0; s < 6 && !(there < now); s++) {
            there = lead(kind, plan, step, shares[s], gains, rows, track, most, x, tried);
        }
        if (there < now) {
            gain = (now - there) / now;
            now = there;
            for (size_t t = 0; t < HORIZON; t++) {
                plan[t] = tried[t];
            }
            for (size_t c = 0; c < (HORIZON + 1) * N; c++) {
                rows[c] = x[c];
            }
            damping = fmax(1e-6, 0.2 * damping);
        } else {
            damping *= 10.0;
        }
        if ((there <= now && gain > 0.0 && gain < 1e-4) || damping > 1e5) {
            break;
        }
    }
    double step[HORIZON];
    regulate(kind, rows, plan, track, most, 1e-6, step, gains);
    return now;
}

/* Leads n scenarios, each from its own state, by a plan with its gains; the mean of their costs, and the largest distance of the cart from
 * the middle in each row. */
double mpc_scenarios(size_t n, const double x0[], double before, const double plan[], const double gains[],
                     const double rows[], const double track[], double most, double farthest[])
{
    const double none[HORIZON] = {0.0};
    double sum = 0.0;
    for (size_t t = 0; t < HORIZON; t++) {
        farthest[t] = 0.0;
    }
    for (size_t k = 0; k < n; k++) {
        double x[(HORIZON + 1) * N], u[HORIZON];
        for (size_t c = 0; c < NX; c++) {
            x[c] = x0[k * NX + c];
        }
        x[NX] = before;
        sum += lead(FIRST_SCENARIO + k, plan, none, 0.0, gains, rows, track, most, x, u) / (double)n;
        for (size_t t = 0; t < HORIZON; t++) {
            farthest[t] = fmax(farthest[t], fabs(x[(t + 1) * N]));
        }
    }
    return sum;
}

/* Where the cart is in the next row. */
double mpc_next_position(size_t kind, const double x0[], double before, double force)
{
    double x[N], to[N], a[NX * NX], b[NX * NU];
    for (size_t c = 0; c < NX; c++) {
        x[c] = x0[c];
    }
    x[NX] = before;
    next(kind, x, force, to, a, b);
    return to[0];
}
