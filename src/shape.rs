//! What the values of a dataset look like, from all of its items: types, counts, widths of numbers. Order-free.
