"""A sound dump of every format, in files called FORMAT or FORMAT.VARIANT: readers' tests walk them.

``tests/placement/readers/test_samples.py`` recognises, reads, damages and cuts each, and
writes it back where ``tests/writers`` has a writer of its format.
"""

from pathlib import Path

SAMPLES = {
    path.name: path.read_text()
    for path in sorted(Path(__file__).parent.iterdir())
    if path.is_file() and path.suffix != ".py"
}


def format_of(sample):
    """Return the format that a sample is of."""
    return sample.partition(".")[0]
