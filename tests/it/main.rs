//! Integration tests.

mod python;
mod samples;
