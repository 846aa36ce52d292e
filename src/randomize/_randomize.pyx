"""Local randomisers of scalars and categories, and the count of hashed reports; serves dpfast/local/.

Each report takes one exact coin, ``word < threshold``, and choices that are uniform for every record
(docs/proofs/local-categories.md, docs/proofs/local-interval.md). Words are drawn in chunks, a fixed number per report;
an exactly uniform integer takes a further word with probability below 2**-32. The number of words never depends on a
record.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset
from numpy.random cimport bitgen_t

from dpfast._kernels._samplers cimport unwrap

import numpy as np

from dpfast._kernels._samplers import fill_words
from dpfast._kernels._secure import SecureBitGenerator

cnp.import_array()

cdef extern from "randomize.h":
    enum:
        DPFAST_DIGITS
    uint32_t dpfast_window(
        bitgen_t *source, const uint64_t *words, uint32_t start, uint32_t width, uint32_t size, uint64_t threshold
    ) noexcept nogil
    uint32_t dpfast_row(const uint64_t *words, uint32_t x, uint32_t last, uint64_t threshold) noexcept nogil
    uint32_t dpfast_dither(double x, double lower, uint64_t word, const double *knots, Py_ssize_t n) noexcept nogil
    void dpfast_threshold_bits(
        const uint64_t *words, uint64_t threshold, uint64_t *bits, uint64_t *lanes, Py_ssize_t n
    ) noexcept nogil
    uint64_t dpfast_close_lanes(bitgen_t *source, uint64_t bits, uint64_t lanes, uint64_t threshold) noexcept nogil
    void dpfast_subset(
        bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t width, uint32_t size, uint64_t threshold,
        uint64_t *out
    ) noexcept nogil
    void dpfast_large_subset(
        bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t width, uint32_t size, uint64_t threshold,
        uint64_t *out, uint64_t *lanes, Py_ssize_t n
    ) noexcept nogil
    void dpfast_line(
        bitgen_t *source, const uint64_t *words, uint32_t x, uint32_t edge, uint64_t threshold, uint32_t *out
    ) noexcept nogil
    void dpfast_fetch(const void *table, uint64_t z, Py_ssize_t size) noexcept nogil
    void dpfast_hadamard(int64_t *x, Py_ssize_t n) noexcept nogil
    Py_ssize_t dpfast_count_lines(
        const uint32_t *lines, Py_ssize_t n, uint32_t edge, int64_t *counts, Py_ssize_t size
    ) noexcept nogil


cdef extern from "hyperplanes.h":
    enum:
        DPFAST_STRIP
    ctypedef struct dpfast_hash:
        pass
    dpfast_hash dpfast_hash_of(uint64_t number, uint64_t seed) noexcept nogil
    uint64_t dpfast_cell(dpfast_hash hash, uint64_t key, uint64_t buckets) noexcept nogil
    uint64_t dpfast_product(uint64_t a, uint64_t v, uint64_t prime, int digits) noexcept nogil
    void dpfast_roots(Py_ssize_t prime, uint8_t *roots) noexcept nogil
    void dpfast_add_report(
        uint64_t a, uint64_t b, Py_ssize_t prime, int digits, Py_ssize_t width, const uint8_t *roots, uint16_t *heights,
        int64_t *out
    ) noexcept nogil
    void dpfast_supports_8(
        uint8_t *table, Py_ssize_t size, Py_ssize_t prime, int digits, Py_ssize_t width, Py_ssize_t lanes,
        uint8_t *room, const uint8_t **rows
    ) noexcept nogil
    void dpfast_supports_alone_8(
        uint8_t *table, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t prime, int low, int high, Py_ssize_t width,
        uint8_t *other, uint8_t *room, const uint8_t **places
    ) noexcept nogil
    void dpfast_supports_16(
        uint16_t *table, Py_ssize_t size, Py_ssize_t prime, int digits, Py_ssize_t width, Py_ssize_t lanes,
        uint16_t *room, const uint16_t **rows
    ) noexcept nogil
    void dpfast_supports_alone_16(
        uint16_t *table, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t prime, int low, int high, Py_ssize_t width,
        uint16_t *other, uint16_t *room, const uint16_t **places
    ) noexcept nogil
    void dpfast_supports_32(
        uint32_t *table, Py_ssize_t size, Py_ssize_t prime, int digits, Py_ssize_t width, Py_ssize_t lanes,
        uint32_t *room, const uint32_t **rows
    ) noexcept nogil
    void dpfast_supports_alone_32(
        uint32_t *table, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t prime, int low, int high, Py_ssize_t width,
        uint32_t *other, uint32_t *room, const uint32_t **places
    ) noexcept nogil


ctypedef fused symbol:
    uint8_t
    uint16_t
    uint32_t


ctypedef fused any_symbol:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


ctypedef fused count:
    uint8_t
    uint16_t
    uint32_t


ctypedef fused counter:
    uint32_t
    int64_t


# Words drawn at once: 128 KiB stay in the second-level cache.
cdef Py_ssize_t CHUNK = 2**14
# Up to this number, words are drawn one by one faster than in bulk.
cdef Py_ssize_t FEW = 256
# Counts of more bytes are fetched into the first-level cache, AHEAD reports before they are needed.
cdef Py_ssize_t CACHE = 2**15, AHEAD = 64


cdef uint64_t[::1] room(Py_ssize_t reports, Py_ssize_t each):
    """An array for the words of a chunk of at least one report."""
    return np.empty(each * max(1, min(reports, CHUNK // each)), np.uint64)


cdef int refill(object bit_generator, uint64_t[::1] words) except -1:
    cdef bitgen_t *source
    cdef Py_ssize_t i
    if words.shape[0] <= FEW:
        source = unwrap(bit_generator)
        with bit_generator.lock:
            for i in range(words.shape[0]):
                words[i] = source.next_uint64(source.state)
    elif isinstance(bit_generator, SecureBitGenerator):
        bit_generator.fill(words)  # the same words, three times as fast
    else:
        fill_words(bit_generator, words)
    return 0


cdef struct column:
    # The entries of a vector; numbers of `itemsize` bytes
    char *data
    Py_ssize_t n
    Py_ssize_t stride
    Py_ssize_t itemsize


cdef column vector(cnp.ndarray array, str kinds) except *:
    """Where the entries of a vector of a dtype of these kinds lie; without the buffer interface, which takes 0.5 us."""
    cdef column found
    if cnp.PyArray_NDIM(array) != 1 or chr(array.descr.kind) not in kinds or not cnp.PyArray_ISALIGNED(array):
        raise ValueError(f"a vector of kind {kinds} in place, not of dtype {array.dtype} and {array.ndim} dimensions")
    found.data = <char *> cnp.PyArray_DATA(array)
    found.n, found.stride = cnp.PyArray_DIM(array, 0), cnp.PyArray_STRIDE(array, 0)
    found.itemsize = cnp.PyArray_ITEMSIZE(array)
    return found


cdef inline double double_at(const column *x, Py_ssize_t i) noexcept nogil:
    return (<double *> (x.data + i * x.stride))[0]


cdef inline uint32_t code_at(const column *x, Py_ssize_t i) noexcept nogil:
    return (<uint32_t *> (x.data + i * x.stride))[0]


cdef inline void put(const column *out, Py_ssize_t i, uint32_t symbol) noexcept nogil:
    cdef char *place = out.data + i * out.stride
    if out.itemsize == 1:
        (<uint8_t *> place)[0] = <uint8_t> symbol
    elif out.itemsize == 2:
        (<uint16_t *> place)[0] = <uint16_t> symbol
    else:
        (<uint32_t *> place)[0] = symbol


cdef inline void draw_words(bitgen_t *source, uint64_t *words, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        words[i] = source.next_uint64(source.state)


cdef uint32_t _category(double x, double k) noexcept nogil:
    """x, or 0 if it is not one of 0..k - 1; without a jump that depends on it."""
    cdef double inside = x if (x >= 0) & (x < k) else 0.0
    cdef uint32_t code = <uint32_t> inside
    return code & -<uint32_t> (<double> code == inside)


cdef void _fill_categories(const column *x, bint is_float, uint32_t k, const column *out) noexcept nogil:
    cdef column records = x[0], codes = out[0]  # copies, which a category that is put cannot change
    cdef uint64_t whole
    cdef Py_ssize_t i
    if is_float:
        for i in range(records.n):
            put(&codes, i, _category(double_at(&records, i), k))
    else:
        for i in range(records.n):
            whole = (<uint64_t *> (records.data + i * records.stride))[0]
            put(&codes, i, <uint32_t> whole & -<uint32_t> (whole < k))


def categories(cnp.ndarray x not None, uint32_t k, cnp.ndarray out not None):
    """Fill with the categories of doubles or 64-bit integers, 0 for a number that is none of 0..k - 1, as NaN or 0.5.

    **Law** deterministic. **Assumes** k at most 2**31, `out` of uint32. **Cost** 1 ns each.
    """
    cdef column records = vector(x, "fiu"), codes = vector(out, "u")
    cdef bint is_float = chr(x.descr.kind) == "f"
    with nogil:
        _fill_categories(&records, is_float, k, &codes)


cdef inline uint64_t _key(double x, uint64_t last) noexcept nogil:
    """x, or 0 if it is not one of 0..last; without a jump that depends on it."""
    cdef double inside = x if (x >= 0) & (x < 18446744073709551616.0) else 0.0
    cdef uint64_t whole = <uint64_t> inside
    return whole & -<uint64_t> ((<double> whole == inside) & (whole <= last))


def fill_keys(cnp.ndarray x not None, uint64_t last, uint64_t[::1] out not None):
    """Fill with the keys of doubles or 64-bit integers, 0 for a number that is none of 0..last, as NaN or 0.5.

    **Law** deterministic. **Assumes** len(out) = len(x). **Cost** 1 ns each.
    """
    cdef column records = vector(x, "fiu")
    cdef bint is_float = chr(x.descr.kind) == "f"
    cdef uint64_t most = last, whole
    cdef Py_ssize_t i
    if chr(x.descr.kind) == "i":  # negative numbers are no keys
        most = min(last, <uint64_t> 2**63 - 1)
    with nogil:
        for i in range(records.n):
            if is_float:
                out[i] = _key(double_at(&records, i), last)
            else:
                whole = (<uint64_t *> (records.data + i * records.stride))[0]
                out[i] = whole & -<uint64_t> (whole <= most)


cdef void _fill_windows(bitgen_t *source, const uint64_t *words, const column *starts, uint32_t width, uint32_t size,
                        uint64_t threshold, const column *out, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef column records = starts[0], symbols = out[0]  # copies, which a report that is put cannot change
    cdef Py_ssize_t i
    for i in range(first, first + count):
        put(&symbols, i, dpfast_window(source, words, code_at(&records, i), width, size, threshold))
        words += 2


def fill_windows(
    bit_generator, cnp.ndarray starts not None, uint32_t width, uint32_t size, uint64_t threshold,
    cnp.ndarray out not None,
):
    """Fill with symbols of 0..size-1: in the window of `width` from the record's start on, or outside it.

    **Law** with probability threshold / 2**64 uniform on start..start + width - 1, else uniform on the others, exactly.
    **Assumes** 1 <= width < size, starts <= size - width, of uint32; size at most the range of `out`, unsigned
    integers. **Cost** two words each. Width 1 is k-ary randomised response.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef column windows = vector(starts, "u"), symbols = vector(out, "u")
    cdef Py_ssize_t n = windows.n, done = 0, m
    cdef uint64_t few[256]
    cdef uint64_t[::1] words
    if 2 * n <= FEW:
        with bit_generator.lock:
            draw_words(source, few, 2 * n)
            _fill_windows(source, few, &windows, width, size, threshold, &symbols, 0, n)
        return
    words = room(n, 2)
    while done < n:
        m = min(n - done, words.shape[0] // 2)
        refill(bit_generator, words[:2 * m])
        with bit_generator.lock, nogil:
            _fill_windows(source, &words[0], &windows, width, size, threshold, &symbols, done, m)
        done += m


def fill_rows(
    bit_generator, const uint32_t[::1] x not None, uint32_t last, uint64_t threshold, symbol[::1] out not None
):
    """Fill with 2 row + bit: a uniform row of the Hadamard matrix of order last + 1, its entry at x kept or flipped.

    **Law** kept with probability threshold / 2**64, exactly; bit 1 means the entry -1. **Assumes** last + 1 a
    power of two, at most 2**31, x <= last, 2 last + 1 in the range of `out`. **Cost** two words each, always.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef Py_ssize_t n = x.shape[0], done = 0, i, m
    cdef uint64_t[::1] words = room(n, 2)
    while done < n:
        m = min(n - done, words.shape[0] // 2)
        refill(bit_generator, words[:2 * m])
        with nogil:
            for i in range(m):
                out[done + i] = <symbol>dpfast_row(&words[2 * i], x[done + i], last, threshold)
        done += m


cdef void _fill_dither(const uint64_t *words, const column *x, double lower, const double *knots, Py_ssize_t size,
                       const column *out, Py_ssize_t first, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        put(out, first + i, dpfast_dither(double_at(x, first + i), lower, words[i], knots, size))


def fill_dither(
    bit_generator, cnp.ndarray x not None, double lower, cnp.ndarray knots not None, cnp.ndarray out not None
):
    """Fill with the index of one of the two knots around each x - lower, so that the mean of the knot is x - lower.

    **Law** the upper knot with probability (x - lower - lower knot) / (distance of the knots), a double rounded up to
    53 binary digits. NaN is 0; distances are clamped to the first and last knot. Not critical for privacy: any index in
    0..len(knots)-1 is private. **Assumes** doubles, at least two knots, strictly increasing and contiguous; `out` of
    uint32. **Cost** one word each, a search.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef column records = vector(x, "f"), places = vector(knots, "f"), codes = vector(out, "u")
    cdef const double *known = <const double *> places.data
    cdef Py_ssize_t n = records.n, done = 0, m
    cdef uint64_t few[256]
    cdef uint64_t[::1] words
    if n <= FEW:
        with bit_generator.lock:
            draw_words(source, few, n)
        _fill_dither(few, &records, lower, known, places.n, &codes, 0, n)
        return
    words = room(n, 1)
    while done < n:
        m = min(n - done, words.shape[0])
        refill(bit_generator, words[:m])
        with nogil:
            _fill_dither(&words[0], &records, lower, known, places.n, &codes, done, m)
        done += m


def fill_unary(
    bit_generator, const uint32_t[::1] x not None, uint64_t threshold, Py_ssize_t size, uint64_t[:, ::1] out not None
):
    """Fill each row with `size` packed bits: bit x is fair, the others are 1 with probability threshold / 2**64.

    **Law** exact; bits from `size` on are 0. **Assumes** x < size, out.shape == (len(x), ceil(size / 64)). **Cost** 8
    words for 64 bits, a further word for each bit that remains open (2**-8 of them); one for 64 fair bits.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], width = out.shape[1], total = n * width, done = 0, i, m
    cdef uint64_t[::1] fair = np.empty((n + 63) // 64, np.uint64)
    cdef uint64_t[::1] words = room(total, DPFAST_DIGITS)
    cdef uint64_t[::1] lanes = np.empty(words.shape[0] // DPFAST_DIGITS, np.uint64)
    cdef uint64_t inside = <uint64_t>-1 >> (-size & 63), own
    cdef uint64_t *bits
    if total == 0:
        return
    bits = &out[0, 0]
    refill(bit_generator, fair)
    while done < total:
        m = min(total - done, lanes.shape[0])
        refill(bit_generator, words[:DPFAST_DIGITS * m])
        with bit_generator.lock, nogil:
            dpfast_threshold_bits(&words[0], threshold, bits + done, &lanes[0], m)
            for i in range(m):
                if (done + i) % width == width - 1:
                    bits[done + i] &= inside
                    lanes[i] &= inside
                bits[done + i] = dpfast_close_lanes(source, bits[done + i], lanes[i], threshold)
        done += m
    with nogil:
        for i in range(n):
            own = <uint64_t>1 << (x[i] & 63)
            bits = &out[i, x[i] >> 6]
            bits[0] = (bits[0] & ~own) | ((fair[i >> 6] >> (i & 63) & 1) << (x[i] & 63))


def fill_subsets(
    bit_generator, const uint32_t[::1] x not None, uint32_t width, uint32_t size, uint64_t threshold,
    uint64_t[:, ::1] out not None,
):
    """Add to each row, packed, the bits of a set of `width` of the categories 0..size-1 that contains x or not.

    **Law** x is in the set with probability threshold / 2**64, the rest is uniform, exactly. **Assumes** `out` zero, of
    shape (len(x), ceil(size / 64)), 1 <= width < size, x < size. **Cost** width + 1 words each.
    **Reference** Ye and Barg 2018; Floyd's sampling of sets (Bentley and Floyd 1987).
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], each = <Py_ssize_t>width + 1, done = 0, i, m
    cdef uint64_t[::1] words = room(n, each)
    while done < n:
        m = min(n - done, words.shape[0] // each)
        refill(bit_generator, words[:each * m])
        with bit_generator.lock, nogil:
            for i in range(m):
                dpfast_subset(source, &words[each * i], x[done + i], width, size, threshold, &out[done + i, 0])
        done += m


def fill_large_subsets(
    bit_generator, const uint32_t[::1] x not None, uint32_t width, uint32_t size, uint64_t threshold,
    uint64_t[:, ::1] out not None,
):
    """Fill each row, packed, as `fill_subsets` does, in a time that hardly depends on `width`.

    **Law** that of `fill_subsets`, exactly. **Assumes** out.shape == (len(x), ceil(size / 64)), 1 <= width < size,
    x < size. **Cost** 8 words for 64 categories and about sqrt(width) further ones each.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], each = DPFAST_DIGITS * out.shape[1] + 1, done = 0, i, m
    cdef uint64_t[::1] words = room(n, each), lanes = np.empty(out.shape[1], np.uint64)
    while done < n:
        m = min(n - done, words.shape[0] // each)
        refill(bit_generator, words[:each * m])
        with bit_generator.lock, nogil:
            for i in range(m):
                dpfast_large_subset(
                    source, &words[each * i], x[done + i], width, size, threshold, &out[done + i, 0], &lanes[0],
                    out.shape[1])
        done += m


def fill_lines(
    bit_generator, const uint32_t[::1] x not None, uint32_t edge, uint64_t threshold, uint32_t[:, ::1] out not None
):
    """Fill with lines (slope, offset) modulo the prime 2**32 - 5, below `edge` at x or not.

    **Law** (slope x + offset) mod prime < edge with probability threshold / 2**64; uniform among such lines, exactly.
    **Assumes** out.shape == (len(x), 2), 1 <= edge < prime, x < prime. **Cost** three words each.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef bitgen_t *source = unwrap(bit_generator)
    cdef Py_ssize_t n = x.shape[0], done = 0, i, m
    cdef uint64_t[::1] words = room(n, 3)
    while done < n:
        m = min(n - done, words.shape[0] // 3)
        refill(bit_generator, words[:3 * m])
        with bit_generator.lock, nogil:
            for i in range(m):
                dpfast_line(source, &words[3 * i], x[done + i], edge, threshold, &out[done + i, 0])
        done += m


def count_symbols(const symbol[::1] reports not None, counter[::1] counts not None):
    """counts[z] += the number of reports z below len(counts); return how many these are.

    **Law** exact, for counts that do not exceed their type in the end. **Cost** one pass; 0.3 ns each where the counts
    are in the first-level cache, 0.8 ns in the third.
    """
    cdef Py_ssize_t i, n = reports.shape[0], far = 0, refused = 0
    cdef uint64_t size = counts.shape[0], z
    if size * sizeof(counter) > <size_t> CACHE:
        far = max(n - AHEAD, 0)
    with nogil:
        for i in range(far):
            dpfast_fetch(&counts[0], reports[i + AHEAD], sizeof(counter))
            z = reports[i]
            if z < size:
                counts[z] += 1
            else:
                refused += 1
        for i in range(far, n):
            z = reports[i]
            if z < size:
                counts[z] += 1
            else:
                refused += 1
    return n - refused


def transform(int64_t[::1] x not None):
    """Replace x by its Walsh-Hadamard transform: entry v becomes the sum of x[j] (-1)**(number of digits in j & v).

    **Law** exact, modulo 2**64. **Assumes** len(x) a power of two. **Cost** n log2(n) additions, in place.
    """
    with nogil:
        dpfast_hadamard(&x[0], x.shape[0])


def count_lines(const uint32_t[:, ::1] lines not None, uint32_t edge, int64_t[::1] out not None):
    """Add to out[v] the number of lines below `edge` at category v; return the number of lines.

    A pair of numbers is a line if both are below the prime 2**32 - 5.

    **Law** exact. **Assumes** lines of shape (n, 2), `edge` below the prime, at least one category. **Cost**
    n * len(out) steps of 0.1 to 0.5 ns; no memory.
    """
    cdef Py_ssize_t counted = 0
    if lines.shape[0]:
        with nogil:
            counted = dpfast_count_lines(&lines[0, 0], lines.shape[0], edge, &out[0], out.shape[0])
    return counted


def fill_hashed(
    const uint64_t[::1] drawn not None, const uint32_t[::1] heights not None, const uint64_t[::1] keys not None,
    uint64_t buckets, uint64_t prime, int digits, uint64_t seed, bint hashed, any_symbol[::1] out not None,
):
    """Fill with reports (function, vector a, offset b): a v + b modulo the prime is the height, v the key's cell.

    **Law** deterministic; `drawn` is function * buckets + a. **Assumes** arrays of one length, buckets = prime**digits
    at most 2**32, keys below it unless `hashed`. **Cost** `digits` divisions each.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef Py_ssize_t i
    cdef uint64_t cell
    with nogil:
        for i in range(drawn.shape[0]):
            cell = dpfast_cell(dpfast_hash_of(drawn[i] / buckets, seed), keys[i], buckets) if hashed else keys[i]
            cell = dpfast_product(drawn[i] % buckets, cell, prime, digits)
            out[i] = <any_symbol> (drawn[i] * prime + (heights[i] + prime - cell) % prime)


def add_cells(
    const int64_t[:, ::1] sums not None, const uint64_t[::1] keys not None, uint64_t seed, int64_t[::1] out not None
):
    """Add to out[i] the sums of the cells of key i, over all hash functions: the rows of `sums`.

    **Law** exact. **Cost** 2 ns for each function and key, beside memory.
    """
    cdef Py_ssize_t i, j
    cdef uint64_t buckets = sums.shape[1]
    cdef dpfast_hash hash
    with nogil:
        for j in range(sums.shape[0]):
            hash = dpfast_hash_of(j, seed)
            for i in range(keys.shape[0]):
                out[i] += sums[j, dpfast_cell(hash, keys[i], buckets)]


def group_functions(
    const any_symbol[::1] reports not None, uint64_t cells, int64_t[::1] ends not None, any_symbol[::1] out not None
):
    """Put reports together by their functions, report / cells: those of function j are out[ends[j]:ends[j + 1]] then.

    Reports of functions from len(ends) - 1 on are left out; returns the number of the others. **Law** exact.
    **Assumes** len(out) = len(reports). **Cost** two divisions each and 5 ns.
    """
    cdef Py_ssize_t i, functions = ends.shape[0] - 1
    cdef int64_t before = 0, some
    cdef uint64_t function
    cdef int64_t[::1] places = np.zeros(functions + 1, np.int64)
    with nogil:
        for i in range(reports.shape[0]):
            function = reports[i] / cells
            places[min(function, <uint64_t> functions)] += 1
        for i in range(functions):
            ends[i], some = before, places[i]
            places[i], before = before, before + some
        ends[functions] = before
        for i in range(reports.shape[0]):
            function = reports[i] / cells
            if function < <uint64_t> functions:
                out[places[function]] = reports[i]
                places[function] += 1
    return before


cdef enum:
    ALIGNED = 64  # bytes of a line of the cache: vectors that cross lines take twice as long


cdef count *_table(Py_ssize_t size, list owners, count of) except NULL:
    """An aligned array of zeros, with room for a strip beyond its end; `owners` keeps it."""
    cdef uint8_t[::1] octets = np.zeros(size * sizeof(count) + DPFAST_STRIP + ALIGNED, np.uint8)
    owners.append(octets)
    return <count *> (&octets[0] + (ALIGNED - <size_t> &octets[0] % ALIGNED) % ALIGNED)


cdef count *_room(Py_ssize_t prime, Py_ssize_t lanes, list owners, count of) except NULL:
    return _table(prime * (2 * prime * lanes + <Py_ssize_t> (DPFAST_STRIP // sizeof(count))), owners, of)


cdef void _supports(
    count *table, Py_ssize_t size, Py_ssize_t prime, int digits, Py_ssize_t width, Py_ssize_t lanes, count *room,
    void **rows,
) noexcept nogil:
    if count is uint8_t:
        dpfast_supports_8(table, size, prime, digits, width, lanes, room, <const uint8_t **> rows)
    elif count is uint16_t:
        dpfast_supports_16(table, size, prime, digits, width, lanes, room, <const uint16_t **> rows)
    else:
        dpfast_supports_32(table, size, prime, digits, width, lanes, room, <const uint32_t **> rows)


cdef int _add_functions(
    const any_symbol *reports, const int64_t[::1] ends, const int64_t[::1] functions, Py_ssize_t prime, int digits,
    Py_ssize_t width, Py_ssize_t lanes, int64_t[:, ::1] out, count of,
) except -1:
    cdef list owners = []
    cdef Py_ssize_t size = out.shape[1], cells = size * prime, first = 0, some, lane, i
    cdef count *table = _table(cells * lanes, owners, of)
    cdef count *room = _room(prime, lanes, owners, of)
    cdef Py_ssize_t[::1] rows = np.empty(prime, np.intp)  # room for pointers
    cdef uint64_t least
    with nogil:
        while first < functions.shape[0]:
            some = min(lanes, functions.shape[0] - first)
            memset(table, 0, cells * lanes * sizeof(count))
            for lane in range(some):
                least = <uint64_t> functions[first + lane] * <uint64_t> cells
                for i in range(ends[first + lane], ends[first + lane + 1]):
                    table[<Py_ssize_t> (reports[i] - least) * lanes + lane] += 1
            _supports(table, size, prime, digits, width, lanes, room, <void **> &rows[0])
            for lane in range(some):
                for i in range(size):
                    out[functions[first + lane], i] += table[i * prime * lanes + lane]
            first += some
    return 0


def add_functions(
    const any_symbol[::1] reports not None, const int64_t[::1] ends not None, const int64_t[::1] functions not None,
    Py_ssize_t prime, int digits, Py_ssize_t width, Py_ssize_t lanes, int64_t[:, ::1] out not None,
):
    """Add to the rows of `functions` in `out` the numbers of their reports that support each cell.

    reports[ends[i]:ends[i + 1]] are those of functions[i]. **Law** exact. **Assumes** each range has fewer than 2**32
    reports; out.shape[1] = prime**digits. **Cost** digits prime**(digits + 2) additions a function, and lanes
    prime**(digits + 1) counts for `lanes` of them, at once. A count is a byte or two if a range has so few reports.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef const any_symbol *known = &reports[0] if reports.shape[0] else NULL
    cdef int64_t most = 0
    cdef Py_ssize_t i
    for i in range(functions.shape[0]):
        most = max(most, ends[i + 1] - ends[i])
    if most < 2**8:
        _add_functions(known, ends, functions, prime, digits, width, lanes, out, <uint8_t> 0)
    elif most < 2**16:
        _add_functions(known, ends, functions, prime, digits, width, lanes, out, <uint16_t> 0)
    else:
        _add_functions(known, ends, functions, prime, digits, width, lanes, out, <uint32_t> 0)


cdef int _add_function(
    const any_symbol *reports, Py_ssize_t n, Py_ssize_t prime, int digits, Py_ssize_t width, int64_t[::1] out, count of,
) except -1:
    cdef list owners = []
    cdef int low = digits / 2
    cdef Py_ssize_t size = out.shape[0], columns = prime**low, rows = size / columns, i, j
    cdef count *table = _table(size * prime, owners, of)
    cdef count *other = _table(size * prime, owners, of)
    cdef count *room = _room(prime, rows, owners, of)
    cdef Py_ssize_t[::1] room_of_rows = np.empty(prime, np.intp)  # room for pointers
    cdef void **places = <void **> &room_of_rows[0]
    with nogil:
        for i in range(n):
            table[reports[i]] += 1
        if count is uint8_t:
            dpfast_supports_alone_8(
                table, rows, columns, prime, low, digits - low, width, other, room, <const uint8_t **> places)
        elif count is uint16_t:
            dpfast_supports_alone_16(
                table, rows, columns, prime, low, digits - low, width, other, room, <const uint16_t **> places)
        else:
            dpfast_supports_alone_32(
                table, rows, columns, prime, low, digits - low, width, other, room, <const uint32_t **> places)
        for i in range(rows):
            for j in range(columns):
                out[i * columns + j] += table[i * prime * columns + j]
    return 0


def add_function(
    const any_symbol[::1] reports not None, Py_ssize_t prime, int digits, Py_ssize_t width, int64_t[::1] out not None
):
    """Add the numbers of reports of the only function that support each cell.

    **Law** exact. **Assumes** fewer than 2**32 reports, len(out) = prime**digits. **Cost** digits * prime**(digits + 2)
    additions, of bytes or pairs of them for few reports.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef Py_ssize_t n = reports.shape[0]
    cdef const any_symbol *known = &reports[0] if n else NULL
    if n < 2**8:
        _add_function(known, n, prime, digits, width, out, <uint8_t> 0)
    elif n < 2**16:
        _add_function(known, n, prime, digits, width, out, <uint16_t> 0)
    else:
        _add_function(known, n, prime, digits, width, out, <uint32_t> 0)


def add_reports(
    const any_symbol[::1] reports not None, Py_ssize_t prime, int digits, Py_ssize_t width, int64_t[:, ::1] out not None
):
    """Add 1 to each cell that a report supports, report by report, as `add_functions` does for many of each function.

    **Law** exact. **Assumes** reports of the functions of the rows of `out`, out.shape[1] = prime**digits. **Cost**
    width prime**(digits - 1) additions a report; fast where neighbours are of one function.
    **Reference** docs/proofs/local-categories.md.
    """
    cdef Py_ssize_t size = out.shape[1], i
    cdef uint8_t[::1] roots = np.zeros(2 * prime * prime, np.uint8)
    cdef uint16_t[::1] heights = np.empty(size, np.uint16)
    cdef uint64_t drawn, report
    with nogil:
        dpfast_roots(prime, &roots[0])
        for i in range(reports.shape[0]):
            report = reports[i]
            drawn = report / <uint64_t> prime
            dpfast_add_report(
                drawn % <uint64_t> size, report % <uint64_t> prime, prime, digits, width, &roots[0], &heights[0],
                &out[<Py_ssize_t> (drawn / <uint64_t> size), 0])
