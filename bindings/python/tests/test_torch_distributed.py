"""`mnar.torch` under `DistributedDataParallel`: two processes are one with the joined batch."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; MNAR_TORCH=1 ./test-wheel installs it")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch was built without gloo", allow_module_level=True)

import torch_processes  # noqa: E402


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    torch.multiprocessing.spawn(torch_processes.worker, (str(folder),), nprocs=2)
    return torch_processes.all_losses(0, 1), *(torch.load(folder / f"{process}.pt") for process in (0, 1))


@pytest.mark.parametrize("name", ["classical", "given", "me", "meg", "cadr", "mle"])
def test_two_processes_are_one(results, name):
    """The risk, every gradient, the network and the state of the mechanism, after every step."""
    single, *processes = (result[name] for result in results)
    for process in processes:
        assert len(process) == len(single)
        for ours, expected in zip(process, single):
            gap = (ours - expected).abs() / expected.abs().clamp(min=1)
            assert gap.max() < 1e-6, (ours, expected)


def test_meg_follows_its_gradient(results):
    """Otherwise the test above would not see whether the gradient through phi is reduced over processes."""
    me, meg = (results[0][name][1] for name in ("me", "meg"))
    assert (me - meg).abs().max() > 1e-2
