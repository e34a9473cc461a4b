//! A minimal browser: cookies, one redirect at a time, forms.
use penstock_test_support::prelude::*;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

/// Where the sign-in at the provider begins.
pub(crate) const SIGN_IN: &str = "/oauth2/authorization/kc";

/// A browser, which resolves addresses as links on a page of the gateway.
pub(crate) struct Browser {
    client: Client,
    gateway: Url,
    /// The cookies by host and port. Real browsers ignore the port, but no two servers here share a name.
    cookies: BTreeMap<String, BTreeMap<String, String>>,
}

/// An answer to a request.
pub(crate) struct Page {
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) location: Option<Url>,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Page {
    #[track_caller]
    pub(crate) fn expect(self, status: u16, words: &str) -> Self {
        assert!(
            self.status == status && self.text.contains(words),
            "{} answered {}, not {status} {words:?}:\n{}",
            self.url,
            self.status,
            self.text
        );
        self
    }

    /// Returns the address that it redirects to.
    #[track_caller]
    pub(crate) fn redirect_location(&self) -> Url {
        self.location
            .clone()
            .unwrap_or_else(|| panic!("{} answered {}:\n{}", self.url, self.status, self.text))
    }

    /// Returns the path that it redirects to.
    #[track_caller]
    pub(crate) fn redirect_path(&self) -> String {
        self.redirect_location().path().to_owned()
    }

    /// Returns a query parameter of the address that it redirects to.
    #[track_caller]
    pub(crate) fn redirect_parameter(&self, name: &str) -> String {
        let url = self.redirect_location();
        let found = url.query_pairs().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{url} has no {name}")).1.into_owned()
    }

    /// Returns the value of the hidden field with this name.
    pub(crate) fn hidden_field(&self, name: &str) -> String {
        let (_, rest) = self.text.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    pub(crate) fn new(gateway: &str, ca_file: Option<&Path>) -> Self {
        let mut client = Client::builder().redirect(Policy::none());
        if let Some(file) = ca_file {
            let pem = std::fs::read(file).unwrap();
            client = client.add_root_certificate(reqwest::Certificate::from_pem(&pem).unwrap());
        }
        let gateway = Url::parse(gateway).unwrap();
        Self { client: client.build().unwrap(), gateway, cookies: BTreeMap::new() }
    }

    /// Returns the cookies of the gateway.
    pub(crate) fn cookies(&self) -> &BTreeMap<String, String> {
        &self.cookies[self.gateway.authority()]
    }

    pub(crate) async fn get(&mut self, url: impl AsRef<str>) -> Page {
        self.send("GET", url.as_ref(), &[], None).await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Page {
        let own = self.gateway.join(url).unwrap().origin().ascii_serialization();
        self.send("POST", url, &[("origin", &own)], Some(form)).await
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        form: Option<&str>,
    ) -> Page {
        let url = self.gateway.join(url).unwrap();
        let jar = self.cookies.entry(url.authority().to_owned()).or_default();
        let kept: Vec<_> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request =
            self.client.request(method.parse().unwrap(), url.clone()).header("accept", "text/html");
        if !kept.is_empty() {
            request = request.header(COOKIE, kept.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(form) = form {
            request = request
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form.to_owned());
        }
        let answer = request.send().await.unwrap();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
            let (name, value) = pair.split_once('=').unwrap();
            if value.is_empty() || attributes.contains("Max-Age=0") {
                jar.remove(name);
            } else {
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
        let location =
            answer.headers().get(LOCATION).map(|to| url.join(to.to_str().unwrap()).unwrap());
        Page {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            location,
            text: answer.text().await.unwrap(),
            url,
        }
    }

    /// Goes through the pages of the provider as this user, beginning at `start`. Returns the answer that redirects
    /// back to the gateway.
    pub(crate) async fn authenticate_at_provider(&mut self, start: Url, user: &str) -> Page {
        let mut url = start;
        for _ in 0..10 {
            let mut page = self.get(&url).await;
            if page.status == 200 {
                let (_, rest) =
                    page.text.split_once("action=\"").expect("the provider shows a form");
                let action = rest.split('"').next().unwrap().to_owned();
                let form = if page.text.contains("name=\"login\"") {
                    format!("prompt=login&login={user}&password=any")
                } else {
                    "prompt=consent".to_owned()
                };
                page = self.post(&action, &form).await;
            }
            url = page.redirect_location();
            if url.origin() == self.gateway.origin() {
                return page;
            }
        }
        panic!("the provider does not redirect to the gateway: {url}");
    }

    /// Signs in as this user. Returns the gateway's answer to the provider's redirect.
    pub(crate) async fn sign_in(&mut self, user: &str) -> Page {
        let begun = self.get(SIGN_IN).await;
        let back = self.authenticate_at_provider(begun.redirect_location(), user).await;
        self.get(back.redirect_location()).await
    }
}
