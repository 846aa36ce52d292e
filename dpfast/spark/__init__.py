"""Releases of Spark frames, of classic sessions and of Spark Connect. Requires `pyspark`.

Spark's own engine, or dpfast on its workers, reduces the records to exact counts, sums or states; the driver makes the
single draw. Losing a worker is harmless: a task that is repeated returns the same result.
"""

from dpfast.spark.groups import by_group
from dpfast.spark.keys import partitions
from dpfast.spark.releases import release

__all__ = ["by_group", "partitions", "release"]
