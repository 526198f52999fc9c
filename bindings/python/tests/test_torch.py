"""`mnar.torch` against the golden values that the Rust code is tested with, and as part of a training loop."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; MNAR_TORCH=1 ./test-wheel installs it")

import mnar  # noqa: E402
import mnar.torch as mt  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[3] / "reference" / "golden" / "losses.json"
CASES = json.loads(GOLDEN.read_text())
CONSISTENCY = {"entropy": mt.entropy, "pseudo-labels": mt.pseudo_labels, "fixmatch": mt.fixmatch}
PRECISIONS = [torch.float32, torch.float64]


def close(ours, theirs, what, tolerance=1e-6):
    ours = np.asarray(ours.detach() if hasattr(ours, "detach") else ours, dtype=float)
    theirs = np.asarray(theirs, dtype=float)
    assert ours.shape == theirs.shape, what
    gap = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))
    assert gap.max(initial=0) <= tolerance, f"{what}: {gap.max()}"


def labels(y):
    return torch.tensor([-1 if k is None else k for k in y])


def mechanism(method, given):
    counts, n = given["label_counts"], given["n"]
    return {
        "classical": lambda: None,
        "constant": lambda: mt.Constant(counts, n),
        "given": lambda: mt.Given(counts, n, phi=given["phi"]),
        "known-shares": lambda: mt.ClassShares(counts, n, shares=given["known_shares"]),
        "predicted-shares": lambda: mt.ClassShares(counts, n),
        "moments": lambda: mt.Moments(counts, n),
        "moments-gradient": lambda: mt.MomentsGradient(counts, n),
    }[method]()


def leaf(values, dtype):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def gradient(tensor):
    return torch.zeros_like(tensor) if tensor.grad is None else tensor.grad


def check_risk(risk, expected, what, **leaves):
    close(risk, expected["value"], what)
    risk.backward()
    for name, tensor in leaves.items():
        close(gradient(tensor), expected["gradient"][name], f"{what}: gradient of {name}")


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_losses_are_the_golden_ones(case, dtype):
    given, expected = case["input"], case["expected"]
    batch, phi = given["batches"][0], torch.tensor(given["phi"], dtype=dtype)
    weak, strong = (torch.tensor(batch[view], dtype=dtype) for view in ("weak", "strong"))
    y = labels(batch["y"])
    views = mt.Views(weak, strong, thresholds=mt.adaptive(given["tau"], phi, given["beta"]))
    close(mt.cross_entropy(weak, y), expected["cross_entropy"], "cross-entropy")
    for name, consistency in CONSISTENCY.items():
        close(consistency(views), expected[name], name)
    for name, labelled in [("labelled", True), ("unlabelled", False)]:
        close(mt.logits_given(labelled, weak, phi), expected[f"logits_given_{name}"], name)
    shares = mt.SetShares(sum(given["label_counts"]) / given["n"])
    for name, weights in [("", None), ("_weighted", torch.tensor(given["row_weights"], dtype=dtype))]:
        logits, phi = leaf(batch["weak"], dtype), leaf(given["phi"], dtype)
        risk = mt.observed_likelihood(logits, y, phi, shares=shares, row_weights=weights)
        check_risk(risk, expected[f"observed_likelihood{name}"], f"likelihood{name}", logits=logits, phi=phi)


@pytest.mark.parametrize("dtype", PRECISIONS, ids=str)
@pytest.mark.parametrize("method", CASES[0]["expected"]["loop"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_loops_are_the_golden_ones(case, method, dtype):
    given = case["input"]
    # The golden thresholds of the classical risk are those of a constant mechanism, all alike.
    rule = "fixed" if method == "classical" else "phi"
    loss = mt.DebiasedLoss(
        mechanism(method, given),
        CONSISTENCY[given["consistency"]],
        lam=given["lambda"],
        threshold=mt.Threshold(rule, given["tau"], given["beta"]),
    )
    for step, (batch, expected) in enumerate(zip(given["batches"], case["expected"]["loop"][method])):
        weak, strong = leaf(batch["weak"], dtype), leaf(batch["strong"], dtype)
        risk = loss(weak, labels(batch["y"]), strong=strong)
        check_risk(risk, expected["risk"], f"step {step}", weak=weak, strong=strong)
        state = loss.mechanism
        if state is None:
            continue
        close(state.phi, expected["phi"], "phi")
        close(state.shares(), expected["shares"], "shares")
        close(loss.threshold.of(state, len(state.phi)), expected["thresholds"], "thresholds")
        close(state.inverse_phi(state.batch_means(weak, labels(batch["y"])).shares), expected["inverse_phi"], "1/phi")
        assert int(state.clipped) == expected["clipped"]
        if "trust" in expected:
            close(state.trust(), expected["trust"], "trust")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_other_weightings_are_the_golden_ones(case):
    given, expected = case["input"], case["expected"]["variants"]
    batch = given["batches"][0]
    y, h = labels(batch["y"]), CONSISTENCY[given["consistency"]]
    rows = {key: torch.tensor(given[key], dtype=torch.float64) for key in ("row_weights", "row_inverse_phi")}
    weights, by_row = {"row_weights": rows["row_weights"]}, {"row_inverse_phi": rows["row_inverse_phi"]}
    phi = mechanism("given", given)
    threshold = mt.Threshold("phi", given["tau"], given["beta"])
    classical = mt.adaptive(given["tau"], phi.phi, given["beta"])  # the golden thresholds are those of phi here too

    def without(views):
        return h(mt.Views(views.weak, views.strong, thresholds=classical))

    for name, loss, extra in [
        ("labelled only", mt.DebiasedLoss(phi, None), {}),
        ("row weights", mt.DebiasedLoss(phi, h, lam=given["lambda"], threshold=threshold), weights),
        ("by row", mt.DebiasedLoss(phi, h, lam=given["lambda"], threshold=threshold), by_row),
        ("clipped", mt.DebiasedLoss(phi, h, lam=given["lambda"], threshold=threshold, clip=given["clip"]), {}),
        ("classical, row weights", mt.DebiasedLoss(None, without, lam=given["lambda"]), weights),
    ]:
        weak = leaf(batch["weak"], torch.float64)
        risk = loss(weak, y, strong=torch.tensor(batch["strong"], dtype=torch.float64), **extra)
        check_risk(risk, expected[name], name, weak=weak)


def test_the_risk_is_that_of_debiased_loss_weights():
    """Over the whole data set, the batch formula and the weights of every row are the same risk."""
    generator = torch.Generator().manual_seed(0)
    y = torch.tensor([0, 0, 1, 2, -1, -1, -1, -1, -1])
    ell, h = torch.rand(2, 9, dtype=torch.float64, generator=generator)
    phi = [0.5, 0.25, 0.4]
    weights = mnar.debiased_loss_weights(y, phi)
    expected = np.mean(weights.labelled * ell.numpy() + 0.7 * weights.unlabelled * h.numpy())
    inverse_phi = 1 / torch.tensor(phi, dtype=torch.float64)
    risk = mt.ssl_risk(ell, h, y, inverse_phi=inverse_phi, lam=0.7, shares=mt.SetShares(4 / 9))
    close(risk, expected, "risk", 1e-12)


def test_the_order_of_rows_does_not_matter():
    case = CASES[0]["input"]
    batch = case["batches"][0]
    weak, y = torch.tensor(batch["weak"], dtype=torch.float64), labels(batch["y"])
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    risks = [mt.DebiasedLoss(mechanism("moments", case), mt.entropy)(weak[i], y[i]) for i in (slice(None), order)]
    close(risks[0], float(risks[1]), "risk", 1e-12)


def test_likelihood_finds_the_phi_of_label_mechanism(rows):
    proba, y = rows
    likelihood = mt.Likelihood.from_labels(torch.tensor(y))
    close(likelihood.phi, np.full(3, np.mean(y >= 0)), "phi at the start", 1e-12)
    phi = likelihood.refresh(torch.tensor(proba), torch.tensor(y))
    expected = mnar.LabelMechanism("likelihood", posterior="population", interval="information").fit(proba, y)
    close(phi, expected.phi_, "phi", 1e-12)
    # It is stationary in the observed likelihood of all rows.
    at = phi.clone().requires_grad_()
    mt.observed_likelihood(torch.tensor(proba).log(), torch.tensor(y), at, shares=likelihood.set_shares).backward()
    assert at.grad.abs().max() < 1e-8


def test_algorithm_1_then_2():
    """Two overlapping Gaussian classes, of which one is labelled ten times as often as the other."""
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(4000, generator=generator) < 0.5).long()
    x = torch.randn(4000, 1, generator=generator) + 3 * truth[:, None]
    phi = torch.tensor([0.5, 0.05])
    y = torch.where(torch.rand(4000, generator=generator) < phi[truth], truth, -1)

    def trained(loss, epochs, after=None):
        network = torch.nn.Linear(1, 2)
        torch.nn.init.zeros_(network.weight)
        torch.nn.init.zeros_(network.bias)
        optimiser = torch.optim.Adam(network.parameters(), 0.05)
        for _ in range(epochs):
            optimiser.zero_grad()
            loss(network(x), y).backward()
            optimiser.step()
            if after:
                after(network)
        return (network(x).argmax(1) == truth).double().mean()

    likelihood = mt.Likelihood.from_labels(y)
    trained(likelihood, 300, lambda network: likelihood.refresh(torch.softmax(network(x), 1), y))
    assert (likelihood.phi / phi - 1).abs().max() < 0.2
    given = mt.Given.from_labels(y, phi=likelihood.phi)
    naive = trained(mt.DebiasedLoss(None, mt.entropy, lam=0.1), 300)
    debiased = trained(mt.DebiasedLoss(given, mt.entropy, lam=0.1), 300)
    assert debiased > 0.92 > naive + 0.02, (debiased, naive)  # the best possible is 0.933


def test_state_is_kept_and_stays_precise():
    case = CASES[1]["input"]
    first, second = case["batches"][:2]

    def step(loss, batch):
        return loss(torch.tensor(batch["weak"], dtype=torch.float64), labels(batch["y"]))

    loss = mt.DebiasedLoss(mechanism("moments-gradient", case), mt.entropy)
    step(loss, first)
    resumed = mt.DebiasedLoss(mechanism("moments-gradient", case), mt.entropy)
    resumed.load_state_dict(loss.state_dict())
    assert step(loss, second) == step(resumed, second)
    loss.half()
    assert loss.mechanism.buffer.dtype == torch.float64
    before = loss.mechanism.buffer.clone()
    step(loss.eval(), first)  # an evaluation is not a step
    assert torch.equal(loss.mechanism.buffer, before)


def test_half_precision_logits():
    y = torch.tensor([0, 1, -1, -1])
    logits = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    risks = [mt.DebiasedLoss(mt.Moments([30, 2], 400), mt.entropy)(logits.to(t), y) for t in (torch.bfloat16, None)]
    assert risks[0].dtype == torch.float32
    assert abs(risks[0] - risks[1]) < 0.05 * abs(risks[1])


def test_several_batches_before_a_step():
    """Gradients may be accumulated over batches: a later batch must not change what an earlier one left behind."""
    case = CASES[1]["input"]
    batches = [(leaf(batch["weak"], torch.float64), labels(batch["y"])) for batch in case["batches"]]
    loss = mt.DebiasedLoss(mechanism("moments-gradient", case), mt.entropy)
    sum(loss(weak, y) for weak, y in batches).backward()
    together = [weak.grad.clone() for weak, _ in batches]
    loss = mt.DebiasedLoss(mechanism("moments-gradient", case), mt.entropy)
    for (weak, y), expected in zip(batches, together):
        weak.grad = None
        loss(weak, y).backward()
        assert torch.equal(weak.grad, expected)


@pytest.mark.parametrize("method", ["given", "moments", "moments-gradient", "predicted-shares"])
def test_a_batch_may_lack_labelled_or_unlabelled_rows(method):
    case = CASES[0]["input"]
    share = sum(case["label_counts"]) / case["n"]
    for y, factor in [(torch.full((4,), -1), 1 - share), (torch.tensor([0, 1, 2, 0]), None)]:
        weak = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
        loss = mt.DebiasedLoss(mechanism(method, case), mt.entropy)
        risk = loss(weak, y)
        risk.backward()
        assert weak.grad.isfinite().all() and loss.mechanism.phi.isfinite().all()
        if factor:
            close(risk, factor * float(mt.entropy(mt.Views(weak.detach())).mean()), "risk")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: mt.Moments([3, 0, 2], 10), "class 1 has no label"),
        (lambda: mt.Moments([3, 9], 10), "12 of 10 rows"),
        (lambda: mt.Moments.from_labels([-1, -1]), "one number per class"),
        (lambda: mt.Moments.from_labels([0, 1, -2]), "a missing label is -1"),
        (lambda: mt.Moments.from_labels([0.0, 1.0]), "one class number per row"),
        (lambda: mt.Moments.from_labels([0, 3], 2), "class 3, but there are 2"),
        (lambda: mt.Given([1, 1], 4, phi=[0.5, 0.5, 0.5]), "there are 2 classes"),
        (lambda: mt.Given([1, 1], 4, phi=[0.5, 0.0]), "above 0"),
        (lambda: mt.ClassShares([1, 1], 4, shares=[0.5, 0.6]), "add up to 1"),
        (lambda: mt.Threshold("adaptive"), "'fixed', 'phi' or 'shares'"),
        (lambda: mt.DebiasedLoss(None, clip=0.5), "clip is 0.5"),
        (lambda: mt.DebiasedLoss(None, lam=-1), "lam is -1"),
        (lambda: mt.DebiasedLoss(mt.Likelihood([1, 1], 4)), "Given.from_labels"),
        (lambda: mt.Moments([1, 1], 4)(torch.zeros(2, 3), torch.tensor([0, 1])), "2 classes"),
        (lambda: mt.fixmatch(mt.Views(torch.zeros(2, 2), thresholds=torch.ones(2))), "needs `strong`"),
    ],
)
def test_mistakes_are_named(wrong, message):
    with pytest.raises(mnar.MnarError, match=message):
        wrong()


def test_a_reduced_consistency_loss_is_refused():
    loss = mt.DebiasedLoss(mt.Moments([1, 1], 4), lambda views: views.weak.mean())
    with pytest.raises(mnar.InputError, match="reduction='none'"):
        loss(torch.zeros(2, 2), torch.tensor([0, -1]))
    by_row = mt.DebiasedLoss(mt.Moments([1, 1], 4), mt.entropy)
    with pytest.raises(mnar.SettingsError, match="the mechanism `Given`"):
        by_row(torch.zeros(2, 2), torch.tensor([0, -1]), row_inverse_phi=torch.ones(2))


def test_torch_is_not_imported_unless_used():
    code = "import mnar, sys; assert 'torch' not in sys.modules; import mnar.torch; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
