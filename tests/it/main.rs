//! Integration tests.

mod samples;
