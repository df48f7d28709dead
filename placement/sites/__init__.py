"""Site configurations: what is true of a machine, each figure with its mark and source.

`schema` says what a file may hold, `loading` turns a file into a checked
`model.Site`, `cray`, `slingshot` and `leaves` turn its figures into nodes.
`placement.site` is the way in.
"""
