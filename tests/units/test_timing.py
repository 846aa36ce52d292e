"""T31: answers at public times: the law of the delay and its delta by brute force, padding with a clock of the test."""

import asyncio
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import dpfast as dpf
from dpfast import timing
from dpfast.laws import DiscreteLaplace
from tests.cases import every
from tests.statistical import chi_square_rejects

AT = dpf.timing.AnswerTime("0.05", stability="3e-9", epsilon="0.5", delta="0.01", overrun="1e-6")


def exact_law(at):
    """P(delay = k) for k = 0..2 reach, in 60 digits."""
    q = mpmath.exp(-1 / (mpmath.mpf(at.scale.numerator) / at.scale.denominator))
    z = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-at.reach, at.reach + 1)]
    z[0] = z[-1] = q**at.reach / (1 + q)
    return z


def divergence(p, shift, epsilon):
    """The least delta for the law p and the law p moved by `shift`, both ways."""
    moved = [mpmath.mpf(0)] * shift + p
    still = p + [mpmath.mpf(0)] * shift
    factor = mpmath.exp(epsilon)
    return max(
        sum(max(a - factor * b, 0) for a, b in zip(first, second, strict=True))
        for first, second in ((still, moved), (moved, still))
    )


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "2"])
@pytest.mark.parametrize("delta", ["0.3", "1e-2", "1e-7"])
def test_the_delay_hides_a_change_of_the_lag(epsilon, delta):
    with mpmath.workdps(60):
        for stability in (1, 2, 5):
            at = timing.AnswerTime(1, stability=Fraction(stability, 10**9), epsilon=epsilon, delta=delta, overrun=0)
            law = exact_law(at)
            assert abs(sum(law) - 1) < mpmath.mpf(10) ** -50
            allowed = mpmath.mpf(at.delta.numerator) / at.delta.denominator
            rate = mpmath.mpf(at.epsilon.numerator) / at.epsilon.denominator
            for shift in range(1, stability + 1):
                assert divergence(law, shift, rate) <= allowed
            assert divergence(law, 2 * stability, rate) > allowed  # a control: twice the change is not hidden


def test_the_reach_is_nearly_the_least():
    with mpmath.workdps(60):
        q = mpmath.exp(-1 / (mpmath.mpf(AT.scale.numerator) / AT.scale.denominator))
        bound = [(q**m + q ** (m - 3 + 1)) / (1 + q) for m in (AT.reach, AT.reach - 2)]
        assert bound[0] <= mpmath.mpf("0.01") < bound[1]


def test_delays_have_the_stated_law():
    rng = np.random.default_rng(1)
    draws = np.array([AT.delay(rng) for _ in range(20_000)])
    law = np.array([float(p) for p in exact_law(AT)])
    assert draws.min() == 0
    assert draws.max() == 2 * AT.reach
    assert not chi_square_rejects(np.bincount(draws, minlength=law.size), law)
    wrong = timing.AnswerTime("0.05", stability="3e-9", epsilon="0.45", delta="0.01", overrun=0)
    control = np.array([min(wrong.delay(rng), 2 * AT.reach) for _ in range(20_000)])
    assert chi_square_rejects(np.bincount(control, minlength=law.size), law)


def test_a_delay_is_shifted_discrete_laplace_noise_in_nanoseconds():
    at = timing.AnswerTime(1, stability="1e-4", epsilon="0.01", delta="1e-9", overrun=0)
    assert at.scale == 10**7
    for seed in range(100):
        noise = DiscreteLaplace(at.scale).draw(np.random.default_rng(seed).bit_generator)
        assert at.delay(np.random.default_rng(seed)) == at.reach + noise


@pytest.mark.parametrize(("noise", "delay"), [(10**15, 2), (1, None), (-(10**15), 0)])
def test_a_delay_is_clamped(monkeypatch, noise, delay):
    monkeypatch.setattr(timing._samplers, "one_discrete_laplace", lambda source, scale: noise)
    assert AT.delay() == (AT.reach + 1 if delay is None else delay * AT.reach)


class Clock:
    """A clock that moves in sleeps only; the work ends when it shows `takes` nanoseconds after its first reading."""

    def __init__(self, monkeypatch, takes):
        self.now, self.end, self.ended = 10**15, 10**15 + takes, threading.Event()
        self.sleep = asyncio.sleep
        monkeypatch.setattr(timing.time, "monotonic_ns", lambda: self.now)
        monkeypatch.setattr(timing.asyncio, "sleep", self.pass_by)

    def work(self):
        self.ended.wait()
        return "answer"

    async def pass_by(self, seconds):
        target = self.now + round(seconds * 1e9)
        if self.end <= target:
            self.ended.set()
            while len(asyncio.all_tasks()) > 1:
                await self.sleep(0.001)
        self.now = target


def answered(monkeypatch, takes, work=None, seed=0):
    """The nanoseconds to the answer, and the answer."""
    clock = Clock(monkeypatch, takes)

    async def run():
        try:
            return await AT.run(work or clock.work, rng=np.random.default_rng(seed))
        finally:
            waited.append(clock.now - 10**15)
            clock.ended.set()

    waited = []
    try:
        return waited, asyncio.run(run())
    except TimeoutError as error:
        return waited, error


@pytest.mark.parametrize("seed", range(3))
def test_the_time_of_an_answer_does_not_depend_on_the_work(monkeypatch, seed):
    due = 50_000_000 + AT.delay(np.random.default_rng(seed))
    for takes in (0, 1, 10**6, 49_000_000, due):
        assert answered(monkeypatch, takes, seed=seed) == ([due], "answer")


@pytest.mark.parametrize("later", [1, 10**6, 10**12])
def test_an_answer_that_is_not_ready_is_withheld_at_the_same_time(monkeypatch, later):
    due = 50_000_000 + AT.delay(np.random.default_rng(0))
    waited, answer = answered(monkeypatch, due + later)
    assert waited == [due]
    assert isinstance(answer, TimeoutError)
    assert "withheld, and its budget is spent" in str(answer)


def test_an_error_of_the_work_is_raised_at_the_time_of_an_answer(monkeypatch):
    def work():
        raise dpf.BudgetError("spent")

    clock = Clock(monkeypatch, 0)
    with pytest.raises(dpf.BudgetError, match="spent"):
        asyncio.run(AT.run(work, rng=np.random.default_rng(0)))
    assert clock.now - 10**15 == 50_000_000 + AT.delay(np.random.default_rng(0))


def test_errors_of_withheld_work_are_not_logged(monkeypatch, caplog, capfd):
    gate = threading.Event()

    def work():
        gate.wait()
        raise RuntimeError("later")

    async def run():
        with pytest.raises(TimeoutError):
            await AT.run(work)
        gate.set()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)

    asyncio.run(run())
    assert (caplog.text, capfd.readouterr().err) == ("", "")


def test_the_privacy_of_a_release_and_its_time():
    together = AT.privacy(dpf.Privacy("0.25", "1e-5"))
    assert together.epsilon == Fraction(3, 4)
    exact = Fraction("1e-5") + Fraction("0.01") + (1 + Fraction(float(mpmath.exp(0.75)))) * Fraction("1e-6")
    assert exact <= Fraction(together.delta) <= exact + Fraction(1, 10**17)
    assert AT.privacy(dpf.Privacy(0.5, 0.9999)).delta == 1
    local = AT.privacy(dpf.Privacy(0.5, neighbors="local"))
    assert local.neighbors == "local"
    with pytest.raises(ValueError, match="release must have an epsilon, not a rho"):
        AT.privacy(dpf.Privacy(rho=0.1))


@every(
    "changed, error, message",
    [
        ({"seconds": 0}, ValueError, "seconds must be positive"),
        ({"seconds": "soon"}, ValueError, "seconds must be a number"),
        ({"stability": -1}, ValueError, "stability must be positive"),
        ({"epsilon": 0}, ValueError, "epsilon must be positive"),
        ({"epsilon": None}, TypeError, "epsilon must be a real number"),
        ({"delta": 0}, ValueError, r"delta must be in \(0, 1\)"),
        ({"delta": 1}, ValueError, r"delta must be in \(0, 1\)"),
        ({"overrun": -0.1}, ValueError, r"overrun must be in \[0, 1\)"),
        ({"overrun": 1}, ValueError, r"overrun must be in \[0, 1\)"),
        ({"stability": 1, "epsilon": "1e-9"}, ValueError, "scale"),
    ],
)
def test_bad_parameters(changed, error, message):
    good = {"seconds": 1, "stability": "1e-6", "epsilon": "0.1", "delta": "1e-9", "overrun": "1e-9"}
    with pytest.raises(error, match=message):
        timing.AnswerTime(**good | changed)
