//! What is shown before the first write.

pub mod collisions;
