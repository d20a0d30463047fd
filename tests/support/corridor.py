"""A corridor in Gymnasium's manner that may end early."""

import gymnasium
import numpy as np

REWARD = np.zeros((8, 5, 2))
REWARD[-1, 4] = 1.0


def corridor_features(h, s, a):
    """Slipping or not, one logit."""
    ahead, back = min(s + (1 if a else -1), 4), s + (-1 if a else 1)
    return [max(ahead, 0), max(min(back, 4), 0)] if s else [0, 1], [[0.0], [1.0]] if s or not a else [[1.0], [0.0]]


KNOWN = {
    "features": corridor_features,
    "reward": REWARD,
    "horizon": 8,
    "param_bound": 2.0,
    "start": [0.5, 0.5, 0.0, 0.0, 0.0],
    "terminal_states": [4],
}


class Corridor(gymnasium.Env):
    """A foreign environment: step left or right, slipping the other way; the last cell ends the episode and pays 1."""

    def __init__(self, n_states=5, slip=0.3, lowest=0, box=False, stop=None, ends=True):
        self.n_states, self.slip, self.lowest, self.box, self.stop, self.ends = n_states, slip, lowest, box, stop, ends
        self.observation_space = gymnasium.spaces.Discrete(n_states, start=lowest)
        if box:
            self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
        self.action_space = gymnasium.spaces.Discrete(2, start=lowest)

    def _observation(self):
        if self.box:
            return np.array([self.cell / self.n_states], dtype=np.float32)
        return self.cell + self.lowest

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.steps = int(self.np_random.integers(2)), 0
        return self._observation(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        right = (action - self.lowest == 1) != (self.np_random.random() < self.slip)
        self.cell = min(max(self.cell + (1 if right else -1), 0), self.n_states - 1)
        self.steps += 1
        done = self.cell == self.n_states - 1
        return self._observation(), float(done), done and self.ends, self.steps == self.stop, {}
