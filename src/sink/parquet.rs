//! One Parquet dataset an entity.

/// What the encoder gives the writer.
#[derive(Debug)]
pub struct Payload {}
