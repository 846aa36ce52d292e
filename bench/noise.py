"""Noise at equal guarantees: ``python -m bench.noise`` writes docs/results/noise.md and .svg (`pages`)."""

from bench import pages
from bench.pages import noise_errors, noise_scales

SECTIONS = {
    "columns": noise_errors.columns,
    "integers": noise_errors.integers,
    "gaussian": noise_scales.gaussian,
}


def main(arguments=None):
    pages.write(
        "noise",
        "Noise at equal guarantees",
        SECTIONS,
        figure=noise_errors.figure,
        caption="Noise of a coordinate against the number of columns",
        arguments=arguments,
    )


if __name__ == "__main__":
    main()
