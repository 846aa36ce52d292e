/* Tukey depth of a point among integer records in two or three dimensions, and the points of a grid in a polytope:
 * docs/proofs/tukey-depth.md. All decisions are by integers.
 */
#ifndef DPFAST_DEPTH_H
#define DPFAST_DEPTH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __int128 dpfast_wide;

/* ---- depth ---- */

/* A vector from the point to a record, or its negative, in the half-open upper half-plane: side is 1 or -1. The key
 * x / (|x| + y) decreases with the angle. It is one correctly rounded quotient of integers below 2^53, so keys are never
 * in the wrong order, and those of parallel vectors are equal. */
typedef struct {
    double key;
    int64_t x, y, side;
} dpfast_ray;

static inline int64_t dpfast_magnitude(int64_t a)
{
    return a < 0 ? -a : a;
}

static inline dpfast_ray dpfast_ray_to(int64_t x, int64_t y)
{
    int64_t side = y > 0 || (y == 0 && x > 0) ? 1 : -1;
    x *= side, y *= side;
    return (dpfast_ray){(double)x / (double)(dpfast_magnitude(x) + y), x, y, side};
}

/* Whether the angle of b is less than that of a. |x|, |y| < 2^31. */
static inline int dpfast_turns_back(const dpfast_ray *a, const dpfast_ray *b)
{
    return b->key > a->key || (b->key == a->key && a->x * b->y - a->y * b->x < 0);
}

static void dpfast_sort_rays(dpfast_ray *rays, dpfast_ray *scratch, ptrdiff_t n)
{
    for (ptrdiff_t start = 0; start < n; start += 8) /* insertion in runs of 8, then merges */
        for (ptrdiff_t i = start + 1; i < n && i < start + 8; i++) {
            dpfast_ray ray = rays[i];
            ptrdiff_t j = i;
            for (; j > start && dpfast_turns_back(rays + j - 1, &ray); j--)
                rays[j] = rays[j - 1];
            rays[j] = ray;
        }
    dpfast_ray *from = rays, *to = scratch;
    for (ptrdiff_t width = 8; width < n; width *= 2) {
        for (ptrdiff_t start = 0; start < n; start += 2 * width) {
            ptrdiff_t middle = start + width < n ? start + width : n, stop = middle + width < n ? middle + width : n;
            ptrdiff_t i = start, j = middle;
            for (ptrdiff_t k = start; k < stop; k++)
                to[k] = i < middle && (j >= stop || !dpfast_turns_back(from + i, from + j)) ? from[i++] : from[j++];
        }
        dpfast_ray *other = from;
        from = to;
        to = other;
    }
    if (from != rays)
        memcpy(rays, from, (size_t)n * sizeof(dpfast_ray));
}

static int64_t dpfast_gcd(int64_t a, int64_t b)
{
    a = dpfast_magnitude(a), b = dpfast_magnitude(b);
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* The least number of n rays on one side of a line through the point with none of them on it; normal[0..1] points to
 * that side. The rays are sorted; `scratch` has as many. n = 0: 0. */
static int64_t dpfast_least_side(dpfast_ray *rays, dpfast_ray *scratch, ptrdiff_t n, int64_t *normal)
{
    int64_t left = 0, least = n;
    dpfast_sort_rays(rays, scratch, n);
    for (ptrdiff_t i = 0; i < n; i++)
        left += rays[i].side > 0;
    normal[0] = 1, normal[1] = 0;
    for (ptrdiff_t i = 0; i < n;) {
        ptrdiff_t next = i;
        for (; next < n && rays[next].key == rays[i].key && rays[i].x * rays[next].y == rays[i].y * rays[next].x;
             next++)
            left -= rays[next].side;
        int64_t fewer = left < n - left ? left : n - left;
        if (fewer < least || i == 0) {
            /* a direction between this ray and the next one, which is the opposite of the first after the last */
            int64_t ax = rays[i].x, ay = rays[i].y, turn = next < n ? 1 : -1;
            int64_t bx = turn * rays[next % n].x, by = turn * rays[next % n].y;
            int64_t x = -ay, y = ax;
            if (i > 0 || next < n) {
                double a = sqrt((double)(ax * ax + ay * ay)), b = sqrt((double)(bx * bx + by * by));
                int64_t p = b > a ? (int64_t)(b / a) : 1, q = a > b ? (int64_t)(a / b) : 1;
                x = p * ax + q * bx, y = p * ay + q * by;
            }
            int64_t side = left <= n - left ? 1 : -1, common = dpfast_gcd(x, y);
            least = fewer;
            normal[0] = -side * y / common, normal[1] = side * x / common;
        }
        i = next;
    }
    return least;
}

/* The depth of a point among n records of two codes: the least number of them in a closed half-plane that contains it.
 * normal[0..1] is that of such a half-plane, up to records on its edge, which can only be equal to the point. */
static int64_t dpfast_depth_2(const int64_t *records, ptrdiff_t n, const int64_t *point, dpfast_ray *rays,
                              dpfast_ray *scratch, int64_t *normal)
{
    ptrdiff_t m = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t x = records[2 * i] - point[0], y = records[2 * i + 1] - point[1];
        rays[m] = dpfast_ray_to(x, y);
        m += x != 0 || y != 0;
    }
    return n - m + dpfast_least_side(rays, scratch, m, normal);
}

/* The same for three codes below 2^8: the least side of a plane has an edge on a plane through some record, and so is the
 * least side of a line in the projection along that record, with the fewer of the records on either side of the point in
 * that direction. Stops at the first side with fewer than `enough` records. */
static int64_t dpfast_depth_3(const int64_t *records, ptrdiff_t n, const int64_t *point, int64_t enough, int64_t *apart,
                              dpfast_ray *rays, dpfast_ray *scratch, int64_t *normal)
{
    ptrdiff_t m = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t *v = apart + 3 * m;
        for (int j = 0; j < 3; j++)
            v[j] = records[3 * i + j] - point[j];
        m += v[0] != 0 || v[1] != 0 || v[2] != 0;
    }
    int64_t least = m;
    normal[0] = 1, normal[1] = 0, normal[2] = 0;
    for (ptrdiff_t i = 0; i < m && n - m + least >= enough; i++) {
        const int64_t *v = apart + 3 * i;
        int h = v[0] ? 0 : v[1] ? 1 : 2, f = h == 0 ? 1 : 0, g = h == 2 ? 1 : 2;
        ptrdiff_t count = 0;
        int64_t along = 0, against = 0, flat[2], farthest = 0;
        for (ptrdiff_t k = 0; k < m; k++) {
            const int64_t *w = apart + 3 * k;
            int64_t x = v[h] * w[f] - v[f] * w[h], y = v[h] * w[g] - v[g] * w[h];
            int64_t product = v[0] * w[0] + v[1] * w[1] + v[2] * w[2], distance = dpfast_magnitude(product);
            farthest = distance > farthest ? distance : farthest;
            if (x || y)
                rays[count++] = dpfast_ray_to(x, y);
            else if (product > 0)
                along++;
            else
                against++;
        }
        int64_t side = dpfast_least_side(rays, scratch, count, flat) + (along < against ? along : against);
        if (side < least || i == 0) {
            int64_t u[3], factor = farthest + 1, sign = along <= against ? 1 : -1;
            u[f] = flat[0] * v[h], u[g] = flat[1] * v[h], u[h] = -flat[0] * v[f] - flat[1] * v[g];
            int64_t common = dpfast_gcd(dpfast_gcd(u[0], u[1]), u[2]);
            for (int j = 0; j < 3; j++)
                normal[j] = factor * (u[j] / common) + sign * v[j];
            common = dpfast_gcd(dpfast_gcd(normal[0], normal[1]), normal[2]);
            for (int j = 0; j < 3; j++)
                normal[j] /= common;
            least = side;
        }
    }
    return n - m + least;
}

/* ---- the points of a grid in a polygon ---- */

static inline dpfast_wide dpfast_floor_ratio(dpfast_wide a, dpfast_wide b)
{
    dpfast_wide q = a / b;
    return q - (a % b != 0 && a < 0);
}

/* The sum of floor((a i + b) / c) over i = 0..n - 1, c > 0: Euclid's algorithm on a and c. */
static dpfast_wide dpfast_floor_sum(dpfast_wide n, dpfast_wide a, dpfast_wide b, dpfast_wide c)
{
    dpfast_wide total = 0, sign = 1;
    while (n > 0) {
        dpfast_wide slope = dpfast_floor_ratio(a, c), start = dpfast_floor_ratio(b, c);
        total += sign * (n * (n - 1) / 2 * slope + n * start);
        a -= slope * c, b -= start * c;
        dpfast_wide top = dpfast_floor_ratio(a * (n - 1) + b, c); /* the last term */
        if (top == 0)
            break;
        total += sign * n * top; /* less, for j = 1..top, the i with a i + b < c j, which are ceil((c j - b) / a) */
        sign = -sign;
        b = c - b + a - 1;
        n = top;
        dpfast_wide swap = a;
        a = c, c = swap;
    }
    return total;
}

/* A line a x + b y <= c for the columns x from `start` on; b > 0 for the chain above, b < 0 below, where it bounds -y. */
typedef struct {
    int64_t a, b, c, start;
} dpfast_edge;

/* The points of x = first..last between an edge above and an edge below. */
typedef struct {
    int64_t first, last;
    dpfast_edge above, below;
} dpfast_strip;

/* The chain of the lines that bound y (or -y) from above at the columns low..high. They are sorted by a / b. */
static ptrdiff_t dpfast_chain_of(const dpfast_edge *lines, ptrdiff_t m, int64_t low, int64_t high, dpfast_edge *chain)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        dpfast_edge line = lines[i];
        line.start = low;
        while (count) {
            const dpfast_edge *top = chain + count - 1;
            dpfast_wide slope = (dpfast_wide)line.a * top->b - (dpfast_wide)top->a * line.b;
            dpfast_wide gap = (dpfast_wide)line.c * top->b - (dpfast_wide)top->c * line.b;
            /* line is at or below top where slope * x >= gap; slope >= 0 */
            if (slope == 0) {
                if (gap >= 0) {
                    line.start = high + 1;
                    break;
                }
            } else {
                dpfast_wide x = -dpfast_floor_ratio(-gap, slope);
                if (x > top->start) {
                    line.start = x > high ? high + 1 : (int64_t)x;
                    break;
                }
            }
            count--;
            line.start = low;
        }
        if (line.start <= high)
            chain[count++] = line;
    }
    return count;
}

static inline dpfast_wide dpfast_height_sum(const dpfast_edge *edge, int64_t first, int64_t last)
{
    return dpfast_floor_sum((dpfast_wide)last - first + 1, -(dpfast_wide)edge->a,
                            (dpfast_wide)edge->c - (dpfast_wide)edge->a * first, edge->b);
}

static inline int64_t dpfast_height(const dpfast_edge *edge, int64_t x)
{
    return (int64_t)dpfast_floor_ratio((dpfast_wide)edge->c - (dpfast_wide)edge->a * x, edge->b);
}

/* The number of points of a strip in its columns up to x. */
static inline uint64_t dpfast_strip_count(const dpfast_strip *strip, int64_t x)
{
    return (uint64_t)(dpfast_height_sum(&strip->above, strip->first, x)
                      + dpfast_height_sum(&strip->below, strip->first, x) + ((dpfast_wide)x - strip->first + 1));
}

/* The strips of the polygon of the points with a x + b y <= c for all m lines, 0 <= x <= last, and how many there are.
 *
 * lines: rows (a, b, .), first `above` rows with b > 0 and then `below` rows with b < 0, each sorted by a / |b|, then
 * rows with b = 0; at least one above and one below. `edges` has 2 m entries, `strips` m + 1. */
static ptrdiff_t dpfast_polygon(const int64_t *lines, const int64_t *limits, ptrdiff_t m, ptrdiff_t above,
                                ptrdiff_t below, int64_t last, dpfast_edge *edges, dpfast_strip *strips)
{
    int64_t low = 0, high = last;
    for (ptrdiff_t i = above + below; i < m; i++) {
        dpfast_wide a = lines[3 * i], c = limits[i];
        if (a > 0) {
            dpfast_wide bound = dpfast_floor_ratio(c, a);
            high = bound < high ? (int64_t)(bound < -1 ? -1 : bound) : high;
        } else if (a < 0) {
            dpfast_wide bound = -dpfast_floor_ratio(c, -a);
            low = bound > low ? (int64_t)(bound > last ? last + 1 : bound) : low;
        } else if (c < 0)
            return 0;
    }
    if (low > high)
        return 0;
    for (ptrdiff_t i = 0; i < above + below; i++)
        edges[m + i] = (dpfast_edge){lines[3 * i], dpfast_magnitude(lines[3 * i + 1]), limits[i], low};
    ptrdiff_t upper = dpfast_chain_of(edges + m, above, low, high, edges);
    ptrdiff_t lower = dpfast_chain_of(edges + m + above, below, low, high, edges + above), count = 0;
    const dpfast_edge *top = edges, *bottom = edges + above;
    for (ptrdiff_t i = 0, j = 0; i < upper && j < lower;) {
        int64_t first = top[i].start > bottom[j].start ? top[i].start : bottom[j].start;
        int64_t end_of_top = i + 1 < upper ? top[i + 1].start - 1 : high;
        int64_t end_of_bottom = j + 1 < lower ? bottom[j + 1].start - 1 : high;
        int64_t stop = end_of_top < end_of_bottom ? end_of_top : end_of_bottom;
        /* the columns where the upper edge is not below the lower one: slope * x <= gap */
        dpfast_wide slope = (dpfast_wide)top[i].a * bottom[j].b + (dpfast_wide)bottom[j].a * top[i].b;
        dpfast_wide gap = (dpfast_wide)top[i].c * bottom[j].b + (dpfast_wide)bottom[j].c * top[i].b;
        dpfast_wide from = first, to = stop;
        if (slope > 0 && dpfast_floor_ratio(gap, slope) < to)
            to = dpfast_floor_ratio(gap, slope);
        if (slope < 0 && -dpfast_floor_ratio(gap, -slope) > from)
            from = -dpfast_floor_ratio(gap, -slope);
        if (from <= to && (slope != 0 || gap >= 0))
            strips[count++] = (dpfast_strip){(int64_t)from, (int64_t)to, top[i], bottom[j]};
        i += stop == end_of_top;
        j += stop == end_of_bottom;
    }
    return count;
}

static uint64_t dpfast_polygon_count(const dpfast_strip *strips, ptrdiff_t count)
{
    uint64_t total = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        total += dpfast_strip_count(strips + i, strips[i].last);
    return total;
}

/* The point of this index, below the number of points: by columns, in a column from below. */
static void dpfast_polygon_point(const dpfast_strip *strips, uint64_t index, int64_t *point)
{
    uint64_t inside;
    while (index >= (inside = dpfast_strip_count(strips, strips->last))) {
        index -= inside;
        strips++;
    }
    int64_t low = strips->first, high = strips->last;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (dpfast_strip_count(strips, middle) > index)
            high = middle;
        else
            low = middle + 1;
    }
    if (low > strips->first)
        index -= dpfast_strip_count(strips, low - 1);
    point[0] = low;
    point[1] = (int64_t)index - dpfast_height(&strips->below, low);
}

#endif
