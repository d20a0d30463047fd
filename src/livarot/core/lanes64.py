"""How many small problems the loops of :mod:`livarot.planning.lanes` take side by side."""

LANES = 64
