//! Finds the data files of an export: summary, list, data files.
