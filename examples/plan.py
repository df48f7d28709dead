# SPDX-License-Identifier: Apache-2.0
"""Plan, order and predict from Python.

python plan.py
"""

import nidmap

machine = nidmap.load_machine("lumi")
job = nidmap.Job("stencil:4x4x4", ppn=8, bytes=1e6)

plan = nidmap.plan(machine, 8, job=job)
print("nodes:", plan.nodes.fold())
gain = plan.facts["predicted"]["gain"]
print(f"as fast: {gain['low']:.2f} to {gain['high']:.2f}, likely {gain['likely']:.2f}")

order = nidmap.order(machine, plan.nodes, job)
print("slot of the first ranks:", order.slot_of_rank[:8].tolist())

print(nidmap.predict(machine, plan.nodes, job).sentence)
