"""What a reader sees: the parameters of everything public, by their names."""

import importlib
import inspect
import pydoc
import re

import pytest

import dpfast as dpf
from dpfast import local
from tests.cases import every

MODULES = ("", "audit", "domains", "local", "noise", "prior", "psi", "regression", "robust", "smooth", "statistics")
# Parameters of any number that are meant: arrays, and those of another function.
ANY = {
    "bound_contributions",
    "explain",
    "BoundedContributions.update",
    "Ledger.release",
    "Ledger.call",
    "Ball.add_gradients",
}


def everything():
    """The public functions, classes, and methods of classes, by name."""
    for part in MODULES:
        module = importlib.import_module(f"dpfast.{part}".rstrip("."))
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]:
            found = getattr(module, name)
            if not str(getattr(found, "__module__", "")).startswith("dpfast") or not callable(found):
                continue
            if getattr(found, "_is_protocol", False) or (isinstance(found, type) and issubclass(found, Exception)):
                continue
            yield name, found
            if inspect.isclass(found):
                for label, member in inspect.getmembers(found, inspect.isfunction):
                    if not label.startswith("_") or label == "__call__":
                        yield f"{name}.{label}", member


@every("name, found", [pytest.param(*each, id=each[0]) for each in everything()])
def test_parameters_have_names(name, found):
    kinds = {part.kind for part in inspect.signature(found).parameters.values()}
    hidden = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} & kinds
    assert not hidden or name in ANY or name.endswith((".error", ".sample_size", ".fit")), inspect.signature(found)


@every(
    "cls, parameters",
    [
        (dpf.InverseSensitivity, ["statistic", "grid", "epsilon", "radius", "neighbors"]),
        (dpf.GlobalSensitivity, ["statistic", "grid", "epsilon", "neighbors", "noise"]),
        (dpf.SmoothSensitivity, ["statistic", "grid", "epsilon", "delta", "noise", "beta"]),
        (dpf.Quantiles, ["qs", "grid", "epsilon", "measure"]),
        (dpf.Ledger, ["epsilon", "delta", "rho", "mu"]),
        (dpf.PartitionSelection, ["epsilon", "delta", "contributions"]),
        (dpf.MEstimator, ["psi", "grid", "epsilon", "prior"]),
        (dpf.SecondMoments, ["epsilon", "delta", "mu", "domain"]),
        (dpf.Mechanism, []),
        (local.Categorical, ["k", "epsilon", "method"]),
    ],
)
def test_signatures_of_classes(cls, parameters):
    own = inspect.signature(cls)
    assert list(own.parameters)[: len(parameters)] == parameters
    assert own.return_annotation is own.empty
    shown = re.sub(r"\([\s|]+", "(", pydoc.plain(pydoc.render_doc(cls)))  # long ones are several lines
    assert f"class {cls.__name__}(" in shown
    if parameters:
        assert re.search(rf"{cls.__name__}\((\*,[\s|]+)?{parameters[0]}", shown)
