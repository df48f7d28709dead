# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of one reader, by hand: any exception but ours is a find.

    pip install atheris
    python -m tests.fuzz.guided xtprocadmin -max_total_time=1800 CORPUS

The golden machines' dumps are a good corpus to start from.
"""

import sys

import atheris

with atheris.instrument_imports(include=["nidmap"]):
    from nidmap.placement.dumps.assemble import assemble
    from nidmap.placement.errors import NidmapError
    from nidmap.placement.readers import BUNDLED, find

    for name in BUNDLED:
        find(name)


def main(argv):
    """Fuzz the reader named first; the other words are libFuzzer's."""
    reader = find(argv.pop(1))

    def one(data):
        try:
            assemble([reader.read(data.decode("latin-1"), "fuzz")])
        except NidmapError:
            pass

    atheris.Setup(argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
