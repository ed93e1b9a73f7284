//! As much of HTTP/1.1 as it takes to hand out one page (RFC 9112).

/// Where the page is.
const PATH: &str = "/metrics";
/// The text format of Prometheus.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The page.
    Page,
    /// Nothing that there is, with this status.
    Nothing(&'static str),
}

/// Where the head of a request ends, if all of it is there.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let ends =
        |end: &[u8]| bytes.windows(end.len()).position(|window| window == end).map(|at| at + end.len());
    [ends(b"\r\n\r\n"), ends(b"\n\n")].into_iter().flatten().min()
}

/// What the head of a request wants.
pub(super) fn read(head: &[u8]) -> Wish {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.trim_ascii_end().split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Wish::Nothing("400 Bad Request") };
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        _ if !version.starts_with(b"HTTP/1.") => Wish::Nothing("400 Bad Request"),
        (b"GET", path) if path == PATH.as_bytes() => Wish::Page,
        (b"GET", _) => Wish::Nothing("404 Not Found"),
        _ => Wish::Nothing("405 Method Not Allowed"),
    }
}

/// The page, and the end of the connection.
pub(super) fn page(text: &str) -> Vec<u8> {
    answer("200 OK", TYPE, text)
}

/// The end of the connection, with this status.
pub(super) fn nothing(status: &str) -> Vec<u8> {
    answer(status, "text/plain; charset=utf-8", &format!("{status}: there is {PATH} here\n"))
}

fn answer(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    (head + body).into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[GET /metrics.1\r\n]{0,100}") {
            for bytes in [&bytes[..], text.as_bytes()] {
                prop_assert!(end_of_head(bytes).is_none_or(|end| end <= bytes.len()));
                read(bytes);
            }
        }
    }

    #[test]
    fn one_page_is_handed_out() {
        for (head, wish) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Wish::Page),
            ("GET /metrics?a=b HTTP/1.0\n\n", Wish::Page),
            ("GET / HTTP/1.1\r\n\r\n", Wish::Nothing("404 Not Found")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Wish::Nothing("405 Method Not Allowed")),
            ("GET /metrics\r\n\r\n", Wish::Nothing("400 Bad Request")),
            ("GET /metrics SSH-2.0\r\n\r\n", Wish::Nothing("400 Bad Request")),
            ("\r\n\r\n", Wish::Nothing("400 Bad Request")),
        ] {
            assert_eq!(end_of_head(head.as_bytes()), Some(head.len()), "{head}");
            assert_eq!(read(head.as_bytes()), wish, "{head}");
        }
        assert_eq!(end_of_head(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }

    #[test]
    fn the_length_of_the_page_is_said() {
        let bytes = page("a 1\n");
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n")
                && text.ends_with("\r\nContent-Length: 4\r\nConnection: close\r\n\r\na 1\n"),
            "{text}"
        );
        assert!(
            String::from_utf8(nothing("404 Not Found")).unwrap().starts_with("HTTP/1.1 404 Not Found\r\n")
        );
    }
}
