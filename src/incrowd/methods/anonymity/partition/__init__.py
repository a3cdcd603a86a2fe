"""Partition: Mondrian made safe, with cuts that are chosen privately and leaves that are sampled and suppressed."""
