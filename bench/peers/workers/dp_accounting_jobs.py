"""Calculations of dp_accounting: privacy loss distributions, as upper bounds, and Renyi divergences."""

from importlib.metadata import version

import dp_accounting
import serve
from dp_accounting.mechanism_calibration import calibrate_dp_mechanism
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

ACCOUNTANTS = {"pld": PLDAccountant, "rdp": RdpAccountant}


def _composed(event, releases, delta, accountant):
    def release():
        return ACCOUNTANTS[accountant]().compose(event, releases).get_epsilon(delta)

    return release


def composed_gaussians(sigma, releases, delta, accountant):
    return _composed(dp_accounting.GaussianDpEvent(sigma), releases, delta, accountant)


def composed_laplaces(scale, releases, delta, accountant):
    return _composed(dp_accounting.LaplaceDpEvent(scale), releases, delta, accountant)


def gaussian_scale(epsilon, delta):
    return lambda: calibrate_dp_mechanism(PLDAccountant, dp_accounting.GaussianDpEvent, epsilon, delta)


if __name__ == "__main__":
    serve.main(globals(), version("dp-accounting"))
