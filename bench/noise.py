"""Noise at equal guarantees: ``python -m bench.noise`` writes docs/results/noise.md and .svg (`pages`)."""

from bench import pages
from bench.pages import noise_scales

SECTIONS = {"gaussian": noise_scales.gaussian}


def main(arguments=None):
    pages.write("noise", "Noise at equal guarantees", SECTIONS, figure=None, caption="", arguments=arguments)


if __name__ == "__main__":
    main()
