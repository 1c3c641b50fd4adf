//! Questions about tables, and the request for one. Nothing here knows what a table should be like.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableInputBuilder;
use aws_sdk_dynamodb::types::{TableDescription, TimeToLiveStatus};

use crate::aws::dynamodb::DynamoDb;
use crate::error::{Error, Kind, Result};

/// How long to wait where the service makes as many tables at a time as it can.
const PAUSE: Duration = Duration::from_secs(2);

impl DynamoDb {
    /// What the service says of a table; `None` where there is none.
    ///
    /// # Errors
    /// What [`DynamoDb::ask`] gives.
    pub(crate) fn describe_table(&self, table: &str) -> Result<Option<TableDescription>> {
        let action = "dynamodb:DescribeTable";
        let answer = self
            .ask(action, table, &["ResourceNotFoundException"], &async |client| client.describe_table().table_name(table).send().await)?;
        let Some(answer) = answer else { return Ok(None) };
        let without = || Error::new(Kind::Service, "an answer without a table").with("action", action).with("table", table);
        answer.table.ok_or_else(|| without().with("at", self.place())).map(Some)
    }

    /// The attribute with the time at which the service deletes an item. `None` where it deletes none, and where it does not say:
    /// not everybody may ask, and not every server knows the question.
    pub(crate) fn time_to_live(&self, table: &str) -> Option<String> {
        // No finding is worth waiting for a server that fails at it.
        let asking = self.clone().with_patience(Duration::ZERO);
        let answer = asking
            .ask("dynamodb:DescribeTimeToLive", table, &[], &async |client| client.describe_time_to_live().table_name(table).send().await);
        let description = answer.ok().flatten()?.time_to_live_description?;
        match description.time_to_live_status()? {
            TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling => description.attribute_name,
            _ => None,
        }
    }

    /// Asks for a table. It is not there at once; that it is there already is no error.
    ///
    /// # Errors
    /// What [`DynamoDb::ask`] gives, and kind `Service` where the account may have no more tables.
    pub(crate) fn create_table(&self, table: &str, request: &CreateTableInputBuilder) -> Result<()> {
        const FULL: &str = "LimitExceededException";
        let action = "dynamodb:CreateTable";
        let until = Instant::now() + self.asker.patience;
        loop {
            // The same code says that too many tables are being made and that there are too many, which does not pass.
            let full = RefCell::new(None);
            self.ask(action, table, &["ResourceInUseException", FULL], &async |client| {
                let sent = request.clone().send_with(client).await;
                if let Err(error) = &sent
                    && error.code() == Some(FULL)
                {
                    *full.borrow_mut() = Some(error.message().unwrap_or(FULL).to_owned());
                }
                sent
            })?;
            let Some(message) = full.into_inner() else { return Ok(()) };
            if Instant::now() >= until {
                return Err(Error::new(Kind::Service, "the service creates no more tables")
                    .with("action", action)
                    .with("table", table)
                    .with("at", self.place())
                    .with("found", format_args!("{FULL}: {message}")));
            }
            std::thread::sleep(PAUSE);
        }
    }
}
