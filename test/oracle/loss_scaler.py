"""loss_scaler.py - DeepSpeed's dynamic loss scaling, told iteration by iteration.

The reference that generated steps are held against, so it keeps DeepSpeed's own bookkeeping: the number of the
iteration and that of the last overflow, which starts as -1.
"""


class GivesUp(Exception):
    """An overflow with the scale at its minimum."""


class LossScaler:
    def __init__(self, initial=2.0 ** 16, window=1000, hysteresis=2, consecutive=False, minimum=1.0):
        self.scale, self.window, self.minimum = initial, window, minimum
        self.full, self.left, self.consecutive = hysteresis, hysteresis, consecutive
        self.iteration, self.last_overflow = 0, -1

    def update(self, overflow):
        """After an iteration: the scale for the next one."""
        if overflow:
            if 1 in (self.full, self.left):
                if self.scale == self.minimum:
                    raise GivesUp
                self.scale = max(self.scale / 2.0, self.minimum)
            else:
                self.left -= 1
            self.last_overflow = self.iteration
        else:
            grows = (self.iteration - self.last_overflow) % self.window == 0
            if self.consecutive or grows:
                self.left = self.full
            if grows:
                self.scale *= 2.0
        self.iteration += 1
