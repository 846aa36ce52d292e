"""All papers, in the order of their pages."""

from bench.papers import chaudhuri_hsu, duchi, robustness, smith, wasserman_zhou

PAPERS = (wasserman_zhou.PAPER, chaudhuri_hsu.PAPER, duchi.PAPER, smith.PAPER, robustness.PAPER)
