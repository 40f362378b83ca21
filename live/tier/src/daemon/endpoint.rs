//! Where measurements can be read: a loopback port, or a Unix socket.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A port that only programs of this machine reach.
    Port(SocketAddr),
    /// A Unix socket, for its owner and group.
    Socket(PathBuf),
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Endpoint::Socket(path.into()));
        }
        let address: Option<SocketAddr> = text.parse().ok();
        match address {
            Some(address) if address.ip().is_loopback() => Ok(Endpoint::Port(address)),
            Some(_) => Err(format!(
                "{text} is reached from other machines: give a loopback port such as 127.0.0.1:9464, and put a proxy with a password before it"
            )),
            None => Err(format!(
                "`{text}` is neither a loopback port such as 127.0.0.1:9464 nor a Unix socket such as /run/varve/metrics.sock"
            )),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Port(address) => write!(f, "http://{address}/metrics"),
            Endpoint::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Kept short: one request at a time is answered.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request that is read, bytes.
const LONGEST: usize = 8192;
/// The type of OpenMetrics 1.0.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers requests.
#[derive(Debug)]
pub struct MetricsListener {
    socket: Listening,
    /// A socket's file, removed at the end.
    file: Option<PathBuf>,
}

#[derive(Debug)]
enum Listening {
    Port(TcpListener),
    Socket(UnixListener),
}

impl MetricsListener {
    /// Listens.
    ///
    /// # Errors
    /// A line: the port or the socket is in use, or may not be had.
    pub fn begin(at: &Endpoint) -> Result<MetricsListener, String> {
        let no = |e: io::Error| format!("--metrics {at}: {e}");
        Ok(match at {
            Endpoint::Port(address) => {
                let listener = TcpListener::bind(address).map_err(no)?;
                listener.set_nonblocking(true).map_err(no)?;
                MetricsListener {
                    socket: Listening::Port(listener),
                    file: None,
                }
            }
            Endpoint::Socket(path) => {
                remove_if_left(path).map_err(no)?;
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).map_err(no)?;
                }
                let listener = UnixListener::bind(path).map_err(no)?;
                let file = Some(path.clone());
                listener.set_nonblocking(true).map_err(no)?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(no)?;
                MetricsListener {
                    socket: Listening::Socket(listener),
                    file,
                }
            }
        })
    }

    /// The port, where it is one.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Listening::Port(listener) => listener.local_addr().ok().map(|a| a.port()),
            Listening::Socket(_) => None,
        }
    }

    /// Answers those who ask now; `metrics` makes the text. What goes wrong with one of them is its own matter.
    pub fn answer(&self, metrics: &dyn Fn() -> String) {
        loop {
            let answered = match &self.socket {
                Listening::Port(listener) => listener.accept().map(|(stream, _)| {
                    let _ = stream.set_nonblocking(false);
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    let _ = stream.set_write_timeout(Some(PATIENCE));
                    serve(stream, metrics)
                }),
                Listening::Socket(listener) => listener.accept().map(|(stream, _)| {
                    let _ = stream.set_nonblocking(false);
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    let _ = stream.set_write_timeout(Some(PATIENCE));
                    serve(stream, metrics)
                }),
            };
            if answered.is_err() {
                return;
            }
        }
    }
}

impl Drop for MetricsListener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

/// Removes the socket of a daemon that was killed. One that answers is left, and so is what is no socket.
fn remove_if_left(path: &PathBuf) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    match is_socket && UnixStream::connect(path).is_err() {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

fn serve(mut stream: impl Read + Write, metrics: &dyn Fn() -> String) -> io::Result<()> {
    let begun = Instant::now();
    let mut request = Vec::new();
    let mut part = [0u8; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read(&mut part)?;
        request.extend_from_slice(&part[..read]);
        if read == 0 || request.len() > LONGEST || begun.elapsed() > PATIENCE {
            return Ok(());
        }
    }
    let line = String::from_utf8_lossy(&request);
    let mut words = line.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        (Some("GET" | "HEAD"), "/metrics") => ("200 OK", METRICS, metrics()),
        (Some("GET" | "HEAD"), _) => (
            "404 Not Found",
            "text/plain; charset=utf-8",
            "measurements are at /metrics\n".into(),
        ),
        _ => (
            "405 Method Not Allowed",
            "text/plain; charset=utf-8",
            "only GET\n".into(),
        ),
    };
    let length = body.len();
    let body = if method == Some("HEAD") { "" } else { &body };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_this_machine() {
        let of = |text: &str| text.parse::<Endpoint>();
        assert!(matches!(of("127.0.0.1:9464"), Ok(Endpoint::Port(_))));
        assert!(matches!(of("[::1]:9464"), Ok(Endpoint::Port(_))));
        assert_eq!(of("unix:/run/m.sock"), of("/run/m.sock"));
        assert!(of("0.0.0.0:9464").unwrap_err().contains("loopback"));
        assert!(of("9464").unwrap_err().contains("neither"));
    }

    fn ask(path: &PathBuf, listener: &MetricsListener, request: &str) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        listener.answer(&|| "varve_x 1\n# EOF\n".into());
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn requests_are_answered_and_the_socket_goes_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/metrics.sock");
        let listener = MetricsListener::begin(&Endpoint::Socket(path.clone())).unwrap();
        let got = ask(&path, &listener, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(got.ends_with("\r\n\r\nvarve_x 1\n# EOF\n"), "{got}");
        let got = ask(&path, &listener, "GET / HTTP/1.1\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 404"), "{got}");
        let got = ask(&path, &listener, "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 405"), "{got}");
        let second = MetricsListener::begin(&Endpoint::Socket(path.clone()));
        assert!(second.unwrap_err().contains("--metrics unix:"));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_was_left_is_taken_over_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(MetricsListener::begin(&Endpoint::Socket(path.clone())).unwrap());
        fs::write(&path, "mine").unwrap();
        assert!(MetricsListener::begin(&Endpoint::Socket(path.clone())).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
