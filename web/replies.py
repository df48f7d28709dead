# SPDX-License-Identifier: Apache-2.0
"""Answers of the API: one Struct per answer, from which its OpenAPI description is made.

What is an own answer of the page is made as its Struct. Documents that commands print too
(``compare``, ``plan``, ``order``) and those of a machine, which are large, stay as they are made
and may say more than is described here.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Document(Struct):
    """An answer that may contain more than these fields."""


class Exact(Struct, forbid_unknown_fields=True):
    """An answer that contains exactly these fields."""


class Problem(Exact):
    """A fault in one line, and a hint (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    hint: str


class Codes(Exact):
    """A column as its distinct values and a code for each row."""

    values: list[Any]
    codes: list[int]


# --- the machine ----------------------------------------------------------------------


class NodeColumns(Document):
    """The columns of the nodes; their positions, by level, are in `coords`."""

    nid: list[int]
    name: list[str]
    cname: list[str]
    coords: list[list[int]]
    role: Codes
    state: Codes
    router: list[int]


class RouterColumns(Exact):
    """The routers, and the outermost unit of each (-1: none)."""

    count: int
    name: list[str]
    unit: list[int]


class Choices(Document):
    """The choices for a plan and an order."""

    strategies: list[str]
    orders: list[str]
    routings: list[str]
    formats: list[str]
    default_strategy: str


class MachineColumns(Document):
    """A machine in compact columns."""

    schema: str
    name: str
    kind: str
    levels: list[str]
    extents: list[int]
    count: int
    nodes: NodeColumns
    routers: RouterColumns
    choices: Choices
    live: bool
    refresh: float
    version: str


class Layout(Document):
    """Views: boxes and nodes in units; others than the first may be named by id and title only."""

    schema: str
    views: list[dict[str, Any]]


# --- what changes ---------------------------------------------------------------------


class RunningJob(Exact, omit_defaults=True):
    """A job that holds nodes; `user` and `mine` only if known and shown."""

    id: str
    rows: str
    count: int
    name: str
    partition: str
    ppn: int
    user: str = ""
    mine: bool = False


class ListedJob(Exact, omit_defaults=True):
    """A job with the list of its nodes."""

    id: str
    count: int
    name: str
    partition: str
    ppn: int
    nodelist: str
    user: str = ""
    mine: bool = False


class PartitionNodes(Exact):
    """One of Slurm's partitions: its compute nodes, and the free ones."""

    name: str
    count: int
    free: int
    default: bool


class State(Exact):
    """States of the nodes and the jobs on them, with the time of the data."""

    schema: str
    version: int
    source: str
    taken: float | None
    stale: bool
    error: str
    state: Codes
    kinds: Codes
    planned: list[int]
    free: int
    assumed: bool
    counts: dict[str, int]
    jobs: list[RunningJob]
    partitions: list[PartitionNodes]
    unknown: int
    notes: list[str]


class Jobs(Exact):
    """The jobs that hold nodes."""

    jobs: list[ListedJob]
    taken: float | None
    stale: bool
    error: str


class JudgedJob(Exact, omit_defaults=True):
    """A job and its slowdown against its best placement; None if not judged yet."""

    id: str
    rows: str
    count: int
    name: str
    partition: str
    ppn: int
    touches: dict[str, int]
    patterns: list[str]
    spread: float | None
    best: str | None
    slowdown: float | None
    slowdown_low: float | None
    slowdown_high: float | None
    judged: float | None
    user: str = ""
    mine: bool = False


class Slowdowns(Exact):
    """The jobs, ordered by slowdown; `timeless` says why costs are not times, or is ''."""

    schema: str
    timeless: str
    taken: float | None
    stale: bool
    error: str
    jobs: list[JudgedJob]


class Status(Exact):
    """The state of the server."""

    machine: str
    nodes: int
    live: bool
    source: str
    version: int
    taken: float | None
    stale: bool
    error: str
    calculations: int


# --- nodes ----------------------------------------------------------------------------


class Node(Exact):
    """All that is known about a node."""

    row: int
    coords: dict[str, int]
    planned: bool
    jobs: list[str]
    routers: list[str]
    name: str
    cname: str
    role: str
    state: str
    features: str
    nid: int
    sockets: int
    cores: int
    memory_mb: int
    nics: int
    gpus: int


class Nodes(Exact):
    """Some nodes."""

    nodes: list[Node]


class NameProblem(Exact):
    """A word that names nothing, and its position (from 1; 0: unknown)."""

    token: str
    line: int
    column: int
    message: str
    hint: str


class NamedJob(Exact):
    """One of several jobs that a text lists."""

    id: str
    rows: list[int]


class Resolved(Exact):
    """The rows that a text names, in order and each once, and the words that name nothing."""

    ok: bool
    count: int
    rows: list[int]
    repeated: int
    nodelist: str
    errors: list[NameProblem]
    more_errors: int
    jobs: list[NamedJob] = []


class Hops(Exact, rename={"from_": "from"}):
    """Links from one node's router to all others'; -1 if there is no path."""

    from_: int
    name: str
    hops: list[float]
    kinds: list[str]


class Emitted(Exact):
    """Nodes in a scheduler's format."""

    format: str
    count: int
    text: str


class Finished(Exact):
    """Whether a search of that name is running, and has been asked to end."""

    told: bool


# --- predictions ----------------------------------------------------------------------


class Range(Document):
    """A figure: low, likely and high, and the unknowns."""

    low: float | None
    likely: float | None
    high: float | None
    unknowns: list[dict[str, Any]]


class Links(Exact):
    """The busiest links, those first, of this many in `total`."""

    kinds: list[str]
    source: list[int]
    target: list[int]
    kind: list[int]
    seconds: list[float]
    load: list[float]
    share: list[float]
    name: list[str]
    total: int


class RouterShares(Exact):
    """The share of the busiest link that each router touches."""

    row: list[int]
    share: list[float]


class Prediction(Exact, omit_defaults=True):
    """A time, its range, its terms, and the loads of links; `groups` if requested."""

    time_s: float
    between: dict[str, Any] | None
    limited_by: str
    limited_by_text: str
    spent: dict[str, float]
    bottleneck: dict[str, Any]
    by_class: dict[str, float]
    terms: Any
    bound_s: float
    bound: Any
    percent_of_bound: float
    hop_bytes: float
    routing: str
    wiring: str
    pattern: str
    ppn: int | list[int]
    ranks: int
    bytes: float
    algorithm: str
    sentence: str
    routers: RouterShares
    links: Links
    matrix: dict[str, Any] | None
    groups: dict[str, Any] | None = None


class Measured(Exact):
    """What links carried by their counters; `unknown` rows name no link of the machine."""

    source: str
    taken: float
    bytes: float
    unknown: int
    links: Links
    groups: dict[str, Any]
    sentence: str


class SchedulersChoice(Exact):
    """The scheduler's own choice, and the gain of the marked nodes over it."""

    strategy: str
    words: str
    gain: dict[str, Any]
    time_s: float
    between: dict[str, Any]
    ratio: float
    touches: dict[str, int]
    nodelist: str
    rows: list[int]


class Described(Exact):
    """A set of nodes in one sentence, and its link loads; `reason` if there are none."""

    schema: str
    count: int
    touches: dict[str, int]
    nodelist: str
    sentence: str = ""
    prediction: Prediction | None = None
    default: SchedulersChoice | None = None
    timeless: str = ""
    reason: str = ""
    notes: list[str] = []


class ComparedPlan(Document):
    """A plan with a rank order, and its figures against the default's."""

    strategy: str
    order: str
    default: bool
    time_s: float
    between: Range
    gain: Range
    limited_by_text: str
    touches: dict[str, int]
    nodelist: str
    node_rows: list[int]


class Compared(Document):
    """Plans, ``auto`` first, then the fastest; how the first compares with the default."""

    schema: str
    rows: list[ComparedPlan]
    sentence: str
    notes: list[str]
    timeless: str


class Planned(Document):
    """A plan: its nodes in the order of the job's slots, and the reason."""

    schema: str
    strategy: str
    count: int
    nodelist: str
    nodes: list[str]
    free: int
    touches: dict[str, int]
    why: str
    warnings: list[str]


class Neighbours(Exact):
    """The partners of each rank: those of rank r are ``ranks[offsets[r]:offsets[r + 1]]``."""

    offsets: list[int]
    ranks: list[int]


class Ordered(Exact):
    """The slot of every rank, as in ``nidmap order --json``, and the launcher's file."""

    schema: str
    order: dict[str, Any]
    node_rows: list[int]
    format: str
    filename: str
    text: str
    neighbours: Neighbours | None
    notes: list[str]
