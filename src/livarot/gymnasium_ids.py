"""The Gymnasium ids of the environments, registered without importing anything heavy.

``import livarot`` must make ``gymnasium.make("livarot/RiverSwim-v0")`` work, whichever of the two is imported first,
and must not import Gymnasium itself: the command line answers ``--help`` without it.  So there are two cases.  If
Gymnasium is imported already, the ids are registered at once, as strings.  If not, a finder waits at the head of
``sys.meta_path``; when Gymnasium is imported it lets the ordinary finders do their work, registers the ids as soon as
the module has run, and removes itself.  Nobody can ask Gymnasium for an id before that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

OWN_MODEL = "livarot/MNL-v0"  # gymnasium.make(OWN_MODEL, mdp=...) for a model of your own
ENV, VECTOR_ENV = "livarot.envs.gymnasium.env:MNLEnv", "livarot.envs.gymnasium.env:MNLVectorEnv"


def env_id(name: str) -> str:
    """The Gymnasium id of a registered environment.

    >>> env_id("river-swim")
    'livarot/RiverSwim-v0'
    """
    return f"livarot/{''.join(word[:1].upper() + word[1:] for word in name.replace('_', '-').split('-'))}-v0"


def register() -> None:
    """Register the ids that Gymnasium does not know yet (again for names added to ``livarot.envs.registry``)."""
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry as known

    from livarot.envs import registry

    if OWN_MODEL not in known:
        add(OWN_MODEL, entry_point=ENV, vector_entry_point=VECTOR_ENV)
    for name in registry:
        if env_id(name) not in known:
            add(env_id(name), entry_point=ENV, vector_entry_point=VECTOR_ENV, kwargs={"mdp": name})


def register_when_imported() -> None:
    """Register now if Gymnasium is imported already, otherwise as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """Finds Gymnasium as the other finders do, and registers the ids after it has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._add_registration(spec)
                return spec
        return None

    def _add_registration(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:  # it is gone already if the module was loaded by another spec meanwhile
                sys.meta_path.remove(self)
            register()

        # on this loader object alone; it stays the object that Gymnasium's spec and resources know
        loader.exec_module = exec_module  # type: ignore[method-assign]
