//! What the command line says of AWS, and the connection that is made when something first needs it.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use dynamorph::aws::s3::S3;
use dynamorph::aws::{self, Aws};
use dynamorph::error::{Error, Kind};
use dynamorph::store::{Location, OutputFolder};

use crate::cli::args::Service;

/// The connections of one command.
pub(crate) struct Connections {
    options: aws::Options,
    s3: OnceCell<Arc<S3>>,
}

impl Connections {
    pub(crate) fn new(service: &Service) -> Self {
        let Service { endpoint_url, s3_endpoint_url, path_style, bucket_owner, region, profile } = service.clone();
        let options = aws::Options { endpoint_url, s3_endpoint_url, path_style, bucket_owner, region, profile, ..aws::Options::default() };
        Self { options, s3: OnceCell::new() }
    }

    /// What the connection to a service is made from.
    pub(crate) fn options(&self) -> aws::Options {
        self.options.clone()
    }

    /// The connection to S3. Credentials are looked for now, so that their absence is told before anything is read.
    pub(crate) fn s3(&self) -> Result<Arc<S3>, Error> {
        if let Some(s3) = self.s3.get() {
            return Ok(Arc::clone(s3));
        }
        let aws = Aws::connect(&self.options)?;
        aws.check_credentials()?;
        Ok(Arc::clone(self.s3.get_or_init(|| S3::connect(aws))))
    }

    /// The place that `text` names: `s3://BUCKET/PREFIX` or a path of this machine.
    pub(crate) fn location(&self, text: &str) -> Result<Location, Error> {
        if text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("s3:")) && !text.starts_with("s3://") && !Path::new(text).exists() {
            return Err(Error::new(Kind::Usage, "no such file or folder, and no address in S3 either")
                .with("found", text)
                .with("expected", "s3://BUCKET/PREFIX"));
        }
        Ok(Location::in_s3(text, || self.s3())?.unwrap_or_else(|| Location::Local(Path::new(text).to_owned())))
    }

    /// The folder for output that `text` names, in the same way.
    pub(crate) fn output(&self, text: &str) -> Result<OutputFolder, Error> {
        Ok(OutputFolder::in_s3(text, || self.s3())?.unwrap_or_else(|| OutputFolder::Local(Path::new(text).to_owned())))
    }
}
