"""optimizers.py - the optimizers that DeepSpeed picks by name, as one tensor operation after the other.

Written for being read next to the formulas, in fp32, one parameter at a time.  Each takes the parameter, its gradient
(averaged and clipped), its own state dictionary, the optimizer's `params` block, and what changes with the step.
"""

import math

import torch


def sgd(p, g, state, params, lr, betas, step):
    """torch.optim.SGD: L2 decay, momentum whose buffer starts as the first gradient, nesterov."""
    g = g + params.get("weight_decay", 0.0) * p
    momentum = params.get("momentum", 0.0)
    if momentum:
        dampening = params.get("dampening", 0.0)
        buffer = state["momentum"] * momentum + (1 - dampening) * g if "momentum" in state else g.clone()
        state["momentum"] = buffer
        g = g + momentum * buffer if params.get("nesterov", False) else buffer
    p -= lr * g


def adam(p, g, state, params, lr, betas, step):
    """Adam and AdamW: 'Adam' is decoupled as well unless adam_w_mode is false."""
    beta1, beta2 = betas
    decay = params.get("weight_decay", 0.0)
    decoupled = params.get("adam_w_mode", True)
    if not decoupled:
        g = g + decay * p
    m = state.setdefault("m", torch.zeros_like(p)).mul_(beta1).add_(g, alpha=1 - beta1)
    v = state.setdefault("v", torch.zeros_like(p)).mul_(beta2).addcmul_(g, g, value=1 - beta2)
    correct = params.get("bias_correction", True)
    m_hat = m / (1 - beta1 ** step) if correct else m
    v_hat = v / (1 - beta2 ** step) if correct else v
    update = m_hat / (v_hat.sqrt() + params.get("eps", 1e-8))
    if decoupled:
        update = update + decay * p
    p -= lr * update


def adagrad(p, g, state, params, lr, betas, step):
    g = g + params.get("weight_decay", 0.0) * p
    start = torch.full_like(p, params.get("initial_accumulator_value", 0.0))
    total = state.setdefault("sum", start).addcmul_(g, g)
    lr = lr / (1 + (step - 1) * params.get("lr_decay", 0.0))
    p -= lr * g / (total.sqrt() + params.get("eps", 1e-10))


def lion(p, g, state, params, lr, betas, step):
    """The sign of a mixture of momentum and gradient; the tests keep away from a mixture of exactly 0."""
    beta1, beta2 = betas
    m = state.setdefault("m", torch.zeros_like(p))
    direction = torch.sign(beta1 * m + (1 - beta1) * g)
    p.mul_(1 - lr * params.get("weight_decay", 0.0)).sub_(lr * direction)
    m.mul_(beta2).add_(g, alpha=1 - beta2)


def lamb(p, g, state, params, lr, betas, step):
    """The bias correction is folded into the step size; the trust ratio is clamped and 1 where a norm is 0."""
    beta1, beta2 = betas
    m = state.setdefault("m", torch.zeros_like(p)).mul_(beta1).add_(g, alpha=1 - beta1)
    v = state.setdefault("v", torch.zeros_like(p)).mul_(beta2).addcmul_(g, g, value=1 - beta2)
    eps = params.get("eps", 1e-8)
    root = (v + eps).sqrt() if params.get("eps_inside_sqrt", False) else v.sqrt() + eps
    update = m / root + params.get("weight_decay", 0.0) * p
    norm, update_norm = float(p.norm()), float(update.norm())
    trust = 1.0
    if norm != 0 and update_norm != 0:
        trust = min(max(norm / update_norm, params.get("min_coeff", 0.01)), params.get("max_coeff", 10.0))
    size = lr
    if params.get("bias_correction", True):
        size = lr * math.sqrt(1 - beta2 ** step) / (1 - beta1 ** step)
    p -= size * trust * update


UPDATES = {"sgd": sgd, "adam": adam, "adamw": adam, "adagrad": adagrad, "lion": lion, "lamb": lamb}
BASE_RATES = {"sgd": 1e-3, "adagrad": 1e-2}  # every other one: 1e-3 as well
HAVE_BETAS = {"adam", "adamw", "lion", "lamb"}


class Optimizer:
    """Steps a list of parameters as the configuration's optimizer block says."""

    def __init__(self, block, parameters):
        self.kind = block["type"].lower()
        self.params = block.get("params", {})
        if self.kind == "adamw" and not self.params.get("adam_w_mode", True):
            self.params = {**self.params, "adam_w_mode": True}
        self.parameters = parameters
        self.states = [{} for _ in parameters]

    @property
    def base_rate(self):
        return self.params.get("lr", BASE_RATES.get(self.kind, 1e-3))

    @property
    def betas(self):
        return tuple(self.params.get("betas", (0.9, 0.999)))

    @torch.no_grad()
    def step(self, gradients, lr, betas, step):
        update = UPDATES[self.kind]
        for p, g, state in zip(self.parameters, gradients, self.states):
            update(p, g, state, self.params, lr, betas if self.kind in HAVE_BETAS else None, step)
