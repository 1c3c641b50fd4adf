//! Files for DynamoDB's `ImportTable`: gzipped DynamoDB JSON objects and `table.json`.

/// What the encoder gives the writer.
#[derive(Debug)]
pub struct Payload {}
