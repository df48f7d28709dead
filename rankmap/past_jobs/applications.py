"""What jobs send: a small TOML file that says it by the names of jobs or users.

::

    [[application]]
    name = "lammps*"          # of jobs; or user = "ada"; * and ? stand for anything
    pattern = "stencil:auto"
    communication = 0.3       # share of its time; or [0.2, 0.4]
    ppn = 32

The first that fits a job counts. Of a job that none fits nothing is known: it is held against
a stencil and an all-to-all.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from placement.errors import NidmapError, ParseError, schema_sentence
from placement.records import JobRecord
from placement.sites.loading import read_tables
from rankmap.past_jobs.quick_cost import Span
from rankmap.predict import Job

__all__ = ["ASSUMED_SHARE", "UNKNOWN", "Application", "application_of", "read_applications"]

#: Share of its time that a job communicates where nobody says it, at least and at most: assumed.
ASSUMED_SHARE = Span(0.05, 0.2, 0.5)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

#: At least and at most. No tuple: msgspec 0.22 ends in a fault of memory at one beside a number.
Ends = Annotated[list[Share], msgspec.Meta(min_length=2, max_length=2)]


class Application(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the jobs of one application send.

    Attributes
    ----------
    name, user : str
        Of the jobs that are meant; ``*`` and ``?`` stand for anything.
    pattern : str
        As ``--pattern``; '' where it is not known.
    communication : float, [float, float] or None
        Share of a job's time that it communicates, or at least and at most;
        None: `ASSUMED_SHARE`.
    ppn : int
        Ranks on each node.
    bytes : float or None
        Payload of a message.
    """

    name: str = "*"
    user: str = "*"
    pattern: str = ""
    communication: Share | Ends | None = None
    ppn: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    bytes: Annotated[float, msgspec.Meta(gt=0)] | None = None

    @property
    def share(self) -> Span:
        """Share of its time that a job communicates.

        Examples
        --------
        >>> Application(communication=0.3).share, Application(communication=[0.25, 0.75]).share
        (Span(low=0.3, likely=0.3, high=0.3), Span(low=0.25, likely=0.5, high=0.75))
        """
        if self.communication is None:
            return ASSUMED_SHARE
        if isinstance(self.communication, float):
            return Span(*[self.communication] * 3)
        low, high = sorted(self.communication)
        return Span(low, (low + high) / 2, high)

    @property
    def patterns(self) -> tuple[str, ...]:
        """What its jobs are held against: the pattern, or both where none is known."""
        return (self.pattern,) if self.pattern else ("stencil:auto", "alltoall")


UNKNOWN = Application()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    application: list[Application]


def read_applications(source: str) -> tuple[Application, ...]:
    """Read a file of applications.

    Parameters
    ----------
    source : str
        Its path.

    Raises
    ------
    SiteError, ParseError
        It cannot be read, says something unknown, or a pattern that there is not.
    """
    try:
        applications = msgspec.convert(read_tables(source), _File).application
    except msgspec.ValidationError as error:
        hint = 'as in: [[application]] name = "lammps*" pattern = "stencil:auto"'
        raise ParseError(source, 0, schema_sentence(error), hint) from None
    for application in applications:
        _refuse_pattern(application.pattern, source)
    return tuple(applications)


def _refuse_pattern(pattern: str, source: str) -> None:
    try:
        Job(pattern)
    except NidmapError as error:
        raise ParseError(source, 0, error.message, error.hint) from None


def application_of(job: JobRecord, applications: tuple[Application, ...]) -> Application:
    """Return what a job is, by its name and user; `UNKNOWN` where none fits.

    Examples
    --------
    >>> from placement.nodelist import NodeList
    >>> known = (Application("lammps*", pattern="stencil:auto"),)
    >>> names = ("lammps-7", "fft")
    >>> [application_of(JobRecord("7", NodeList(), name), known).pattern for name in names]
    ['stencil:auto', '']
    """
    fits = (
        application
        for application in applications
        if fnmatchcase(job.name, application.name) and fnmatchcase(job.user, application.user)
    )
    return next(fits, UNKNOWN)
