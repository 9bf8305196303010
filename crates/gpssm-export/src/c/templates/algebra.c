/* ---- small linear algebra ------------------------------------------------------------------------------------------ */

/* Four sums side by side: an order that every compiler keeps. */
static real dot(size_t n, const real *a, const real *b)
{
    real s0 = R(0.0), s1 = R(0.0), s2 = R(0.0), s3 = R(0.0);
    size_t i = 0U;
    for (; i + 4U <= n; i += 4U) {
        s0 += a[i] * b[i];
        s1 += a[i + 1U] * b[i + 1U];
        s2 += a[i + 2U] * b[i + 2U];
        s3 += a[i + 3U] * b[i + 3U];
    }
    for (; i < n; i++) {
        s0 += a[i] * b[i];
    }
    return (s0 + s1) + (s2 + s3);
}

/* x <- L^-1 x; the lower triangle by columns. */
static void solve_lower(size_t n, const real *l, real *x)
{
    for (size_t j = 0U; j < n; j++) {
        const real value = x[j] / l[0];
        x[j] = value;
        for (size_t i = 1U; i < n - j; i++) {
            x[j + i] -= l[i] * value;
        }
        l += n - j;
    }
}

/* x <- L^-T x. */
static void solve_lower_transposed(size_t n, const real *l, real *x)
{
    l += n * (n + 1U) / 2U;
    for (size_t j = n; j-- > 0U;) {
        l -= n - j;
        x[j] = (x[j] - dot(n - j - 1U, &l[1], &x[j + 1U])) / l[0];
    }
}

/* out <- S' x; the lower triangle by rows. */
static void multiply_transposed(size_t n, const real *s, const real *x, real *out)
{
    for (size_t i = 0U; i < n; i++) {
        const real value = x[i];
        out[i] = R(0.0);
        for (size_t j = 0U; j <= i; j++) {
            out[j] += s[j] * value;
        }
        s += i + 1U;
    }
}

/* x <- x - S y. */
static void subtract_product(size_t n, const real *s, const real *y, real *x)
{
    for (size_t i = 0U; i < n; i++) {
        x[i] -= dot(i + 1U, s, y);
        s += i + 1U;
    }
}
