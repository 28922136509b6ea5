"""What a later PyTorch than Debian's has, for rehearsals on the CPU; NO_TORCH=1: there is none."""
import os
import sys

if os.environ.get("NO_TORCH"):
    sys.modules["torch"] = None
elif len(sys.argv) > 0 and "DS_GPU_TEST_DEVICE" in os.environ:
    import importlib.abc
    import importlib.util

    class Finder(importlib.abc.MetaPathFinder):
        """Adds to PyTorch when it has been imported."""

        def find_spec(self, name, path, target=None):
            if name != "torch":
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                import torch
                functional = torch.nn.functional
                if not hasattr(functional, "scaled_dot_product_attention"):
                    def attention(q, k, v, is_causal):
                        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
                        hidden = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).triu(1)
                        return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v
                    functional.scaled_dot_product_attention = attention
                if not hasattr(torch, "compile"):
                    torch.compile = lambda model: model
            spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder())
