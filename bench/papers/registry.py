"""All papers, in the order of their pages."""

from bench.papers import chaudhuri_hsu, duchi, robustness, smith, wasserman_zhou

PAPERS = (chaudhuri_hsu.PAPER, duchi.PAPER, smith.PAPER, wasserman_zhou.PAPER, robustness.PAPER)
