//! Browser at the console: signed in, with a cookie, and the text of its pages.

use bytes::Bytes;
use dialarr::http::HttpClient;
use dialarr::store::audit::Actor;
use dialarr::web::{self, auth};
use http::header::{CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use http::{Request, Response};

use super::TestApp;

pub(crate) const CONSOLE: &str = "http://localhost:3001";

/// Browser at the console of a running program.
pub(crate) struct Browser<'a> {
    app: &'a TestApp,
    cookie: Option<String>,
}

/// Response to a request.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    /// Target of a redirect.
    pub(crate) location: Option<String>,
    pub(crate) html: String,
}

impl TestApp {
    /// Returns a browser that has not signed in.
    pub(crate) fn anonymous_browser(&self) -> Browser<'_> {
        Browser { app: self, cookie: None }
    }

    /// Returns a browser in which the operator has signed in.
    pub(crate) async fn browser(&self) -> Browser<'_> {
        let link = self.sign_in_link().await;
        let mut browser = self.anonymous_browser();
        let token = browser.get(&link).await.field("token").unwrap();
        let entered = browser.post(auth::LINK_PATH, &[("token", &token)]).await;
        assert_eq!((entered.status, entered.location.as_deref()), (303, Some("/")));
        browser
    }

    /// Returns the output of `dialarr console-link`, from the path on.
    pub(crate) async fn sign_in_link(&self) -> String {
        let now = self.now();
        self.app().db.write(move |conn| auth::create_link(conn, Actor::Shell, now)).await.unwrap()
    }

    /// Sends any request to the console's listener.
    pub(crate) async fn ask_console(&self, request: Request<Bytes>) -> Response<Bytes> {
        let console =
            HttpClient::in_process(web::in_process(web::console_router(self.app().console.clone())));
        console.send(request, std::time::Duration::from_secs(20)).await.unwrap()
    }
}

impl Browser<'_> {
    /// Returns the session cookie, as `name=value`.
    pub(crate) fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    pub(crate) fn program(&self) -> &TestApp {
        self.app
    }

    /// Sets the cookie of the browser.
    pub(crate) fn with_cookie(mut self, cookie: &str) -> Self {
        self.cookie = Some(cookie.to_owned());
        self
    }

    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send(Request::get(format!("{CONSOLE}{path}")), Bytes::new()).await
    }

    /// Sends a form of one of the console's pages, with the token that the pages carry.
    pub(crate) async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let token = self.get("/keys").await.field("token").unwrap_or_default();
        let mut all = vec![("token", token.as_str())];
        all.extend(fields);
        self.post(path, &all).await
    }

    /// Sends a form unchanged.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let request = Request::post(format!("{CONSOLE}{path}"))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ORIGIN, CONSOLE);
        self.send(request, serde_urlencoded::to_string(fields).unwrap().into()).await
    }

    async fn send(&mut self, request: http::request::Builder, body: Bytes) -> Page {
        let mut request = request.header(HOST, "localhost:3001");
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        let response = self.app.ask_console(request.body(body).unwrap()).await;
        let header = |name| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        for set in response.headers().get_all(SET_COOKIE) {
            let cookie = set.to_str().unwrap().split(';').next().unwrap();
            self.cookie = (!cookie.ends_with('=')).then(|| cookie.to_owned());
        }
        Page {
            status: response.status().as_u16(),
            location: header(LOCATION),
            html: String::from_utf8(response.body().to_vec()).unwrap(),
        }
    }
}

impl Page {
    /// Returns the visible text: the words between the tags of the main part, on one line.
    pub(crate) fn text(&self) -> String {
        let main = self.html.split_once("<main").map_or(self.html.as_str(), |(_, main)| main);
        let main = main.split("</main>").next().unwrap_or_default();
        let mut words = String::new();
        for piece in main.split('<').skip(1) {
            let text = piece.split_once('>').map_or("", |(_, text)| text);
            words.push_str(text);
            words.push(' ');
        }
        let escapes = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
        let plain = escapes.into_iter().fold(words, |words, (escape, sign)| words.replace(escape, sign));
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the value of a field of a form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let (_, rest) = self.html.split_once(&format!("name=\"{name}\" value=\""))?;
        rest.split('"').next().map(str::to_owned)
    }
}
