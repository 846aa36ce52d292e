"""Verification: exact comparison of laws on small datasets, empirical lower bounds from samples, bounds on tests."""

from dpfast.audit.samples import distinguish, power_bound
from dpfast.audit.verification import Certificate, Sensitivity, lipschitz, verify

__all__ = ["Certificate", "Sensitivity", "distinguish", "lipschitz", "power_bound", "verify"]
