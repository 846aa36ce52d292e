"""All papers, in the order of their pages."""

from bench.papers import chaudhuri_hsu, robustness, smith, wasserman_zhou

PAPERS = (wasserman_zhou.PAPER, chaudhuri_hsu.PAPER, smith.PAPER, robustness.PAPER)
