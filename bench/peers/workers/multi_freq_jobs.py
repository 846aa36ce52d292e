"""Frequencies of categories in multi-freq-ldpy: clipped and renormalised, or by iterative Bayesian updates."""

from importlib.metadata import version

import serve
from multi_freq_ldpy.pure_frequency_oracles import ADP, GRR, LH, SS, UE


def frequencies(method, k, epsilon, estimator):
    module = {"k-rr": GRR, "subset": SS, "oue": UE, "olh": LH, "adaptive": ADP}[method]
    name = module.__name__.rpartition(".")[2]
    client, aggregate = getattr(module, f"{name}_Client"), getattr(module, f"{name}_Aggregator_{estimator}")
    known = (epsilon,) if (name, estimator) == ("UE", "MI") else (k, epsilon)
    return lambda x: aggregate([client(value, k, epsilon) for value in x.tolist()], *known)


if __name__ == "__main__":
    serve.main(globals(), version("multi-freq-ldpy"))
