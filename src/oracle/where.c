/* where.c - names the region that wrong elements lie in.
 *
 * A kernel that mishandles its last tile, one block, or everything past 2^31 leaves wrong
 * elements in a simple region. Regions are boxes of the output's axes, where each axis is all of
 * its indices, a range, or a repeating pattern (columns 8..15 of every 32), and a few that are
 * not boxes: ragged edges of two axes at once, a tail of the flat array, scattered whole tiles.
 *
 * A region counts when it holds 95 % of the wrong elements, when a good part of what it
 * holds is wrong (a right value may occur by chance: half of relu's output is 0), and when elements
 * outside are at least ten times less likely to be wrong than inside. Shares come from a sample of
 * the wrong elements, densities from probing places at random.
 */
#include "oracle/mismatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBES      4096
#define MIN_DENSITY 0.35
#define EVERYWHERE  0.95 // share of wrong elements from which on there is no "where"

/* ---- chance ----------------------------------------------------------------------------- */

/* A fixed sequence: the same mismatch is described in the same words every time. */
static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state;
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    return x ^ x >> 33;
}

static int64_t random_below(uint64_t *state, int64_t n) {
    return (int64_t)(next_random(state) % (uint64_t)n);
}

/* ---- boxes ------------------------------------------------------------------------------ */

/* The indices low..high of an axis, or those whose remainder modulo `period` is low..high. */
typedef struct {
    int64_t low, high, period; // period 0: a plain range
} Span;

typedef struct {
    int axes;
    const int64_t *extents;
    Span spans[WIRE_MAX_RANK];
} Box;

static int64_t span_size(Span s, int64_t extent) {
    if (s.period == 0) return s.high - s.low + 1;
    int64_t whole = extent / s.period * (s.high - s.low + 1), rest = extent % s.period;
    int64_t tail = (rest < s.high + 1 ? rest : s.high + 1) - s.low;
    return whole + (tail > 0 ? tail : 0);
}

static int64_t span_at(Span s, int64_t i) {
    if (s.period == 0) return s.low + i;
    int64_t width = s.high - s.low + 1;
    return i / width * s.period + s.low + i % width;
}

static bool span_holds(Span s, int64_t index) {
    if (s.period != 0) index %= s.period;
    return index >= s.low && index <= s.high;
}

static bool span_is_all(Span s, int64_t extent) {
    return s.period == 0 && s.low == 0 && s.high == extent - 1;
}

static int64_t box_volume(const Box *box) {
    int64_t volume = 1;
    for (int a = 0; a < box->axes; a++)
        volume *= span_size(box->spans[a], box->extents[a]);
    return volume;
}

static void coordinates(const Box *box, int64_t flat, int64_t at[WIRE_MAX_RANK]) {
    for (int a = box->axes - 1; a >= 0; a--) {
        at[a] = flat % box->extents[a];
        flat /= box->extents[a];
    }
}

static bool box_holds(const Box *box, int64_t flat) {
    int64_t at[WIRE_MAX_RANK];
    coordinates(box, flat, at);
    for (int a = 0; a < box->axes; a++)
        if (!span_holds(box->spans[a], at[a])) return false;
    return true;
}

/* The share of the box's elements that are wrong. */
static double box_density(const Wrong *w, const Box *box) {
    int64_t volume = box_volume(box), hits = 0;
    bool probe = volume > PROBES;
    int64_t count = probe ? PROBES : volume;
    uint64_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t pick = probe ? random_below(&state, volume) : i, flat = 0, stride = 1;
        for (int a = box->axes - 1; a >= 0; a--) {
            int64_t size = span_size(box->spans[a], box->extents[a]);
            flat += span_at(box->spans[a], pick % size) * stride;
            pick /= size;
            stride *= box->extents[a];
        }
        hits += is_wrong(w, flat);
    }
    return count ? (double)hits / (double)count : 0;
}

/* Whether a region of `volume` elements, `density` of them wrong, that holds `inside` of the
 * sample is where the wrong elements are. */
static bool is_region(const Wrong *w, int64_t inside, int64_t volume, double density) {
    if (!explains(inside, w->sample_count) || density < MIN_DENSITY) return false;
    int64_t rest = w->comparison->shape->elements - volume;
    if (rest <= 0) return false;
    double outside =
        (double)w->wrong * (double)(w->sample_count - inside) / (double)w->sample_count;
    return outside / (double)rest <= 0.1 * density;
}

static bool box_is_region(const Wrong *w, const Box *box) {
    int64_t inside = 0;
    for (int64_t i = 0; i < w->sample_count; i++)
        inside += box_holds(box, w->sample[i]);
    return is_region(w, inside, box_volume(box), box_density(w, box));
}

/* The output's axes, without those of extent 1: they carry no pattern. */
static Box whole(const Shape *shape, int64_t extents[WIRE_MAX_RANK]) {
    Box box = {.extents = extents};
    for (uint32_t a = 0; a < shape->rank; a++) {
        if (shape->extents[a] == 1) continue;
        extents[box.axes] = shape->extents[a];
        box.spans[box.axes++] = (Span){0, shape->extents[a] - 1, 0};
    }
    return box;
}

/* ---- one axis --------------------------------------------------------------------------- */

#define BUCKETS 1024

/* Moves an edge of `span` outward over slices that are mostly wrong: the sample rarely holds the
 * outermost element itself. */
static void grow(const Wrong *w, Box *box, int axis, int direction) {
    Span *span = &box->spans[axis], whole_span = *span;
    int64_t *edge = direction < 0 ? &whole_span.low : &whole_span.high;
    for (;;) {
        Box slice = *box;
        int64_t step = 1, reached = *edge;
        for (;; step *= 2) { // gallop
            int64_t next = reached + direction * step;
            if (next < 0 || next >= box->extents[axis]) break;
            slice.spans[axis] = (Span){next, next, 0};
            if (box_density(w, &slice) < MIN_DENSITY / 2) break;
            reached = next;
        }
        if (reached == *edge) break;
        *edge = reached;
    }
    *span = whole_span;
}

/* The range of an axis that holds nearly all of the sample, outliers cut off. */
static Span tight_range(const Wrong *w, const Box *box, int axis) {
    int64_t extent = box->extents[axis], width = (extent + BUCKETS - 1) / BUCKETS;
    int64_t counts[BUCKETS] = {0}, most = 0, at[WIRE_MAX_RANK];
    for (int64_t i = 0; i < w->sample_count; i++) {
        coordinates(box, w->sample[i], at);
        int64_t *count = &counts[at[axis] / width];
        if (++*count > most) most = *count;
    }
    int64_t first = 0, last = BUCKETS - 1;
    while (counts[first] * 8 < most)
        first++;
    while (counts[last] * 8 < most)
        last--;
    Span span = {extent, -1, 0};
    for (int64_t i = 0; i < w->sample_count; i++) {
        coordinates(box, w->sample[i], at);
        int64_t bucket = at[axis] / width;
        if (bucket < first || bucket > last) continue;
        if (at[axis] < span.low) span.low = at[axis];
        if (at[axis] > span.high) span.high = at[axis];
    }
    return span;
}

/* "columns 8..15 of every 32": the smallest pattern of a power of two. */
static bool repeating(const Wrong *w, const Box *box, int axis, Span *span) {
    double best = 0.75;
    bool found = false;
    for (int64_t period = 2; period <= 256 && 2 * period <= box->extents[axis]; period *= 2) {
        int64_t low = period, high = -1, at[WIRE_MAX_RANK], counts[256] = {0}, most = 0;
        for (int64_t i = 0; i < w->sample_count; i++) {
            coordinates(box, w->sample[i], at);
            int64_t *count = &counts[at[axis] % period];
            if (++*count > most) most = *count;
        }
        for (int64_t r = 0; r < period; r++) {
            if (counts[r] * 8 < most) continue;
            if (r < low) low = r;
            high = r;
        }
        double share = (double)(high - low + 1) / (double)period;
        if (share >= best) continue;
        best = share;
        *span = (Span){low, high, period};
        found = true;
    }
    return found;
}

/* ---- words ------------------------------------------------------------------------------ */

static const char *axis_word(const Wrong *w, int axes, int axis) {
    uint32_t rank = w->comparison->shape->rank;
    if (axes == 1 && rank <= 1) return "element";
    if (axis == axes - 1) return "column";
    if (axis == axes - 2) return "row";
    return axis == axes - 3 ? "matrix" : "block";
}

static const char *plural_of(const char *word) {
    return strcmp(word, "matrix") == 0   ? "matrices"
           : strcmp(word, "row") == 0    ? "rows"
           : strcmp(word, "column") == 0 ? "columns"
           : strcmp(word, "block") == 0  ? "blocks"
                                         : "elements";
}

/* "rows 4096 and up", "column 7", "columns 8..15 of every 32". */
static void put_span(char *out, size_t capacity, const char *word, Span s, int64_t extent) {
    const char *many = plural_of(word);
    long long low = s.low, high = s.high, period = s.period;
    if (period && low == high)
        snprintf(out, capacity, "%s %lld of every %lld", word, low, period);
    else if (period)
        snprintf(out, capacity, "%s %lld..%lld of every %lld", many, low, high, period);
    else if (low == high && extent - 1 != low)
        snprintf(out, capacity, "%s %lld", word, low);
    else if (s.high == extent - 1)
        snprintf(out, capacity, "%s %lld and up (the last %lld of %lld)", many, low,
                 (long long)(extent - s.low), (long long)extent);
    else
        snprintf(out, capacity, "%s %lld..%lld", many, low, high);
}

/* ---- regions, in the order they are tried ------------------------------------------------ */

static bool everywhere(const Wrong *w, Where *where) {
    int64_t elements = w->comparison->shape->elements;
    double share = (double)w->wrong / (double)elements;
    if (elements == 1)
        snprintf(where->subject, sizeof(where->subject), "the result");
    else if ((int64_t)w->wrong == elements)
        snprintf(where->subject, sizeof(where->subject), "every element");
    else if (share > EVERYWHERE)
        snprintf(where->subject, sizeof(where->subject), "nearly every element");
    else if (w->wrong == 1)
        snprintf(where->subject, sizeof(where->subject), "one element of %lld",
                 (long long)elements);
    else if (share < 0.001)
        snprintf(where->subject, sizeof(where->subject), "%llu of %lld elements",
                 (unsigned long long)w->wrong, (long long)elements);
    else
        snprintf(where->subject, sizeof(where->subject), "%.3g %% of the elements", 100 * share);
    where->plural = share <= EVERYWHERE && w->wrong > 1;
    return share > EVERYWHERE;
}

/* Offsets that a 32-bit index or byte offset cannot reach. */
static bool beyond_2g(const Wrong *w, Where *where) {
    int bytes = dtype_info(w->comparison->dtype)->bytes;
    int64_t elements = w->comparison->shape->elements;
    const struct {
        int64_t first;
        const char *what;
    } limits[] = {{INT64_C(1) << 32, "index 2^32"},
                  {(INT64_C(1) << 32) / bytes, "byte offset 2^32"},
                  {INT64_C(1) << 31, "index 2^31"},
                  {(INT64_C(1) << 31) / bytes, "byte offset 2^31"}};
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        int64_t first = limits[l].first, inside = 0;
        if (first >= elements) continue;
        for (int64_t i = 0; i < w->sample_count; i++)
            inside += w->sample[i] >= first;
        Box tail = {.axes = 1, .extents = &elements, .spans = {{first, elements - 1, 0}}};
        if (!is_region(w, inside, elements - first, box_density(w, &tail))) continue;
        *where = (Where){.shape = MISMATCH_BEYOND_2G, .plural = true};
        snprintf(where->subject, sizeof(where->subject), "elements past %s (%lld and up)",
                 limits[l].what, (long long)first);
        snprintf(where->reason, sizeof(where->reason), "an index or offset of 32 bits overflows");
        return true;
    }
    return false;
}

/* The largest tile whose last, partial repetition begins at `first`; 0: none. */
static int64_t ragged_tile(int64_t first, int64_t extent, int64_t largest) {
    for (int64_t tile = largest; tile >= 4; tile /= 2)
        if (first > 0 && first == extent - extent % tile) return tile;
    return 0;
}

static int64_t largest_tile(int axes) {
    return axes == 1 ? 65536 : 512;
}

/* Both edges at once: everything outside of the box of full tiles. */
static bool ragged_corner(const Wrong *w, const Box *all, Where *where) {
    if (all->axes < 2) return false;
    int row = all->axes - 2, column = all->axes - 1;
    int64_t rows = all->extents[row], columns = all->extents[column], seen_r = rows;
    for (int64_t tr = 4; tr <= 512; tr *= 2) {
        int64_t r = rows - rows % tr;
        if (r == 0 || r == rows || r == seen_r) continue;
        seen_r = r;
        int64_t seen_c = columns;
        for (int64_t tc = 4; tc <= 512; tc *= 2) {
            int64_t c = columns - columns % tc;
            if (c == 0 || c == columns || c == seen_c) continue;
            seen_c = c;
            Box core = *all, below = *all, beside = *all;
            core.spans[row].high = r - 1;
            core.spans[column].high = c - 1;
            below.spans[row].low = r;
            below.spans[column].high = c - 1;
            beside.spans[column].low = c;
            beside.spans[row].high = r - 1;
            int64_t inside = 0;
            for (int64_t i = 0; i < w->sample_count; i++)
                inside += !box_holds(&core, w->sample[i]);
            double density = fmin(box_density(w, &below), box_density(w, &beside));
            int64_t volume = w->comparison->shape->elements - box_volume(&core);
            if (!is_region(w, inside, volume, density)) continue;
            *where = (Where){.shape = MISMATCH_RAGGED_EDGE, .plural = true};
            snprintf(where->subject, sizeof(where->subject),
                     "rows %lld and up (the last %lld of %lld) and columns %lld and up (the last "
                     "%lld of %lld)",
                     (long long)r, (long long)(rows - r), (long long)rows, (long long)c,
                     (long long)(columns - c), (long long)columns);
            snprintf(where->reason, sizeof(where->reason), "ragged edges of a tile of %lld x %lld",
                     (long long)ragged_tile(r, rows, 512), (long long)ragged_tile(c, columns, 512));
            return true;
        }
    }
    return false;
}

/* The last, partial tile of a kernel that treats the output as a flat array. */
static bool flat_tail(const Wrong *w, const Box *all, Where *where) {
    int64_t elements = w->comparison->shape->elements;
    if (all->axes < 2) return false; // the box of a single axis finds it
    Box flat = {.axes = 1, .extents = &elements, .spans = {{0, elements - 1, 0}}};
    flat.spans[0] = tight_range(w, &flat, 0);
    grow(w, &flat, 0, -1);
    int64_t first = flat.spans[0].low, tile = ragged_tile(first, elements, 65536);
    bool whole_rows = first % all->extents[all->axes - 1] == 0; // better told as rows
    if (tile == 0 || whole_rows || flat.spans[0].high != elements - 1 || !box_is_region(w, &flat))
        return false;
    *where = (Where){.shape = MISMATCH_RAGGED_EDGE, .plural = true};
    snprintf(where->subject, sizeof(where->subject), "the last %lld of %lld elements",
             (long long)(elements - first), (long long)elements);
    snprintf(where->reason, sizeof(where->reason), "ragged end of a tile of %lld", (long long)tile);
    return true;
}

/* Restricts each axis by itself, then asks whether their product is a region. */
static bool find_box(const Wrong *w, Box *box) {
    Box all = *box;
    for (int a = 0; a < box->axes; a++) {
        Span range = tight_range(w, &all, a), pattern;
        int64_t extent = all.extents[a];
        box->spans[a] = range;
        if (repeating(w, &all, a, &pattern) && range.high - range.low + 1 > extent / 2 &&
            span_size(pattern, extent) < range.high - range.low + 1)
            box->spans[a] = pattern;
    }
    for (int a = 0; a < box->axes; a++) {
        if (box->spans[a].period != 0) continue;
        grow(w, box, a, -1);
        grow(w, box, a, 1);
    }
    return box_is_region(w, box);
}

static bool boxes(const Wrong *w, const Box *all, Where *where) {
    Box box = *all;
    if (!find_box(w, &box)) return false;
    int restricted = 0, last = -1;
    *where = (Where){.plural = true};
    for (int a = 0; a < box.axes; a++) {
        if (span_is_all(box.spans[a], box.extents[a])) continue;
        char text[96];
        const char *word = axis_word(w, box.axes, a);
        put_span(text, sizeof(text), word, box.spans[a], box.extents[a]);
        size_t used = strlen(where->subject);
        snprintf(where->subject + used, sizeof(where->subject) - used, "%s%s",
                 restricted ? ", " : "", text);
        restricted++;
        last = a;
    }
    if (restricted == 0) return false;
    Span s = box.spans[last];
    int64_t extent = box.extents[last], size = span_size(s, extent);
    where->plural = restricted > 1 || (s.period ? s.low < s.high : size > 1);
    bool is_columns = last == box.axes - 1 && w->comparison->shape->rank > 1;
    where->shape = restricted > 1 ? MISMATCH_TILES : is_columns ? MISMATCH_COLUMNS : MISMATCH_ROWS;
    if (restricted == 1 && s.period == 0 && s.high == extent - 1) {
        int64_t tile = ragged_tile(s.low, extent, largest_tile(box.axes));
        if (tile == 0) return true;
        where->shape = MISMATCH_RAGGED_EDGE;
        where->plural = true;
        snprintf(where->reason, sizeof(where->reason), "ragged edge of a tile of %lld",
                 (long long)tile);
    }
    return true;
}

/* Whole tiles here and there. */
static bool tiles(const Wrong *w, const Box *all, Where *where) {
    if (all->axes < 2) return false;
    int row = all->axes - 2, column = all->axes - 1;
    int64_t rows = all->extents[row], columns = all->extents[column];
    int64_t matrices = w->comparison->shape->elements / (rows * columns);
    for (int64_t area = 512 * 512; area >= 16 * 16; area /= 2) {
        for (int64_t tr = 16; tr <= 512; tr *= 2) {
            int64_t tc = area / tr;
            if (tc < 16 || tc > 512 || tr > rows || tc > columns) continue;
            int64_t across = (columns + tc - 1) / tc, down = (rows + tr - 1) / tr;
            int64_t count = matrices * across * down, touched = 0, first = -1, hits = 0, probes = 0;
            if (count < 4 || count > 1 << 22) continue;
            uint8_t *seen = calloc((size_t)count, 1);
            if (!seen) return false;
            uint64_t state = 7;
            for (int64_t i = 0; i < w->sample_count; i++) {
                int64_t flat = w->sample[i], matrix = flat / (rows * columns);
                int64_t r = flat / columns % rows, c = flat % columns;
                int64_t tile = (matrix * down + r / tr) * across + c / tc;
                if (!seen[tile]++) {
                    touched++;
                    if (first < 0 || tile < first) first = tile;
                }
                if (seen[tile] > 4) {
                    seen[tile] = 4;
                    if (i % 16) continue;
                }
                // Another place of the same tile should be wrong too.
                int64_t pr = r / tr * tr + random_below(&state, tr);
                int64_t pc = c / tc * tc + random_below(&state, tc);
                if (pr >= rows || pc >= columns) continue;
                probes++;
                hits += is_wrong(w, (matrix * rows + pr) * columns + pc);
            }
            free(seen);
            bool dense = probes >= 32 && (double)hits >= 0.9 * (double)probes;
            if (!dense || touched * 4 > count * 3 || touched < 2) continue;
            int64_t r = first / across % down * tr, c = first % across * tc;
            *where = (Where){.shape = MISMATCH_TILES, .plural = true};
            snprintf(where->subject, sizeof(where->subject),
                     "%lld of %lld tiles of %lld x %lld, the first at [%lld, %lld],",
                     (long long)touched, (long long)count, (long long)tr, (long long)tc,
                     (long long)r, (long long)c);
            return true;
        }
    }
    return false;
}

void where_wrong(const Wrong *w, Where *where) {
    *where = (Where){0};
    if (everywhere(w, where)) return;
    Where found = *where;
    int64_t extents[WIRE_MAX_RANK];
    Box all = whole(w->comparison->shape, extents);
    if (beyond_2g(w, &found) || flat_tail(w, &all, &found) || boxes(w, &all, &found) ||
        ragged_corner(w, &all, &found) || tiles(w, &all, &found))
        *where = found;
}
