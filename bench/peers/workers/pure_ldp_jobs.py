"""Frequencies of categories in pure-ldp; `normalization` 0 is unbiased, 2 projects onto the simplex."""

from importlib.metadata import version

import numpy as np
import serve
from pure_ldp.frequency_oracles import (
    DEClient,
    DEServer,
    HadamardResponseClient,
    HadamardResponseServer,
    UEClient,
    UEServer,
)


def _frequencies(client, server, k, normalization):
    def release(x):
        server.reset()
        for value in x.tolist():
            server.aggregate(client.privatise(value))
        domain = list(range(k))
        return np.asarray(server.estimate_all(domain, suppress_warnings=True, normalization=normalization)) / x.size

    return release


def frequencies(method, k, epsilon, normalization):
    public = {"epsilon": epsilon, "d": k, "index_mapper": int}
    if method == "hadamard":
        server = HadamardResponseServer(**public)
        client = HadamardResponseClient(**public, hash_funcs=server.get_hash_funcs())
        return _frequencies(client, server, k, normalization)
    options = {"use_oue": True} if method == "oue" else {}
    client, server = {"k-rr": (DEClient, DEServer), "oue": (UEClient, UEServer)}[method]
    return _frequencies(client(**public, **options), server(**public, **options), k, normalization)


if __name__ == "__main__":
    serve.main(globals(), version("pure-ldp"))
