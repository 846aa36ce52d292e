"""The parts of the command: each yields tables, which name what failed."""

import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, islice
from typing import Any

import numpy as np
from mpmath import mp, mpf
from numpy.random import PCG64

from assurance.referees import bugs as planted
from assurance.referees import peers, published, subjects
from assurance.referees.blackbox import affordable, bound, examine
from assurance.referees.pairs import pairs
from assurance.referees.published import ALPHA, p_value, shifted, two_samples
from assurance.referees.replay import TOLERANCE, Replayed, replayed
from assurance.referees.tables import Table
from dpfast.laws import DiscreteLaplace
from tests.reference import rational_samplers

DRAWS, QUICK_DRAWS = 10**6, 10_000
SECONDS, FUNCTION_SECONDS = 1.5, 0.4  # of releases of one side
SAMPLER_SECONDS = 1.0
LAW_TOLERANCE, LISTED_TOLERANCE = 1e-13, 1e-15  # relative errors of probabilities of at least 1e-12
LADDER = (1000, 10_000, 100_000)  # draws after which a bug is looked for
REPLAYS = 4  # of each pair, each way
STRIDE = 8  # --quick tests one subject of so many


def mechanisms(*, quick: bool) -> Iterator[Table]:
    """Learned events on every mechanism, sampler of noise and local randomiser."""
    groups = (subjects.mechanisms, subjects.selections, subjects.noises, subjects.randomisers)
    title = "Learned events on mechanisms"
    yield _examined(title, chain.from_iterable(make() for make in groups), quick=quick, seconds=SECONDS)


def functions(*, quick: bool) -> Iterator[Table]:
    """Learned events on the functions of one line, called once for each release."""
    yield _examined("Learned events on functions", subjects.functions(), quick=quick, seconds=FUNCTION_SECONDS)


def _examined(title: str, tested: Iterator[subjects.Subject], *, quick: bool, seconds: float) -> Table:
    table = Table(
        title, ("mechanism", "draws", "pairs", "claimed epsilon", "delta", "certified lower bound", "worst pair")
    )
    start, refused = time.process_time(), []
    for i, subject in enumerate(tested):
        if not subject.pairs:
            refused.append(subject.name)
            continue
        if quick and i % STRIDE:
            continue
        x = subject.pairs[0][1]
        most = QUICK_DRAWS if quick else DRAWS
        draws = affordable(lambda size, s=subject, x=x: s.release(x, size, PCG64(0)), most, seconds)
        tried = subject.pairs[:2] if quick else subject.pairs
        found = examine(subject.mechanism, tried, draws)
        table.add(subject.name, f"{draws:,}", found.pairs, found.epsilon, found.delta, found.bound, found.worst)
        if found.refuted:
            table.failures.append(f"{subject.name}: {found.bound} above {found.epsilon} on {found.worst}")
    table.notes.append(f"{len(table.rows)} tested in {time.process_time() - start:.0f} s of CPU.")
    if refused:
        table.notes.append(f"Refused for every number of records, by public parameters: {', '.join(refused)}.")
    return table


def bugs(*, quick: bool) -> Iterator[Table]:
    """Planted bugs: which instrument finds them, after how many draws; the right versions must pass."""
    ladder = LADDER[:2] if quick else LADDER
    header = ("bug", "seen in", "one number", "learned events", "bound", "replay", "without the bug: bound", "replay")
    table = Table("Planted bugs", header)
    for bug in planted.BUGS:
        found = {events: _draws_to_find(bug.wrong, ladder, events) for events in ("listed", "learned")}
        replay, sound = _replay_of_program(bug.wrong), _replay_of_program(bug.right)
        right = examine(bug.right, _pairs_of(bug.right), ladder[-1])
        listed, learned = ("not found" if draws is None else f"{draws:,}" for draws, _ in found.values())
        caught, quiet = _fault(replay, 1.0), _fault(sound, 1.0)
        shown = (listed, learned, found["learned"][1], caught or "not found")
        table.add(bug.name, bug.where or "-", *shown, right.bound, quiet or "passes")
        if found["learned"][0] is None and not caught:
            table.failures.append(f"{bug.name}: no instrument found it")
        if right.refuted or quiet:
            table.failures.append(f"{bug.name}: the right version is flagged: {right.bound}, {quiet}")
    yield table


def _pairs_of(program: planted.Program) -> list[tuple[str, np.ndarray, np.ndarray]]:
    return list(pairs(program.neighbors, subjects.SIZES[0]))


def _draws_to_find(program: planted.Program, ladder: tuple[int, ...], events: str) -> tuple[int | None, float]:
    """The least draws of the ladder whose bound refutes the claim on some pair, and the largest bound there."""
    found = -np.inf
    for draws in ladder:
        if draws <= 10_000:
            bounds = [bound(program, x, y, draws, events=events) for _, x, y in _pairs_of(program)]
            worst, found = int(np.argmax(bounds)), max(bounds)
        else:
            _, x, y = _pairs_of(program)[worst]
            found = bound(program, x, y, draws, events=events)
        if found > float(program.epsilon):
            return draws, found
    return None, found


def _replay_of_program(program: planted.Program, runs: int = 5) -> Replayed:
    def run(x: Any, rng: Any) -> Any:
        return program.release(x, 1, rng).tolist()

    return _worst(run, _pairs_of(program), float(program.epsilon), runs)


def _worst(run: Callable[[Any, Any], Any], tried: Any, epsilon: float, runs: int) -> Replayed:
    """The worst of the replays of each pair, both ways."""
    every = [replayed(run, *both, epsilon=epsilon, runs=runs) for _, x, y in tried for both in ((x, y), (y, x))]
    return max(every, key=lambda r: (bool(r.fault), r.excess, r.loss))


def _fault(replay: Replayed, epsilon: float) -> str:
    return replay.fault or (f"a loss of {replay.loss:.3g}" if replay.loss > epsilon + TOLERANCE else "")


def replays(*, quick: bool) -> Iterator[Table]:
    """Record and replay on the mechanisms and functions whose draws all come from laws."""
    runs, stride = (2, STRIDE) if quick else (REPLAYS, 1)
    header = ("mechanism", "draws", "runs", "claimed epsilon", "delta", "largest loss", "mean excess")
    table = Table("Record and replay", header)
    outside: dict[str, list[str]] = {}
    tested = chain(subjects.mechanisms(), () if quick else subjects.functions())
    for subject in islice(tested, 0, None, stride):
        if not subject.pairs:
            continue
        privacy = subject.mechanism.privacy
        try:
            found = _worst(_once(subject), subject.pairs, float(privacy.epsilon), runs)
        except TypeError as error:
            outside.setdefault(str(error), []).append(subject.name)
            continue
        if not found.draws:
            outside.setdefault("draws that no law makes", []).append(subject.name)
            continue
        count = f"{runs * 2 * len(subject.pairs)}"
        table.add(subject.name, found.draws, count, privacy.epsilon, float(privacy.delta), found.loss, found.excess)
        if found.fault or found.violates(float(privacy.delta)):
            table.failures.append(f"{subject.name}: {found}")
    for why, names in outside.items():
        table.notes.append(f"Not replayed, {why}: {', '.join(names)}.")
    yield table


def _once(subject: subjects.Subject) -> Callable[[Any, Any], list[float]]:
    """One release as the numbers that it holds."""
    called = getattr(subject.mechanism, "call", None)
    if called is None:
        return lambda x, rng: np.asarray(subject.release(x, 1, rng), np.float64).ravel().tolist()
    return lambda x, rng: subjects.numbers(called(x, rng))


def samplers(*, quick: bool) -> Iterator[Table]:
    """Draws of other libraries and ours against published laws, and against each other."""
    header = ("library", "sampler", "draws", "largest error of our law", "theirs", "ours", "both", "control")
    table = Table("Samplers of others", header)
    for library in peers.LIBRARIES:
        try:
            for match in library():
                _matched(match, table, quick=quick)
        except peers.Missing as missing:
            table.notes.append(f"Skipped: {missing}")
    yield table


def _matched(match: peers.Match, table: Table, *, quick: bool) -> None:
    """One row: three p-values, and those of the draws under a law that is slightly wrong."""
    seconds, most = (0.5, QUICK_DRAWS) if quick else (SAMPLER_SECONDS, DRAWS)
    draws = affordable(match.theirs, most, seconds)
    theirs, ours = match.theirs(draws), match.ours(draws, PCG64(1))
    law = match.published()
    error = _largest_error(match, law)
    tests = [p_value(theirs, law), p_value(ours, law), two_samples(theirs, ours, law)]
    numbers = min(law) < 0
    strength = max(0.01, 12 / math.sqrt(draws)) if numbers else 30 / math.sqrt(draws)  # a choice shows its rate less
    wrong = match.published(1 - strength)
    controls = [p_value(sample, wrong) for sample in (theirs, ours)]
    if numbers:
        shift = math.ceil(12 * float(np.std(ours)) / math.sqrt(draws))
        controls += [p_value(sample, shifted(law, shift)) for sample in (theirs, ours)]
    shown = "-" if error is None else f"{error:.1g}"
    control = f"rejects {1 - strength:.4g}" if max(controls) < ALPHA else f"p = {max(controls):.2g}"
    table.add(match.library, match.name, f"{draws:,}", shown, *tests, control)
    named = f"{match.library}, {match.name}"
    if min(tests) < ALPHA or (error is not None and error > LAW_TOLERANCE):
        table.failures.append(f"{named}: p-values {tests}, error {error}")
    if max(controls) >= ALPHA:
        table.failures.append(f"{named}: a wrong law is not rejected, p = {max(controls):.3g}")


def _largest_error(match: peers.Match, law: dict[int, Any]) -> float | None:
    """The largest relative error of our probabilities, from the published ones of at least 1e-12."""
    if match.logpmf is None:
        return None
    points = sorted(z for z, p in law.items() if p > 1e-12)
    return _error(law, points, match.logpmf(np.array(points, np.float64) if min(law) < 0 else np.array(points)))


def _error(law: dict[int, Any], points: list[int], logpmf: np.ndarray) -> float:
    with mp.workdps(published.DIGITS):
        return max(float(abs(mp.exp(mpf(float(p))) / law[z] - 1)) for z, p in zip(points, logpmf, strict=True))


def reference(*, quick: bool) -> Iterator[Table]:
    """The laws of the rational samplers, by all their paths, against the published ones and ours."""
    header = ("sampler", "parameter", "outcomes", "error of the listed law", "error of our law")
    table = Table("A reference by rational coins", header)
    scales = (Fraction(1, 2), Fraction(3, 2), Fraction(10, 3), Fraction(7))
    for scale in scales[:2] if quick else scales:
        listed, law = rational_samplers.laplace_law(scale), published.discrete_laplace(scale)
        _compared(table, "discrete Laplace", f"scale {scale}", listed, law, DiscreteLaplace(scale).logpmf)
    variances = (Fraction(1, 3), Fraction(9, 4), Fraction(12))
    for variance in variances[:2] if quick else variances:
        listed, law = rational_samplers.gaussian_law(variance), published.discrete_gaussian(variance)
        _compared(table, "discrete Gaussian", f"variance {variance}", listed, law, None)
    yield table


def _compared(table: Table, name: str, parameter: str, listed: Any, law: Any, logpmf: Any) -> None:
    outcomes = [z for z, p in law.items() if p > 1e-12]
    with mp.workdps(published.DIGITS):
        error = max(float(abs(listed[z] / law[z] - 1)) for z in outcomes)
    ours = 0.0 if logpmf is None else _error(law, outcomes, logpmf(np.array(outcomes, np.float64)))
    table.add(name, parameter, len(outcomes), f"{error:.1g}", f"{ours:.1g}" if ours else "-")
    if error > LISTED_TOLERANCE or ours > LAW_TOLERANCE:
        table.failures.append(f"{name}, {parameter}: {error}, {ours}")
