#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Look for wrong types in the page's modules: tsc reads their JSDoc (jsconfig.json).
#
# A developer's check: it needs npm, with which TypeScript is put into build/typescript once. Where
# there is no npm, or it reaches no registry, that is said and nothing fails.
set -u
home=build/typescript
if [ ! -x $home/node_modules/.bin/tsc ]; then
    command -v npm >/dev/null 2>&1 || { echo "types of the page: not checked, npm is not installed" >&2; exit 0; }
    npm install --silent --no-audit --no-fund --prefix $home typescript@5.9 >/dev/null 2>&1 ||
        { echo "types of the page: not checked, npm cannot install typescript" >&2; exit 0; }
fi
exec $home/node_modules/.bin/tsc -p jsconfig.json
