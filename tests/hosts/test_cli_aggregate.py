"""The command that estimates parameters of a family."""

import json

import numpy as np
import pytest

import dpfast as dpf
from dpfast.cli import main


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path):
        self.x = np.random.default_rng(1).gamma(2.0, 3.0, 2000)
        path = tmp_path / "waits.csv"
        path.write_text("wait,name\n" + "\n".join(f"{v!r},secret" for v in self.x.tolist()))
        return str(path)

    def test_json(self, file, capsys):
        arguments = ["mle", file, "--column", "wait", "--family", "gamma", "--epsilon", "2", "--seed", "7"]
        assert main([*arguments, "--bounds", "shape=0.1,10", "scale=0.1,50", "--blocks", "50", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        bounds = {"shape": (0.1, 10), "scale": (0.1, 50)}
        want = dpf.mle(self.x, "gamma", bounds=bounds, epsilon=2.0, blocks=50, rng=np.random.default_rng(7))
        assert report["values"] == dict(zip(bounds, want.tolist(), strict=True))
        assert (report["blocks"], report["n"], report["epsilon"], report["private"]) == (50, 2000, 2.0, False)

    def test_text(self, file, capsys):
        arguments = ["mle", file, "--column", "wait", "--family", "exponential", "--epsilon", "1"]
        assert main([*arguments, "--bounds", "rate=0.01,1", "--shuffle", "3", "--no-bias-correction"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("rate = 0.")
        assert "exponential; 2,000 records in" in lines[1]

    @pytest.mark.parametrize("bounds", ["rate", "rate=1", "rate=a,b", "mode=0,1", "rate=3,1"])
    def test_bad_bounds(self, file, bounds, capsys):
        arguments = ["mle", file, "--column", "wait", "--family", "exponential", "--epsilon", "1", "--bounds", bounds]
        if bounds in ("mode=0,1", "rate=3,1"):
            assert main(arguments) == 2
        else:
            with pytest.raises(SystemExit, match="2"):
                main(arguments)
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert "secret" not in error
