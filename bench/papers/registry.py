"""All papers, in the order of their pages."""

from bench.papers import wasserman_zhou

PAPERS = (wasserman_zhou.PAPER,)
