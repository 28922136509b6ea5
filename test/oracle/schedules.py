"""schedules.py - DeepSpeed's five learning-rate schedules as plain functions of the step.

In DeepSpeed's engine the optimizer steps first and the scheduler after it, and the scheduler's constructor sets the rate
of the first step.  Seen from the step k = 1, 2, ... the rate is therefore

    k = 1   what the constructor sets: the minimum of WarmupLR, WarmupDecayLR, LRRangeTest and OneCycle; 0 for
            WarmupCosineLR
    k > 1   the schedule's formula at t = k - 2

so that a warm-up from 0 spends its first two steps at 0 (its formula is 0 at t = 0 as well).  OneCycle also moves beta1
of optimizers that have betas, and sets their beta2 to 0.99.
"""

import math


def warmup_gamma(params, t):
    """The warmed-up share in [0, 1) while t is below the warm-up's length."""
    length = max(2, params.get("warmup_num_steps", 1000))
    if params.get("warmup_type", "log") == "linear":
        return t / length
    return math.log(t + 1) / math.log(length)


def warmup(params, base, t):
    low = params.get("warmup_min_lr", 0.0)
    high = params.get("warmup_max_lr")
    high = base if high is None else high
    length = max(2, params.get("warmup_num_steps", 1000))
    if t < 0:
        return low
    return low + (high - low) * (warmup_gamma(params, t) if t < length else 1.0)


def warmup_decay(params, base, t):
    length = max(2, params.get("warmup_num_steps", 1000))
    total = params["total_num_steps"]
    if t < length:
        return warmup({**params, "warmup_max_lr": params.get("warmup_max_lr", 0.001)}, base, t)
    low, high = params.get("warmup_min_lr", 0.0), params.get("warmup_max_lr", 0.001)
    return low + (high - low) * max(0.0, (total - t) / max(1.0, total - length))


def warmup_cosine(params, base, t):
    length = max(2, params.get("warmup_num_steps", 1000))
    if t < 0:
        return 0.0
    if t < length:
        low = params.get("warmup_min_ratio", 0.0)
        return base * (low + (1.0 - low) * warmup_gamma(params, t))
    floor = params.get("cos_min_ratio", 1e-4)
    progress = min(1.0, (t - length + 1) / max(1, params["total_num_steps"] - length))
    return base * max(0.0, floor + (1.0 - floor) * (1.0 + math.cos(math.pi * progress)) / 2.0)


def range_test(params, base, t):
    low = params.get("lr_range_test_min_lr", 1e-3)
    if t < 0:
        return low
    place = (t + 1) / params.get("lr_range_test_step_size", 2000)
    if params.get("lr_range_test_staircase", False):
        place = math.floor(place)
    return low * (1.0 + params.get("lr_range_test_step_rate", 1.0) * place)


class Cycle:
    """The shape of OneCycle: up over the first half, down over the second, then the decay."""

    def __init__(self, params):
        self.params = params
        self.first = float(params.get("cycle_first_step_size", 2000))
        second = params.get("cycle_second_step_size")
        self.second = self.first if second is None else float(second)
        self.total = self.first + self.second
        self.stairs = params.get("cycle_first_stair_count", 0)
        second_stairs = params.get("cycle_second_stair_count")
        self.second_stairs = self.stairs if second_stairs is None else second_stairs

    def height(self, t):
        """How far up the cycle is after step t: 0 at its ends, 1 at its peak."""
        place = (t + 1) % self.total
        rising = place <= self.first
        stairs = self.stairs if rising else self.second_stairs
        position, length = (place, self.first) if rising else (self.total - place, self.second)
        if stairs > 0:
            return math.floor(position * stairs / length) / stairs
        return position / length

    def decay(self, t, rate):
        """1 + rate * intervals since the cycle ended; 1 where the decay is switched off."""
        size = self.params.get("decay_step_size", 0)
        return 1.0 if size == 0 or rate == 0 else 1.0 + rate * (t - self.total + 1) / size


def one_cycle(params, base, t):
    cycle = Cycle(params)
    low, high = params["cycle_min_lr"], params["cycle_max_lr"]
    if t < 0:
        return low
    if t < cycle.total:
        return low + (high - low) * cycle.height(t)
    return low / cycle.decay(t, params.get("decay_lr_rate", 0.0))


def one_cycle_betas(params, t):
    """The betas that OneCycle puts into the optimizer: beta1 moves against the rate, beta2 is 0.99."""
    cycle = Cycle(params)
    low, high = params.get("cycle_min_mom", 0.8), params.get("cycle_max_mom", 0.9)
    if t < 0:
        return low, 0.99
    if t < cycle.total:
        return high - (high - low) * cycle.height(t), 0.99
    return high * cycle.decay(t, params.get("decay_mom_rate", 0.0)), 0.99


RATES = {"WarmupLR": warmup, "WarmupDecayLR": warmup_decay, "WarmupCosineLR": warmup_cosine,
         "LRRangeTest": range_test, "OneCycle": one_cycle}


def learning_rate(scheduler, base, step):
    """The rate of step 1, 2, ...; `scheduler` is the configuration's block or None, `base` the optimizer's lr."""
    if not scheduler:
        return base
    return RATES[scheduler["type"]](scheduler.get("params", {}), base, step - 2)


def betas(scheduler, own, step):
    """The betas of step 1, 2, ...: the optimizer's own unless OneCycle cycles them."""
    if not scheduler or scheduler["type"] != "OneCycle" or not scheduler.get("params", {}).get("cycle_momentum", True):
        return own
    return one_cycle_betas(scheduler["params"], step - 2)
