# SPDX-License-Identifier: Apache-2.0
"""A mini-Cray: a machine of network namespaces whose links have realistic relative speeds.

`net` turns a `Machine` into namespaces, veth pairs, rates and routes (pure);
`daemon` builds them in namespaces of its own and lives as long as they do;
`client` is how commands speak with it; `slurm` puts a real Slurm on the nodes.
"""
