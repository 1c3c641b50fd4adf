//! What is shown before anything is written.

pub mod collisions;
pub mod iam;
pub mod inspect;
