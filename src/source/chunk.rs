//! Line-aligned pieces of an export file. Knows gzip and line ends; knows nothing of items.
