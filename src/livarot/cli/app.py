"""The commands: their options, each named as the parameter of the function that does the work.

Only typer is imported here; the module of a command is imported when it runs.

Exit codes: 0 done, 1 not everything could be done (``run``, ``export``, ``doctor``, ``status --check``), 2 refused (one
line on standard error), 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from livarot.cli.sweep import Imports, import_modules
from livarot.extras import extras_explained
from livarot.system.threads import processors

REFUSED, INTERRUPTED = 2, 130
RESULTS = Path("results/reproduce")

app = typer.Typer(
    name="livarot",
    help="Reinforcement learning with multinomial logistic transition models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
STUDIES, MODELS, DATA, MACHINE = "Studies", "Problems and agents", "Data", "This machine"  # as --help groups them
Workers = Annotated[int | None, typer.Option(help="Threads (as many as processors).")]


class Kind(StrEnum):
    """What can be listed."""

    agents = "agents"
    envs = "envs"


@contextmanager
def one_line_errors(extra: str | None = None) -> Iterator[None]:
    """Our errors and Ctrl-C end a command with one line; anything else is a defect, with its traceback.

    ``extra`` is what the command needs beyond the core.  Plugins that are left out are named on standard error.
    """
    try:
        with extras_explained(extra), report.warnings_shown(report.PLUGINS):
            yield
    except KeyboardInterrupt:
        typer.echo("livarot: interrupted, nothing half-written is left", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except ValueError as error:
        from livarot.errors import LivarotError

        if not isinstance(error, LivarotError):
            raise
        typer.echo(f"livarot: {error}", err=True)
        raise typer.Exit(REFUSED) from None


def call(module: str, given: dict[str, Any], function: str = "command") -> None:
    """Call a function of ``livarot.cli.module`` with these options, after the modules of ``--import``.

    ``workers`` None is as many threads as there are processors.
    """
    with one_line_errors():
        work = getattr(import_module(f"livarot.cli.{module}"), function)
        if "imports" in given:  # it names agents or environments
            import_modules(given.pop("imports"))
        if "workers" in given and given["workers"] is None:
            given["workers"] = processors()
        work(**given)


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed

        typer.echo(f"livarot {installed('livarot')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="The version of livarot.")
    ] = False,
) -> None:
    """Reinforcement learning with multinomial logistic transition models."""


@app.command(rich_help_panel=STUDIES)
def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="8 seeds and H = 5, 10, 20 only.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures, summary and table.")] = RESULTS,
    n_seeds: Annotated[int | None, typer.Option("--seeds", help="Number of seeds (40, or 8 with --quick).")] = None,
    workers: Workers = None,
) -> None:
    """Figures 1 and 2 of the LIVAROT paper, with the uniform policy, and with a gap that can be learned."""
    call("studies", locals(), "reproduce")


@app.command("list", rich_help_panel=MODELS)
def list_names(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    name: Annotated[str | None, typer.Argument(help="Describe this one, with its settings.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    imports: Imports = None,
) -> None:
    """The registered agents, or the environments with S, A, U, d, H, B, V*, kappa* and sigma_bar."""
    call("listing", locals())


@app.command(rich_help_panel=MODELS)
def theory(
    env: Annotated[str, typer.Argument(help="A registered environment; `livarot list envs` names them.")],
    agent: Annotated[str, typer.Option(help="A registered agent.")] = "livarot",
    n_episodes: Annotated[int, typer.Option("--episodes", help="T, the number of episodes.")] = 1000,
    n_seeds: Annotated[int, typer.Option("--seeds", help="Seeds of --run.")] = 10,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value for the environment; repeat.")] = None,
    agent_settings: Annotated[
        list[str] | None, typer.Option("--agent-set", help="key=value for the agent; repeat.")
    ] = None,
    run_it: Annotated[bool, typer.Option("--run", help="Run the agent and audit the run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    workers: Workers = None,
    imports: Imports = None,
) -> None:
    """Constants, regret bound term by term and lower bound of a problem; with --run, whether a run keeps to them."""
    call("theory", locals())


@app.command(rich_help_panel=STUDIES)
def variance(
    quick: Annotated[bool, typer.Option("--quick", help="6 seeds and 500 episodes only.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures, summary and tables.")] = Path("results/variance"),
    n_seeds: Annotated[int | None, typer.Option("--seeds", help="Number of seeds (30, or 6 with --quick).")] = None,
    workers: Workers = None,
) -> None:
    """Does regret follow sigma_bar?  Families of problems that differ in it, and sigma_bar against the horizon."""
    call("studies", locals(), "variance")


@app.command(rich_help_panel=STUDIES)
def sepsis(
    quick: Annotated[bool, typer.Option("--quick", help="2 seeds and 128 patients only.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for figures, summary and table.")] = Path("results/sepsis"),
    n_seeds: Annotated[int | None, typer.Option("--seeds", help="Number of seeds (8, or 2 with --quick).")] = None,
    n_patients: Annotated[
        int | None, typer.Option("--patients", help="Patients treated (1000, or 128 with --quick).")
    ] = None,
    workers: Workers = None,
) -> None:
    """Learn to treat in a simulated hospital, starting from the nominal model.  A demonstration, not medical advice."""
    call("studies", locals(), "sepsis")


@app.command(rich_help_panel=MODELS)
def tune(
    env: Annotated[str, typer.Argument(help="A registered environment.")],
    agent: Annotated[str, typer.Argument(help="A registered agent.")],
    grid: Annotated[list[str], typer.Option("--grid", help="field=v1,v2; once per field.")],
    n_episodes: Annotated[int, typer.Option("--episodes", help="Episodes per run.")] = 1000,
    n_seeds: Annotated[int, typer.Option("--seeds", help="Tuning seeds, from 1000 on.")] = 5,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value of the environment; repeat.")] = None,
    budget: Annotated[int, typer.Option(help="Largest number of points.")] = 12,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    workers: Workers = None,
    imports: Imports = None,
) -> None:
    """Try a grid of an agent's settings on seeds that no evaluation uses."""
    call("tune", locals())


# Options that describe a model: of `fit`, and of `plan` and `evaluate` when they fit one first.
Features = Annotated[list[str] | None, typer.Option(help="Terms such as wear,action:wear; repeat or use commas.")]
Formula = Annotated[str | None, typer.Option(help="Instead of features: '~ wear + log(age):next_state'.")]
Reachable = Annotated[str | None, typer.Option(help="File of reachable next states, or 'all'.")]
Choice = Annotated[str, typer.Option(help="Column that groups alternatives into choices.")]
Chosen = Annotated[str, typer.Option(help="Column that marks the alternative chosen.")]
Offset = Annotated[str | None, typer.Option(help="Column of a known part of the logits.")]
Cluster = Annotated[str | None, typer.Option(help="Column of persons or units whose rows may be correlated.")]
Weights = Annotated[str | None, typer.Option(help="Column of sampling weights.")]
Reference = Annotated[list[str] | None, typer.Option(help="name=level: the reference of a category; repeat.")]
At = Annotated[str | None, typer.Option(help="Covariates to plan for: age=60,sex=f.")]


@app.command(rich_help_panel=DATA)
def fit(
    table: Annotated[
        Path, typer.Argument(help="A file of transitions or alternatives: .csv(.gz), .parquet, .feather.")
    ],
    features: Features = None,
    formula: Formula = None,
    reference: Reference = None,
    choice: Choice = "choice",
    chosen: Chosen = "chosen",
    offset: Offset = None,
    cluster: Cluster = None,
    weights: Weights = None,
    collinear: Annotated[str, typer.Option(help="Columns that are combinations of others: refuse or drop.")] = "refuse",
    state: Annotated[str, typer.Option(help="Column of the state.")] = "state",
    action: Annotated[str, typer.Option(help="Column of the action.")] = "action",
    next_state: Annotated[str, typer.Option("--next", help="Column of the next state.")] = "next_state",
    stage: Annotated[str | None, typer.Option(help="Column of the stage.")] = None,
    count: Annotated[str | None, typer.Option(help="Column with the number of times a row occurred.")] = None,
    nominal: Annotated[str | None, typer.Option(help="Column of nominal probabilities.")] = None,
    reachable: Reachable = None,
    states: Annotated[Path | None, typer.Option(help="File of attributes of states.")] = None,
    actions: Annotated[Path | None, typer.Option(help="File of attributes of actions.")] = None,
    reg: Annotated[float, typer.Option(help="Ridge.")] = 0.0,
    per_stage: Annotated[bool, typer.Option("--per-stage", help="One parameter per stage.")] = False,
    covariance: Annotated[str, typer.Option(help="auto, hessian, sandwich or cluster.")] = "auto",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    out: Annotated[Path | None, typer.Option(help="File for the model.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Fit a transition model to logged data, print its summary, store it."""
    call("fit", locals())


@app.command(rich_help_panel=DATA)
def plan(
    model: Annotated[Path, typer.Argument(help="A model stored by `livarot fit`, or a table to fit first.")],
    reward: Annotated[
        str | None, typer.Option(help="File with state, (action, (next_state,)) reward; or state=number,...")
    ] = None,
    cost: Annotated[str | None, typer.Option(help="The same for costs, which are minimised.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of an episode; without it nothing ends.")] = None,
    discount: Annotated[float | None, typer.Option(help="Discount factor, below 1 if there is no horizon.")] = None,
    terminal: Annotated[
        str | None, typer.Option(help="States that end an episode: state,...; state=value,...; or a file.")
    ] = None,
    terminal_reward: Annotated[
        str | None, typer.Option(help="What the last state is worth: file with state, reward; or state=number,...")
    ] = None,
    terminal_cost: Annotated[str | None, typer.Option(help="The same for costs.")] = None,
    start: Annotated[str | None, typer.Option(help="The first state.")] = None,
    robust: Annotated[str | None, typer.Option(help="KL radius, or auto: chosen by refits.")] = None,
    optimistic: Annotated[float | None, typer.Option(help="Level of the confidence set to be optimistic over.")] = None,
    pessimistic: Annotated[
        float | None, typer.Option(help="Level of the confidence set whose worst case to plan for.")
    ] = None,
    unseen: Annotated[
        str, typer.Option(help="Actions never tried in a state: unavailable, error, sink or stay.")
    ] = "unavailable",
    level: Annotated[float, typer.Option(help="Level of the intervals and of --robust auto.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Refits of --robust auto.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the refits.")] = 0,
    at: At = None,
    features: Features = None,
    formula: Formula = None,
    reachable: Reachable = None,
    choice: Choice = "choice",
    chosen: Chosen = "chosen",
    offset: Offset = None,
    cluster: Cluster = None,
    weights: Weights = None,
    out: Annotated[Path | None, typer.Option(help="CSV file of the policy (standard output).")] = None,
) -> None:
    """Plan in a fitted model, nominally or for its worst or best case, and write the policy as a table."""
    call("plan", locals())


@app.command(rich_help_panel=DATA)
def evaluate(
    log: Annotated[Path, typer.Argument(help="A .csv or .parquet file of episodes, one row per step.")],
    policy: Annotated[Path, typer.Option(help="CSV file of the policy, as `livarot plan` writes it.")],
    model: Annotated[
        Path | None, typer.Option(help="A model stored by `livarot fit`; --formula or --features fit one to the log.")
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help="Rewards of the model: file with state, (action,) reward; or state=number,...")
    ] = None,
    episode: Annotated[str, typer.Option(help="Column of the episode.")] = "episode",
    step: Annotated[str, typer.Option(help="Column of the step.")] = "step",
    probability: Annotated[
        str | None, typer.Option(help="Column with the probability of the logged action, if it is known.")
    ] = None,
    behaviour: Annotated[
        str, typer.Option(help="How to estimate it otherwise: counts, 'stage counts' or logit.")
    ] = "counts",
    cross_fit: Annotated[int, typer.Option(help="Folds of the doubly robust estimate; 0 for none.")] = 0,
    unseen: Annotated[
        str, typer.Option(help="Actions never tried in a state: unavailable, error, sink or stay.")
    ] = "unavailable",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the folds.")] = 0,
    at: At = None,
    features: Features = None,
    formula: Formula = None,
    reachable: Reachable = None,
    choice: Choice = "choice",
    chosen: Chosen = "chosen",
    offset: Offset = None,
    cluster: Cluster = None,
    weights: Weights = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """What would a policy have earned?  Estimates from logged episodes, with intervals and warnings."""
    call("evaluate", locals())


@app.command(rich_help_panel=MACHINE)
def warmup(
    only: Annotated[list[str] | None, typer.Option(help="One part of the kernels, such as planning; repeat.")] = None,
) -> None:
    """Compile every kernel once, so that no later process has to."""
    call("warmup", locals())


@app.command(rich_help_panel=MACHINE)
def version() -> None:
    """The version of livarot."""
    _tell_version(True)


from livarot.cli import doctor, report, sweep  # noqa: E402 (they need the app's helpers)

sweep.register(app)
doctor.register(app)
report.register(app)
