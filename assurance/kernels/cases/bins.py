"""Bins and marginals: src/bins/bins.h, src/marginals/marginals.h, src/windows/spans.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "bins_guess",
    "bins_guess",
    "all doubles, all numbers of bins",
    2,
    ("bins.h", "    place = place > 0.0 ? place : 0.0;\n", ""),
    checks=("conversion",),
)
CASES.add(
    "bins_search",
    "bins_locate_by_search",
    "up to 4 bins, all doubles",
    5,
    ("bins.h", "if (key >= axis->thresholds[middle])", "if (key > axis->thresholds[middle])"),
    size=4,
)
CASES.add(
    "bins_draw_cells",
    "bins_draw_cells bins_uniform",
    "3 cells, weights up to 8, 1 rejection",
    5,
    ("bins.h", "while (rank >= cumulative[item])", "while (rank > cumulative[item])"),
    size=3,
)
CASES.add(
    "bins_draw_points",
    "bins_draw_points bins_point bins_uniform",
    "2 bins of 3 and 5 points, 1 rejection",
    4,
    ("bins.h", "(double)(first + edges[b] + (int64_t)", "(double)(first + edges[b + 1] + (int64_t)"),
)
CASES.add(
    "marginals",
    "marginals_count marginals_append",
    "3 records in blocks of 2, 2 columns of 2 and 3 values",
    4,
    ("marginals.h", "            memset(cells, 0, (size_t)count * sizeof *cells);\n", ""),
    size=3,
    shrunk=(("marginals.h", "#define MARGINALS_BLOCK 1024", "#define MARGINALS_BLOCK 2"),),
)
CASES.add(
    "windows_find",
    "windows_find",
    "all doubles",
    2,
    ("spans.h", "* scale + 1.0, 0.0, WINDOWS_BUCKETS + 1);", "* scale + 1.0, 0.0, WINDOWS_BUCKETS + 2);"),
    checks=("conversion",),
)
CASES.add(
    "windows_collect",
    "windows_collect select_marked",
    "3 keys in blocks of 2, 2 buckets",
    4,
    ("spans.h", "collected += some;", "collected += count;"),
    size=3,
    shrunk=(("filter.h", "#define FILTER_BLOCK 2048 ", "#define FILTER_BLOCK 2 "),),
    loops=("check_windows_collect.0:4", "windows_collect.1:3"),
)
CASES.add(
    "windows_add",
    "windows_add",
    "3 keys in 2 buckets",
    4,
    ("spans.h", "if (count % 2)\n        counts[cells[count - 1]]++;", "counts[cells[count - 1]]++;"),
    size=3,
)
