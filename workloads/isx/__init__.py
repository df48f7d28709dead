"""ISx: a bucket sort whose exchange depends on the data.

Source: Hanebutte and Hemstad, "ISx: A Scalable Integer Sort for Co-design in
the Exascale Era" (PGAS 2015), and the report of its first year of use
(strong, weak and weak_iso scaling; in-cast, round-robin and random exchange;
buckets by shift; signed 32- and unsigned 64-bit keys).
"""
