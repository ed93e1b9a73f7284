//! As much of HTTP/1.1 as it takes to hand out a few pages (RFC 9112).

use std::net::IpAddr;

/// The head of a request, as far as anybody is interested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// Without what is asked of it.
    pub(super) path: &'a [u8],
    /// What is asked of it, behind the question mark.
    pub(super) query: &'a [u8],
    /// The host that the client means to ask, with its port. Every browser names one.
    pub(super) host: Option<&'a str>,
    /// The number of the last event that a browser has heard, when it comes again (HTML, server-sent events).
    pub(super) last_event: Option<u64>,
}

/// Where the head of a request ends, if all of it is there.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let ends =
        |end: &[u8]| bytes.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    [ends(b"\r\n\r\n"), ends(b"\n\n")].into_iter().flatten().min()
}

/// What the head of a request asks for.
///
/// # Errors
/// The status of what is none that can be answered.
pub(super) fn read(head: &[u8]) -> Result<Request<'_>, &'static str> {
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let line = lines.next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Err("400 Bad Request") };
    if !version.starts_with(b"HTTP/1.") {
        return Err("400 Bad Request");
    }
    if method != b"GET" {
        return Err("405 Method Not Allowed");
    }
    let mut parts = target.splitn(2, |byte| *byte == b'?');
    let (path, query) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (mut host, mut last_event) = (None, None);
    for line in lines {
        let Some((name, value)) = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':')) else {
            continue;
        };
        if name.eq_ignore_ascii_case("host") && host.replace(value.trim()).is_some() {
            return Err("400 Bad Request");
        }
        if name.eq_ignore_ascii_case("last-event-id") {
            last_event = last_event.or_else(|| value.trim().parse().ok());
        }
    }
    Ok(Request { path, query, host, last_event })
}

impl<'a> Request<'a> {
    /// Returns `true` if the client means this host: by an IP address, as `localhost`, or by one of
    /// `names`. A page of a stranger whose name resolves to an address of this host (DNS rebinding)
    /// has the browser send that name, and must not read what is here.
    pub(super) fn is_for(&self, names: &[String]) -> bool {
        let Some(host) = self.host else { return true };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_known = |known: &str| known.eq_ignore_ascii_case(name);
        name.parse::<IpAddr>().is_ok() || is_known("localhost") || names.iter().any(|known| is_known(known))
    }

    /// What is asked under this name.
    pub(super) fn asked(&self, name: &str) -> Option<&'a [u8]> {
        let parts = self.query.split(|byte| *byte == b'&');
        parts.filter_map(|part| part.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).next()
    }
}

/// A page, and the end of the connection; `more` are further lines of its head.
pub(super) fn page(kind: &str, more: &str, text: &str) -> Vec<u8> {
    answer("200 OK", kind, more, text)
}

/// The end of the connection, with this status, and why.
pub(super) fn nothing(status: &str, why: &str) -> Vec<u8> {
    answer(status, "text/plain; charset=utf-8", "", &format!("{status}: {why}\n"))
}

fn answer(status: &str, kind: &str, more: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + body).into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_safe(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            text in "[GET /metrics?=&HTP.1\r\n]{0,100}",
        ) {
            for bytes in [&bytes[..], text.as_bytes(), format!("GET /{text} HTTP/1.1\n{text}").as_bytes()] {
                prop_assert!(end_of_head(bytes).is_none_or(|end| end <= bytes.len()));
                if let Ok(request) = read(bytes) {
                    request.asked("token");
                }
            }
        }
    }

    #[test]
    fn requests_are_read() {
        let plain = |path: &'static str, host| {
            Ok(Request { path: path.as_bytes(), query: b"", host, last_event: None })
        };
        for (head, request) in [
            ("GET /metrics HTTP/1.1\r\nHost: x:1\r\n\r\n", plain("/metrics", Some("x:1"))),
            ("GET / HTTP/1.0\n\n", plain("/", None)),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", Err("400 Bad Request")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Err("405 Method Not Allowed")),
            ("GET /metrics\r\n\r\n", Err("400 Bad Request")),
            ("GET /metrics SSH-2.0\r\n\r\n", Err("400 Bad Request")),
            ("\r\n\r\n", Err("400 Bad Request")),
        ] {
            assert_eq!(end_of_head(head.as_bytes()), Some(head.len()), "{head}");
            assert_eq!(read(head.as_bytes()), request, "{head}");
        }
        assert_eq!(end_of_head(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }

    #[test]
    fn request_for_a_host_of_another_name_is_refused() {
        let names = ["node7".to_owned(), "metrics.example".to_owned()];
        let is_for = |host: &str| {
            read(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap().is_for(&names)
        };
        for host in [
            "127.0.0.1:9100",
            "10.1.2.3",
            "[::1]:9100",
            "[fe80::1]",
            "localhost:1",
            "LocalHost.",
            "node7:9100",
            "NODE7",
            "metrics.example:80",
            "metrics.example.",
        ] {
            assert!(is_for(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9100",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9100",
            "node7.evil.example",
            "",
            ":9100",
            "[evil.example]",
            "localhost@evil.example",
            "xn--localhost",
        ] {
            assert!(!is_for(host), "{host}");
        }
        assert!(read(b"GET / HTTP/1.0\r\n\r\n").unwrap().is_for(&[]), "no browser leaves it out");
    }

    #[test]
    fn questions_and_events_are_read() {
        let head = b"GET /events?a=1&token=xyz&tokens=2 HTTP/1.1\r\nlast-event-ID: 17\r\n\r\n";
        let request = read(head).unwrap();
        assert_eq!((request.path, request.last_event), (&b"/events"[..], Some(17)));
        let asked = ["a", "token", "tokens", "b"].map(|name| request.asked(name));
        assert_eq!(asked, [Some(&b"1"[..]), Some(b"xyz"), Some(b"2"), None]);
        assert_eq!(read(b"GET / HTTP/1.1\nLast-Event-ID: -1\n\n").unwrap().last_event, None);
    }

    #[test]
    fn the_length_of_the_page_is_said() {
        let text = String::from_utf8(page("text/plain", "A: b\r\n", "a 1\n")).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nA: b\r\n")
                && text.ends_with("\r\nContent-Length: 4\r\nConnection: close\r\n\r\na 1\n"),
            "{text}"
        );
        let text = String::from_utf8(nothing("404 Not Found", "so")).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 404 Not Found\r\n") && text.ends_with("404 Not Found: so\n"),
            "{text}"
        );
    }
}
