//! One user of a site: asks for pages, keeps cookies and values, and judges answers.

use std::sync::Arc;
use std::time::Duration;

use whyso_http::{
    AnswerScanner, Body, BodyReader, CookieJar, Expect, Method, Redirect, Request, Take, Walk, Wish, between,
    encode_form,
};

use crate::driver::{Command, Driver, Expects, Kind, Next, Reply, Turn};
use crate::http::Plan;
use crate::outcome::{Cause, ErrorCode, HttpProblem};

const FORM_TYPE: &str = "application/x-www-form-urlencoded";
/// Pause after a connection that could not be opened, so that a site that is down is not asked without rest.
const NO_CONNECTION_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct HttpDriver {
    plan: Arc<Plan>,
    walk: Walk,
    values: Vec<Vec<u8>>,
    cookies: CookieJar,
    reader: BodyReader,
    page: usize,
    /// Of the request that is under way: after a redirect, those that follow from it.
    method: Method,
    path: Vec<u8>,
    /// Content of the request's body, where it has one.
    body: Option<Vec<u8>>,
    spare_body: Vec<u8>,
    redirects: u32,
    step: Step,
    /// The connection was opened within this transaction.
    is_fresh: bool,
    was_retried: bool,
    /// The server closes the connection after the last answer.
    is_used_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A request is due, or under way.
    Request,
    /// The answer was a redirect, which is followed.
    Redirect,
    /// The transaction ends without counting, after a pause.
    GivenUp,
}

impl HttpDriver {
    pub(crate) fn new(plan: Arc<Plan>, user: u64) -> HttpDriver {
        let scenario = &plan.spec.scenario;
        HttpDriver {
            walk: Walk::new(plan.spec.seed, user),
            values: vec![Vec::new(); scenario.value_names.len()],
            cookies: CookieJar::new(),
            reader: BodyReader::new(),
            page: 0,
            method: Method::Get,
            path: Vec::new(),
            body: None,
            spare_body: Vec::new(),
            redirects: 0,
            step: Step::Request,
            is_fresh: false,
            was_retried: false,
            is_used_up: false,
            plan,
        }
    }

    /// Writes path and body of the page's request.
    fn prepare(&mut self) {
        let page = &self.plan.spec.scenario.pages[self.page];
        self.method = page.method;
        self.path.clear();
        page.path.write_path(&self.values, &mut self.path);
        let mut body = self.body.take().unwrap_or_else(|| std::mem::take(&mut self.spare_body));
        body.clear();
        match &page.body {
            None => {
                self.spare_body = body;
                return;
            }
            Some(Body::Text { text, .. }) => text.write(&self.values, &mut body),
            Some(Body::Form(fields)) => {
                for (number, (name, value)) in fields.iter().enumerate() {
                    if number > 0 {
                        body.push(b'&');
                    }
                    encode_form(&mut body, name.as_bytes());
                    body.push(b'=');
                    value.write_form(&self.values, &mut body);
                }
            }
        }
        self.body = Some(body);
    }

    fn send(&mut self, out: &mut Vec<u8>) -> Next {
        let spec = &self.plan.spec;
        let page = &spec.scenario.pages[self.page];
        let content_type = match &page.body {
            Some(Body::Text { content_type, .. }) => content_type.as_str(),
            _ => FORM_TYPE,
        };
        let request = Request {
            method: self.method,
            path: &self.path,
            authority: &self.plan.authority,
            headers: &spec.scenario.headers,
            more_headers: &page.headers,
            cookies: &self.cookies,
            body: self.body.as_deref().map(|body| (content_type, body)),
            keeps_connection: spec.keeps_connections,
        };
        request.encode(out);
        self.step = Step::Request;
        let wish = Wish { is_head: self.method == Method::Head, keeps_body: !page.takes.is_empty() };
        let expects = Expects::Page { wish, keeps_connection: spec.keeps_connections };
        Next::Send(Command { kind: Kind::One(self.page as u16), expects, captures: false })
    }

    fn end(&self, counted: bool) -> Next {
        Next::Done { transaction: self.page as u16, counted }
    }

    /// The connection was lost with the request, or there is none.
    #[cold]
    fn lost(&mut self, code: ErrorCode) -> Next {
        if code.is_problem(HttpProblem::NoConnection) || code.is_problem(HttpProblem::Tls) {
            self.step = Step::GivenUp;
            return Next::Pause(NO_CONNECTION_PAUSE);
        }
        // A server may close a connection that it has kept open just as a request is sent (RFC 9112, 9.3.1).
        let may_retry = code.is_problem(HttpProblem::ClosedBefore) && self.method.is_safe();
        if may_retry && !self.is_fresh && !self.was_retried {
            self.was_retried = true;
            self.is_used_up = true;
            return Next::Again(code);
        }
        self.end(false)
    }

    /// Gets ready to follow a redirect.
    fn follow(&mut self, status: u16, location: &[u8]) -> Result<(), ErrorCode> {
        let spec = &self.plan.spec;
        self.redirects += 1;
        if self.redirects > spec.scenario.redirects_max {
            return Err(ErrorCode::of_problem(HttpProblem::TooManyRedirects));
        }
        let from = String::from_utf8_lossy(&self.path);
        match spec.site.follow(&from, location) {
            Redirect::SameSite(path) => {
                self.path.clear();
                self.path.extend_from_slice(path.as_bytes());
            }
            Redirect::OtherSite => return Err(ErrorCode::of_problem(HttpProblem::OtherSite)),
            Redirect::Unreadable => return Err(ErrorCode::of_problem(HttpProblem::NotUnderstood)),
        }
        // As browsers do it (RFC 9110, 15.4): only 307 and 308 send the same request again.
        if !matches!(status, 307 | 308) && self.method != Method::Head {
            self.method = Method::Get;
            if let Some(body) = self.body.take() {
                self.spare_body = body;
            }
        }
        self.step = Step::Redirect;
        Ok(())
    }
}

impl Driver for HttpDriver {
    fn begin(&mut self, number: u64, by_arrival: bool) {
        let scenario = &self.plan.spec.scenario;
        self.page = self.walk.next_page(scenario, number);
        if by_arrival && self.plan.is_mix {
            self.page = self.plan.page_of_arrival(number);
        }
        self.walk.draw_values(scenario, number, &mut self.values);
        self.redirects = 0;
        self.step = Step::Request;
        (self.is_fresh, self.was_retried, self.is_used_up) = (false, false, false);
        self.prepare();
    }

    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        match turn.reply {
            Reply::Nothing if self.step == Step::GivenUp => self.end(false),
            Reply::Nothing if self.is_used_up => Next::Reconnect,
            Reply::Nothing => self.send(turn.out),
            Reply::Connected { .. } if self.step == Step::GivenUp => self.end(false),
            Reply::Connected { .. } => {
                (self.is_fresh, self.is_used_up) = (true, false);
                self.send(turn.out)
            }
            Reply::Fine(_) if self.step == Step::Redirect && self.is_used_up => Next::Reconnect,
            Reply::Fine(_) if self.step == Step::Redirect => {
                self.is_fresh = false;
                self.send(turn.out)
            }
            Reply::Fine(_) => self.end(true),
            Reply::Error { .. } => self.end(false),
            Reply::Lost { code, .. } => self.lost(code),
            Reply::Prepared { .. } => {
                let message = "a statement was prepared over HTTP, which has none".to_string();
                Next::Fail { cause: Cause::Driver, message }
            }
        }
    }

    fn judge(&mut self, answer: &AnswerScanner) -> Result<(), ErrorCode> {
        let plan = self.plan.clone();
        answer.cookies().for_each(|cookie| self.cookies.set(cookie));
        self.is_used_up = answer.closes() || !plan.spec.keeps_connections;
        let (status, page) = (answer.status(), &plan.spec.scenario.pages[self.page]);
        let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
        let is_good = match page.expect {
            Expect::Status(expected) => status == expected,
            Expect::Good => matches!(status, 200..=299 | 304),
        };
        if !is_good {
            let follows = is_redirect && plan.spec.scenario.redirects_max > 0;
            return match answer.location().filter(|_| follows) {
                Some(location) => self.follow(status, location),
                None if is_redirect && page.expect == Expect::Good && !follows => Ok(()),
                None => Err(ErrorCode::of_status(status)),
            };
        }
        if page.takes.is_empty() {
            return Ok(());
        }
        let body = self.reader.read(answer.encoding(), answer.body());
        for Take { value, after, before } in &page.takes {
            let Some(text) = between(body, after, before) else {
                return Err(ErrorCode::of_problem(HttpProblem::ValueNotFound));
            };
            let value = &mut self.values[*value];
            value.clear();
            value.extend_from_slice(text);
        }
        Ok(())
    }

    fn due_ns(&self, number: u64, before_due_ns: i64, ended_ns: i64) -> Option<i64> {
        let scenario = &self.plan.spec.scenario;
        let after = |from_ns: i64, time: Duration| {
            from_ns.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
        };
        let thought = self.walk.think(scenario, number).map(|think| after(ended_ns, think));
        let cycled = self.walk.cycle(scenario).map(|cycle| after(before_due_ns, cycle));
        thought.max(cycled)
    }

    fn last_sent(&self) -> String {
        format!("{} {}", self.method, String::from_utf8_lossy(&self.path))
    }
}
