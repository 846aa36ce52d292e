"""Records of blocks and rows: src/blocks/blocks.h, src/rows/rows.h."""

from assurance.kernels.case import cases

CASES = cases(__file__)

CASES.add(
    "block_cells",
    "blocks_add blocks_cell",
    "all cells and values",
    2,
    (
        "blocks.h",
        "cell[1] = (uint64_t)(total >> 64);\n}\n\nstatic inline blocks_wide",
        "cell[1] = (uint64_t)(total >> 63);\n}\n\nstatic inline blocks_wide",
    ),
)
CASES.add(
    "rows_add",
    "rows_add",
    "all values, sums of up to 2^62 records",
    2,
    ("rows.h", "sums->high[j] += (value >> 52) + (low >> 52);", "sums->high[j] += value >> 52;"),
)
CASES.add(
    "rows_at_once",
    "rows_at_once rows_room rows_in_group",
    "1 to 2^40 columns",
    2,
    (
        "rows.h",
        "return rows > ROWS_BLOCK ? ROWS_BLOCK : rows < 1 ? 1 : rows;",
        "return rows > ROWS_BLOCK ? ROWS_BLOCK : rows;",
    ),
)
CASES.add(
    "add_cells",
    "blocks_add_cells blocks_add blocks_cell",
    "2 cells",
    3,
    (
        "blocks.h",
        "blocks_add(cells + 2 * i, (__int128)blocks_cell(other + 2 * i));",
        "blocks_add(cells + 2 * i, (__int128)blocks_cell(other + i));",
    ),
)
CASES.add(
    "block_starts",
    "blocks_start blocks_of blocks_at blocks_next",
    "up to 7 records in all numbers of blocks",
    9,
    ("blocks.h", "cursor->end += quotient + (cursor->rest >= k);", "cursor->end += quotient + (cursor->rest > k);"),
    size=7,
)
