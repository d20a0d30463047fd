"""Planning: backward induction, and optimistic backward induction over confidence ellipsoids."""
