"""Names of nodes: Cray cnames, HPE xnames, and the NIDs that go with them.

A cname says where a node sits in the machine room, a NID is its number; on
an XC and on an XE or XK one follows from the other once the shape of the
machine room is known (`Xc`, `GeminiNumbering`), and that shape follows from any dump
that lists both (``Xc.fit``, ``GeminiNumbering.fit``). For many nodes at once names are
numpy string arrays and places are ``int32 (n, 5)`` with the columns col, row,
cage, slot, node; a row of -1 marks what is impossible. For one node there is
`Cname`, which raises `placement.errors.ParseError`.
"""
