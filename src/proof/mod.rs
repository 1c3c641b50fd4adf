//! What is shown before anything is written, and what is compared afterwards.

pub mod collisions;
pub mod compare;
pub mod difference;
pub mod iam;
pub mod inspect;
pub mod log;
