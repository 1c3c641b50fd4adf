//! Integration tests.

mod batch_write;
mod support;
