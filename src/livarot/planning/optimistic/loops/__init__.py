"""The loops of optimistic backward induction: which pairs are visited, and what lies side by side in a lane."""
