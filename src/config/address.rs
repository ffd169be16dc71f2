//! What the address of an endpoint says about it. Pure.

use std::borrow::Cow;

use url::Url;

use super::options::BaseUrl;
use super::providers::PROVIDERS;

/// The base URL of an Azure resource without its API path is completed.
pub(super) fn completed<'u>(provider: &str, base_url: &'u str) -> Cow<'u, str> {
    let path = Url::parse(base_url)
        .map(|url| url.path().trim_matches('/').to_owned())
        .unwrap_or_default();
    match path.as_str() {
        "" if provider == "azure" && !base_url.is_empty() => {
            Cow::Owned(format!("{base_url}/openai/v1"))
        }
        "openai" if provider == "azure" => Cow::Owned(format!("{base_url}/v1")),
        _ => Cow::Borrowed(base_url),
    }
}

/// The beginning and the end of customers' hosts, by provider.
const CUSTOMERS: [(&str, &str, &str); 3] = [
    ("", ".openai.azure.com", "azure"),
    ("bedrock-runtime.", ".amazonaws.com", "bedrock"),
    ("", "-aiplatform.googleapis.com", "vertex"),
];

/// The hosted provider at this host, whatever the path.
pub(super) fn provider_at(url: &BaseUrl) -> Option<&'static str> {
    let host = host(url.as_str())?;
    let is_its =
        |(begin, end, _): &&(&str, &str, &str)| host.starts_with(begin) && host.ends_with(end);
    if let Some((_, _, provider)) = CUSTOMERS.iter().find(is_its) {
        return Some(*provider);
    }
    let provider = PROVIDERS
        .iter()
        .find(|provider| self::host(provider.base_url).as_deref() == Some(&host))?;
    (!provider.is_local()).then_some(provider.name)
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
