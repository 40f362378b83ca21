//! Servers on threads of their own, and clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use varve_serve::{Cache, Host, Limits, Reference, Server, Settings, StoreError, Traffic};

/// A server on a thread of its own.
pub struct Running {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Traffic>>,
}

/// Stores that are maps.
pub struct Maps(pub Limits);

impl Host for Maps {
    type Store = Reference;

    fn open(&self, _shard: usize) -> Result<Cache<Reference>, StoreError> {
        Cache::new(Reference::default(), self.0, varve_serve::seconds())
    }
}

pub fn start(settings: Settings) -> Running {
    start_with(settings, Maps(Limits::default()))
}

pub fn start_with(settings: Settings, host: impl Host + Send + 'static) -> Running {
    let server = Server::bind(settings).unwrap();
    let (address, stop) = (server.address().unwrap(), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || server.run(&host, &flag).unwrap());
    Running {
        address,
        stop,
        thread: Some(thread),
    }
}

impl Running {
    pub fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    pub fn connect(&self) -> Client {
        Client(BufReader::new(self.stream()))
    }

    /// Ends the server; returns its counts.
    pub fn end(mut self) -> Traffic {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A client that speaks in lines.
pub struct Client(pub BufReader<TcpStream>);

impl Client {
    pub fn send(&mut self, request: &str) {
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// A line of an answer, without its end; empty at the end of the connection.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    pub fn expect(&mut self, answer: &str) {
        let mut found = vec![0; answer.len()];
        self.0.read_exact(&mut found).unwrap();
        assert_eq!(String::from_utf8_lossy(&found), answer);
    }

    pub fn ask(&mut self, request: &str, answer: &str) {
        self.send(request);
        self.expect(answer);
    }

    /// All lines up to one.
    pub fn lines_to(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line == last => return lines,
                line => lines.push(line),
            }
        }
    }

    /// The value that `stats` has under a name.
    pub fn stat(&mut self, name: &str) -> u64 {
        self.send("stats\r\n");
        let lines = self.lines_to("END");
        let start = format!("STAT {name} ");
        let line = lines.iter().find_map(|l| l.strip_prefix(&start));
        line.expect("such a number").parse().unwrap()
    }

    /// Whether the server closes the connection.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            // The client's input was not read.
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
