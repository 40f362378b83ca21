//! A server of memcached's protocol, driven over a socket.

use super::run::{Target, checksum};
use super::workload::{Operation, Operations, key, value};
use super::{Report, Spec};
use crate::ycsb::run::nanoseconds;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// A connection.
pub struct Remote {
    stream: BufReader<TcpStream>,
    requests: Vec<u8>,
    line: Vec<u8>,
    value: Vec<u8>,
    sum: u64,
}

impl Remote {
    /// Connects.
    ///
    /// # Errors
    /// The system's error, with the address.
    pub fn connect(address: SocketAddr) -> io::Result<Remote> {
        let stream = TcpStream::connect(address).map_err(|e| {
            io::Error::new(e.kind(), format!("{address}: {e}; is the server there?"))
        })?;
        stream.set_nodelay(true)?;
        Ok(Remote {
            stream: BufReader::with_capacity(256 << 10, stream),
            requests: Vec::new(),
            line: Vec::new(),
            value: Vec::new(),
            sum: 0,
        })
    }

    /// A checksum of the values, so that they are really read.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    fn request_read(&mut self, key: &[u8]) {
        self.requests.extend_from_slice(b"get ");
        self.requests.extend_from_slice(key);
        self.requests.extend_from_slice(b"\r\n");
    }

    fn request_write(&mut self, key: &[u8], value: &[u8]) {
        self.requests.extend_from_slice(b"set ");
        self.requests.extend_from_slice(key);
        self.requests
            .extend_from_slice(format!(" 0 0 {}\r\n", value.len()).as_bytes());
        self.requests.extend_from_slice(value);
        self.requests.extend_from_slice(b"\r\n");
    }

    fn send(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(&self.requests)?;
        self.requests.clear();
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line)?;
        match self.line.ends_with(b"\r\n") {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn unexpected(&self) -> io::Error {
        let line = String::from_utf8_lossy(&self.line);
        io::Error::other(format!("the server says: {}", line.trim_end()))
    }

    fn answer_read(&mut self) -> io::Result<bool> {
        self.read_line()?;
        if self.line == b"END\r\n" {
            return Ok(false);
        }
        let length = self.line.rsplit(|&b| b == b' ').next();
        let length = length.filter(|_| self.line.starts_with(b"VALUE "));
        let length = length.and_then(|l| std::str::from_utf8(l).ok()?.trim().parse().ok());
        let length: usize = length.ok_or_else(|| self.unexpected())?;
        self.value.resize(length + 2, 0);
        self.stream.read_exact(&mut self.value)?;
        self.sum = self.sum.wrapping_add(checksum(&self.value));
        self.read_line()?;
        match &self.line[..] {
            b"END\r\n" => Ok(true),
            _ => Err(self.unexpected()),
        }
    }

    fn answer_write(&mut self) -> io::Result<()> {
        self.read_line()?;
        match &self.line[..] {
            b"STORED\r\n" => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// Writes all records for the first time, many at once.
    ///
    /// # Errors
    /// The error of the server or the system.
    pub fn load(&mut self, spec: &Spec) -> io::Result<()> {
        let (mut name, mut bytes) = (Vec::new(), Vec::new());
        for first in (0..spec.records).step_by(64) {
            let batch = first..(first + 64).min(spec.records);
            for record in batch.clone() {
                key(record, &mut name);
                value(record, 0, spec.value, &mut bytes);
                self.request_write(&name, &bytes);
            }
            self.send()?;
            for _ in batch {
                self.answer_write()?;
            }
        }
        Ok(())
    }

    /// Runs a workload with `depth` requests in flight at a time: an operation's time is that from the first of them to its answer. The write of a
    /// read-modify-write does not wait for the read, unless there is one request at a time.
    ///
    /// # Errors
    /// The error of the server or the system.
    pub fn run(&mut self, spec: &Spec, depth: u64) -> io::Result<Report> {
        if depth == 1 {
            return super::run(spec, self);
        }
        let mut operations = Operations::new(spec.workload, spec.records, spec.seed);
        let (mut name, mut bytes) = (Vec::new(), Vec::new());
        let mut times = Vec::with_capacity(spec.operations as usize);
        let mut missed = 0;
        let mut batch = Vec::new();
        let since = Instant::now();
        let mut done = 0;
        while done < spec.operations {
            batch.clear();
            for version in done..(done + depth).min(spec.operations) {
                let operation = operations.draw();
                let (Operation::Read(record)
                | Operation::Update(record)
                | Operation::Insert(record)
                | Operation::ReadModifyWrite(record)) = operation;
                key(record, &mut name);
                if matches!(
                    operation,
                    Operation::Read(_) | Operation::ReadModifyWrite(_)
                ) {
                    self.request_read(&name);
                }
                if !matches!(operation, Operation::Read(_)) {
                    value(record, version + 1, spec.value, &mut bytes);
                    self.request_write(&name, &bytes);
                }
                batch.push(operation);
            }
            let began = Instant::now();
            self.send()?;
            for operation in &batch {
                if matches!(
                    operation,
                    Operation::Read(_) | Operation::ReadModifyWrite(_)
                ) {
                    missed += u64::from(!self.answer_read()?);
                }
                if !matches!(operation, Operation::Read(_)) {
                    self.answer_write()?;
                }
                times.push(nanoseconds(began));
            }
            done += batch.len() as u64;
        }
        Ok(Report::new(times, missed, since.elapsed()))
    }
}

impl Target for Remote {
    fn read(&mut self, key: &[u8]) -> io::Result<bool> {
        self.request_read(key);
        self.send()?;
        self.answer_read()
    }

    fn write(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.request_write(key, value);
        self.send()?;
        self.answer_write()
    }
}
