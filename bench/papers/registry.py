"""All papers, in the order of their pages."""

from bench.papers import duchi, wasserman_zhou

PAPERS = (wasserman_zhou.PAPER, duchi.PAPER)
