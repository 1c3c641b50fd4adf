//! Request files for `aws dynamodb batch-write-item`.

/// What the encoder gives the writer.
#[derive(Debug)]
pub struct Payload {}
