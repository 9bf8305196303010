"""A cart with a free pendulum: the plant that the controller knows by its records alone.

Equations and parameters: Deisenroth, *Efficient Reinforcement Learning using Gaussian Processes* (2010),
appendix C. The angle is counted from the hanging position. Only position and angle are seen, with noise.
"""

from __future__ import annotations

import numpy as np

DT = 0.1
FORCE = 10.0
TRACK = 1.5
NOISE = np.array([0.004, 0.015])
ACTUATOR = 0.06

CART, POLE, LENGTH, FRICTION, GRAVITY = 0.5, 0.5, 0.6, 0.1, 9.82


def derivative(x: np.ndarray, force: float) -> np.ndarray:
    """Time derivatives of (position, velocity, angular velocity, angle)."""
    _, velocity, spin, angle = x
    sin, cos = np.sin(angle), np.cos(angle)
    total, push = CART + POLE, force - FRICTION * velocity
    forward = 2 * POLE * LENGTH * spin**2 * sin + 3 * POLE * GRAVITY * sin * cos + 4 * push
    turning = -3 * POLE * LENGTH * spin**2 * sin * cos - 6 * total * GRAVITY * sin - 6 * push * cos
    inertia = 4 * total - 3 * POLE * cos**2
    return np.array([velocity, forward / inertia, turning / (LENGTH * inertia), spin])


class Plant:
    """The plant at rest; each step moves it on by a sampling time."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.x = np.zeros(4)

    def see(self) -> np.ndarray:
        """Give position and angle, with the noise of the instruments."""
        return self.x[[0, 3]] + NOISE * self.rng.normal(size=2)

    def step(self, force: float) -> None:
        """Apply a force, and the disturbance of the actuator, for one sampling time."""
        acting = float(np.clip(force, -FORCE, FORCE)) + ACTUATOR * self.rng.normal()
        steps = 10
        h = DT / steps
        for _ in range(steps):
            a = derivative(self.x, acting)
            b = derivative(self.x + 0.5 * h * a, acting)
            c = derivative(self.x + 0.5 * h * b, acting)
            d = derivative(self.x + h * c, acting)
            self.x = self.x + h / 6 * (a + 2 * b + 2 * c + d)


def upright(angle: float) -> bool:
    """Whether the pendulum stands within 30 degrees of the top."""
    return bool(np.cos(angle) < -np.cos(np.pi / 6))
