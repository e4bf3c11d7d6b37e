"""A class of submissions: unpack, judge, store, summarise."""
