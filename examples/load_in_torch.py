"""Loads a model trained by `mnar fit` into PyTorch, and prints the module or its predictions.

    pip install numpy safetensors torch
    python examples/load_in_torch.py RUN/model                # prints the module
    python examples/load_in_torch.py RUN/model images.npy     # and p(y|x) for every row

The array holds bytes, one image per row (n x height x width, and x channels for colour; volumes have their depth before
the height), or numbers that are already encoded, one row each. The module takes images with channels first, as is usual
in PyTorch; mnar stores channels last, so this script reorders the weights of convolutions and of the first dense layer
after them.

This is the network alone. The predictions of `mnar fit` and `mnar predict` also count the models that a run keeps beside it
(`beside.json` for tables, `guides.safetensors` for images), and the script says so where there are some.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch_networks import Mlp, build


def fill(network, tensors):
    """Copies mnar's tensors into the network by name."""
    mlps = [(path, module) for path, module in network.named_modules() if isinstance(module, Mlp)]
    flattened = {f"{path}.layers.0.weight".lstrip("."): mlp.channels for path, mlp in mlps}
    old, new = network.state_dict(), {}
    for name, values in tensors.items():
        # In `MnistCnn.conv1.weight` the variant of an enum comes first; field names are lower case.
        name = name.partition(".")[2] if name[0].isupper() else name
        name = name.replace(".gamma", ".weight").replace(".beta", ".bias")
        if name not in old:
            sys.exit(f"`{name}` is not a tensor of this network")
        out, *rest = shape = old[name].shape
        if rest:
            # The layout in mnar is (kernel pixels and inputs, channels fastest) x outputs.
            if values.shape != (math.prod(rest), out):
                sys.exit(f"`{name}` has shape {tuple(values.shape)}, not {(math.prod(rest), out)}")
            channels = rest[0] if len(rest) > 1 else flattened.get(name, 1)
            values = values.reshape(-1, channels, out).permute(2, 1, 0).reshape(shape)
        new[name] = values
    missing = [name for name in network.load_state_dict(new, strict=False).missing_keys if "num_batches" not in name]
    if missing:
        sys.exit(f"the file holds no {', '.join(missing)}")


def load(folder):
    """Returns the network, ready to predict, and the contents of model.json."""
    model = json.loads((Path(folder) / "model.json").read_text())
    network = build(model["architecture"], model["input"], len(model["classes"]))
    fill(network, load_file(Path(folder) / "weights.safetensors"))
    return network.eval(), model


def encode(rows, model):
    """Network input, channels first, from bytes (scaled here) or from numbers that are already scaled."""
    x = torch.from_numpy(np.ascontiguousarray(rows))
    if "row" in model["input"]:
        return x.float()
    shape = [model["input"]["image"][axis] for axis in ("depth", "height", "width", "channels")]
    x = x.reshape(len(x), *shape).float()
    if rows.dtype == np.uint8:
        x = (x / 255 - torch.tensor(model["encoding"]["mean"])) / torch.tensor(model["encoding"]["sd"])
    x = x.movedim(-1, 1)
    return x.squeeze(2) if shape[0] == 1 else x


def views(x, model):
    """The mirrors and turns of encoded images over which mnar averages logits; the images as they are come first."""
    orientation = model["encoding"].get("orientation", {}) if "image" in model["input"] else {}
    shown = [x]
    for axis, name in ((-1, "horizontal"), (-2, "vertical"), (2, "depth")):
        if orientation.get(name):
            shown += [view.flip(axis) for view in shown]
    if orientation.get("turns") and x.shape[-1] == x.shape[-2]:
        shown += [view.rot90(dims=(-2, -1)) for view in shown]
    return shown


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    network, model = load(sys.argv[1])
    print(network)
    beside = [name for name in ("beside.json", "guides.safetensors") if (Path(sys.argv[1]) / name).exists()]
    if beside:
        print(f"note: this is the network alone; `mnar predict` also counts the models in {beside[0]}", file=sys.stderr)
    if len(sys.argv) == 3:
        with torch.inference_mode():
            batches = encode(np.load(sys.argv[2]), model).split(256)
            logits = torch.cat([torch.stack([network(view) for view in views(batch, model)]).mean(0) for batch in batches])
            probabilities = (logits / model["temperature"]).softmax(1)
        print(",".join(f"p_{name}" for name in model["classes"]))
        for row in probabilities.tolist():
            print(",".join(f"{p:.6f}" for p in row))
