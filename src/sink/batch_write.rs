//! Live `BatchWriteItem` through the AWS SDK.

/// What the encoder gives the writer.
#[derive(Debug)]
pub struct Payload {}
