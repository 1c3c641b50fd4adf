//! What is shown before anything is written. Pure: no files, no threads, no network.

pub mod inspect;
