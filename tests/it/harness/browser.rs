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
    console: Console<'a>,
    cookie: Option<String>,
}

/// Listener of the console.
enum Console<'a> {
    InProcess(&'a TestApp),
    /// Listener of the built program, at this address.
    Served(&'a str, HttpClient),
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
        Browser { console: Console::InProcess(self), cookie: None }
    }

    /// Returns a browser in which the operator has signed in, after the first check of the connections.
    pub(crate) async fn browser(&self) -> Browser<'_> {
        self.check_connections().await;
        let link = self.sign_in_link().await;
        let mut browser = self.anonymous_browser();
        let token = browser.get(&link).await.field("token").unwrap();
        let entered = browser.post(auth::LINK_PATH, &[("token", &token)]).await;
        assert_eq!(entered.status, 303);
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

impl<'a> Browser<'a> {
    /// Returns a browser at the console of the built program, which has not signed in.
    pub(crate) fn at(address: &'a str) -> Self {
        Self { console: Console::Served(address, HttpClient::network().unwrap()), cookie: None }
    }

    pub(crate) fn program(&self) -> &'a TestApp {
        match self.console {
            Console::InProcess(app) => app,
            Console::Served(..) => panic!("the program runs in another process"),
        }
    }
}

impl Browser<'_> {
    /// Returns the session cookie, as `name=value`.
    pub(crate) fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// Sets the cookie of the browser.
    pub(crate) fn with_cookie(mut self, cookie: &str) -> Self {
        self.cookie = Some(cookie.to_owned());
        self
    }

    pub(crate) async fn get(&mut self, path: &str) -> Page {
        self.send(Request::get(self.url(path)), Bytes::new()).await
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
        let request = Request::post(self.url(path))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ORIGIN, CONSOLE);
        self.send(request, serde_urlencoded::to_string(fields).unwrap().into()).await
    }

    fn url(&self, path: &str) -> String {
        match self.console {
            Console::InProcess(_) => format!("{CONSOLE}{path}"),
            Console::Served(address, _) => format!("http://{address}{path}"),
        }
    }

    async fn send(&mut self, request: http::request::Builder, body: Bytes) -> Page {
        let mut request = request.header(HOST, "localhost:3001");
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        let request = request.body(body).unwrap();
        let response = match &self.console {
            Console::InProcess(app) => app.ask_console(request).await,
            Console::Served(_, http) => http.send(request, std::time::Duration::from_secs(60)).await.unwrap(),
        };
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
            // An image is not text.
            html: String::from_utf8_lossy(response.body()).into_owned(),
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

    /// Asserts that the page has this status and contains this text.
    #[track_caller]
    pub(crate) fn assert_shows(&self, status: u16, text: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        assert!(self.text().contains(text), "{}", self.text());
    }

    /// Returns the value of a field of a form.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let (_, rest) = self.html.split_once(&format!("name=\"{name}\" value=\""))?;
        rest.split('"').next().map(str::to_owned)
    }
}
