//! The one tokio runtime and the configuration of AWS: credentials, region, endpoint, time limits.
//!
//! The rest of the program is not asynchronous; whoever talks to a service blocks on this runtime from a thread of its own,
//! never from the pool. This file knows nothing of what is asked of a service, and sends nothing twice: who asks knows what may be.

pub(crate) mod pauses;

#[cfg(feature = "dynamodb")]
pub mod dynamodb;
#[cfg(feature = "s3")]
pub mod s3;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_types::sdk_config::SharedHttpClient;
use aws_types::service_config::ServiceConfigKey;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::error::{Error, Kind, Result};

/// Where to connect, and as whom. What is left out comes from AWS's usual chain: environment, profile, container, instance.
#[derive(Clone, Debug)]
pub struct Options {
    /// The region, such as `eu-west-1`.
    pub region: Option<String>,
    /// The profile in AWS's own configuration files.
    pub profile: Option<String>,
    /// Another address than the service's own, such as `http://localhost:8000`.
    pub endpoint_url: Option<String>,
    /// The same for S3 alone; it wins over `endpoint_url` there.
    pub s3_endpoint_url: Option<String>,
    /// Puts a bucket's name into the path of an address, not into the host name. S3 at another address is always asked so.
    pub path_style: bool,
    /// The account that must own every bucket, sent with each request to S3; S3 refuses the request where another one does.
    pub bucket_owner: Option<String>,
    /// Credentials that are known already, in place of the chain.
    pub credentials: Option<StaticCredentials>,
    /// Asks `DynamoDB` at its own address, also where the environment or a profile says another one. An `endpoint_url` wins.
    pub own_address: bool,
    /// The longest that one attempt may take, connecting included; 30 seconds by default.
    pub attempt_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            region: None,
            profile: None,
            endpoint_url: None,
            s3_endpoint_url: None,
            path_style: false,
            bucket_owner: None,
            credentials: None,
            own_address: false,
            attempt_timeout: Duration::from_secs(30),
        }
    }
}

/// An access key. Its `Debug` text leaves the secret out.
#[derive(Clone)]
pub struct StaticCredentials {
    /// The key's id.
    pub access_key_id: String,
    /// The key's secret.
    pub secret_access_key: String,
}

impl fmt::Debug for StaticCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticCredentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// The service's name in variables and profiles.
#[cfg(feature = "dynamodb")]
const DYNAMODB: &str = "DynamoDB";

/// The longest that connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// Threads that sign, encrypt and wait. Measured by others for this SDK: 6 to 12 µs of CPU a small item, so two carry more
/// than a table usually takes.
const THREADS: usize = 2;

/// A runtime with a configuration. It must be dropped outside the runtime, so tasks hold clients and never this.
#[derive(Debug)]
pub struct Aws {
    runtime: Runtime,
    config: SdkConfig,
    /// The profile that was named.
    profile: Option<String>,
    /// Other addresses of `DynamoDB`, which environment or profile may say, do not count.
    #[cfg(feature = "dynamodb")]
    own_address: bool,
    #[cfg(feature = "s3")]
    options: Options,
}

impl Aws {
    /// Starts the runtime and reads the configuration. Nothing is sent but what the chain itself asks for; credentials are
    /// looked for when the first request is signed.
    ///
    /// # Errors
    /// Kind `Usage` when no region is known, kind `Service` when the runtime cannot be started.
    pub fn connect(options: &Options) -> Result<Arc<Self>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("aws")
            .enable_all()
            .build()
            .map_err(|cause| Error::new(Kind::Service, "cannot start the threads that talk to AWS").caused_by(cause))?;
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(options.attempt_timeout).build();
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(aws_smithy_http_client::Builder::new().tls_provider(Provider::rustls(CryptoMode::Ring)).build_https())
            .retry_config(RetryConfig::disabled())
            // The limit on the attempt says the same more simply.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(timeouts);
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &options.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(url) = &options.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        if let Some(StaticCredentials { access_key_id, secret_access_key }) = &options.credentials {
            loader = loader.credentials_provider(Credentials::new(access_key_id, secret_access_key, None, None, "given"));
        }
        let mut config = runtime.block_on(loader.load());
        if let (Some(profile), None) = (&options.profile, &options.credentials) {
            // Who names a profile means it, also where the environment holds keys; so does the AWS CLI.
            let mut surroundings = ProviderConfig::without_region().with_region(config.region().cloned());
            if let Some(client) = config.http_client() {
                surroundings = surroundings.with_http_client(client);
            }
            let provider = ProfileFileCredentialsProvider::builder().configure(&surroundings).profile_name(profile).build();
            config = config.into_builder().credentials_provider(SharedCredentialsProvider::new(provider)).build();
        }
        if config.region().is_none() {
            return Err(Error::new(Kind::Usage, "no AWS region is known")
                .with("hint", "name one with --region, AWS_REGION, or `region` in the profile"));
        }
        Ok(Arc::new(Self {
            runtime,
            config,
            profile: options.profile.clone(),
            #[cfg(feature = "dynamodb")]
            own_address: options.own_address && options.endpoint_url.is_none(),
            #[cfg(feature = "s3")]
            options: options.clone(),
        }))
    }

    /// Looks for credentials now, so that their absence is told before anything is read.
    ///
    /// # Errors
    /// Kind `Service`, with what the chain found.
    pub fn check_credentials(&self) -> Result<()> {
        let missing = || match &self.profile {
            None => Error::new(Kind::Service, "no AWS credentials")
                .with("hint", "set a profile with --profile or AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
            Some(profile) => Error::new(Kind::Service, "the AWS profile gives no credentials")
                .with("profile", profile)
                .with("hint", "look for it in ~/.aws/config and ~/.aws/credentials, and for its login if it has one"),
        };
        let provider = self.config.credentials_provider().ok_or_else(missing)?;
        match self.runtime.block_on(provider.provide_credentials()) {
            Ok(_) => Ok(()),
            Err(cause) => Err(missing().caused_by(cause)),
        }
    }

    /// A client of `DynamoDB`; it is cheap to clone.
    #[cfg(feature = "dynamodb")]
    #[must_use]
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.config);
        config.set_http_client(self.http_client(self.dynamodb_endpoint().as_deref()));
        if self.own_address {
            config.set_endpoint_url(None);
        }
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// Where requests to `DynamoDB` go, in words for a message: `region eu-west-1`, or the other address.
    #[cfg(feature = "dynamodb")]
    #[must_use]
    pub fn place(&self) -> String {
        self.place_at(self.dynamodb_endpoint().as_deref())
    }

    #[cfg(feature = "dynamodb")]
    fn dynamodb_endpoint(&self) -> Option<String> {
        if self.own_address { None } else { self.endpoint(DYNAMODB) }
    }

    /// The region of `DynamoDB`, and its address where that is not the service's own.
    #[cfg(feature = "dynamodb")]
    pub(crate) fn dynamodb_address(&self) -> (&str, Option<String>) {
        (self.region(), self.dynamodb_endpoint())
    }

    /// The address of a service where it is not the service's own, as the SDK finds it.
    fn endpoint(&self, service: &str) -> Option<String> {
        let general = self.config.endpoint_url().map(str::to_owned);
        if self.config.get_origin("endpoint_url").is_client_config() {
            return general;
        }
        let key = ServiceConfigKey::builder().service_id(service).env("AWS_ENDPOINT_URL").profile("endpoint_url").build().ok()?;
        self.config.service_config().and_then(|settings| settings.load_config(key)).or(general)
    }

    /// The connections to this address. Those without TLS ask for no root certificates, which a machine that talks to an emulator
    /// may lack.
    fn http_client(&self, endpoint: Option<&str>) -> Option<SharedHttpClient> {
        if endpoint.is_some_and(|url| url.starts_with("http://")) {
            Some(aws_smithy_http_client::Builder::new().build_http())
        } else {
            self.config.http_client()
        }
    }

    /// The region that is talked to.
    #[must_use]
    pub fn region(&self) -> &str {
        self.config.region().map_or("", AsRef::as_ref)
    }

    fn place_at(&self, endpoint: Option<&str>) -> String {
        let region = self.region();
        match endpoint {
            Some(url) => format!("{url} (region {region})"),
            None => format!("region {region}"),
        }
    }

    /// Waits for a future on the calling thread, which must be no thread of a runtime.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Starts a task that goes on by itself.
    pub(crate) fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.runtime.spawn(future)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place_and_never_the_secret() {
        let credentials = StaticCredentials { access_key_id: "AKID".to_owned(), secret_access_key: "hush".to_owned() };
        let options = Options {
            region: Some("eu-west-1".to_owned()),
            endpoint_url: Some("http://localhost:1".to_owned()),
            credentials: Some(credentials),
            ..Options::default()
        };
        assert!(!format!("{options:?}").contains("hush"));
        let aws = Aws::connect(&options).unwrap();
        assert_eq!(aws.place(), "http://localhost:1 (region eu-west-1)");
        assert!(!format!("{aws:?}").contains("hush"));
        aws.check_credentials().unwrap();
    }
}
