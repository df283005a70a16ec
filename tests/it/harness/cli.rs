//! Built program, run as a user would run it: arguments and environment in, output and exit code out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Separate working folder, so that none of this machine's configuration is read.
pub(crate) struct Cli {
    folder: tempfile::TempDir,
}

impl Cli {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(name)).unwrap()
    }

    /// Returns the names of the files of the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the permissions of a file, as `ls` shows them in numbers.
    pub(crate) fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.folder.path().join(name)).unwrap().permissions().mode() & 0o777
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
        ended(&self.command(arguments, environment).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs a shell script, to which the program is `$0`.
    pub(crate) fn run_script(&self, script: &str) -> Ended {
        let program = self.command(&[], &[]);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).arg(program.get_program());
        shell.current_dir(self.folder.path()).env_clear();
        ended(&shell.stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn run_typing(&self, arguments: &[&str], typed: &str) -> Ended {
        let mut child = self.spawn(arguments, &[], Stdio::piped());
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        ended(&child.wait_with_output().unwrap())
    }

    /// Runs the demo without a prompt until it prints the address of its console. Returns the lines up to that one.
    pub(crate) fn demo_greets(&self, options: &[&str]) -> Vec<String> {
        let mut child = self.spawn(&[&["demo", "--no-prompt"], options].concat(), &[], Stdio::null());
        let mut lines = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
            let is_last = line.starts_with("Console at");
            lines.push(line);
            if is_last {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines
    }

    /// Starts `serve` and returns once the program listens.
    pub(crate) fn serve(&self, environment: &[(&str, &str)]) -> Served {
        Self::listening(self.spawn(&["serve"], environment, Stdio::null()))
    }

    /// Starts `serve` where the system allows this number of open files to a program that does not ask for more.
    pub(crate) fn serve_with_files(&self, files: u32, environment: &[(&str, &str)]) -> Served {
        let program = self.command(&["serve"], environment);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("ulimit -Sn {files}; exec \"$0\" serve")]).arg(program.get_program());
        shell.current_dir(self.folder.path()).env_clear();
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::listening(shell.spawn().unwrap())
    }

    fn listening(mut child: Child) -> Served {
        let log = Box::new(BufReader::new(child.stderr.take().unwrap()));
        let mut served = Served { address: String::new(), child, log };
        let mut seen = String::new();
        loop {
            let start = seen.len();
            let read = served.log.read_line(&mut seen).unwrap();
            assert!(read > 0, "the program ended before it listened:\n{seen}");
            if let Some((_, address)) = seen[start..].trim_end().split_once("listening address=") {
                address.clone_into(&mut served.address);
                return served;
            }
        }
    }

    fn spawn(&self, arguments: &[&str], environment: &[(&str, &str)], stdin: Stdio) -> Child {
        let mut command = self.command(arguments, environment);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dialarr"));
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        // Many programs run at once, and the console has one usual port.
        command.env("CONSOLE_BIND", "");
        command.envs(environment.iter().copied());
        command
    }
}

/// Returns the path of a file of `tests/data`.
pub(crate) fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).to_str().unwrap().to_owned()
}

pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

fn ended(output: &Output) -> Ended {
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout.clone()).unwrap(),
        errors: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}

/// Running service. Dropping the value kills the service.
pub(crate) struct Served {
    pub(crate) address: String,
    child: Child,
    log: Box<dyn BufRead + Send>,
}

impl Served {
    /// Returns the status line and the body of the response.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        exchange(&self.address, &format!("GET {path} HTTP/1.1\r\nHost: dialarr\r\nConnection: close\r\n\r\n"))
    }

    /// Returns the address of the console, which the program prints after that of the webhooks.
    pub(crate) fn console(&mut self) -> String {
        let mut line = String::new();
        self.log.read_line(&mut line).unwrap();
        let (_, address) = line.split_once("console listening address=").unwrap();
        address.trim().trim_start_matches("http://").to_owned()
    }

    /// Returns the next line of the log that contains a text.
    pub(crate) fn log_line(&mut self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            assert!(self.log.read_line(&mut seen).unwrap() > 0, "the program ended:\n{seen}");
            if seen[start..].contains(text) {
                return seen.split_off(start);
            }
        }
    }

    /// Reads the rest of the log in a thread, so that a program that logs much is not blocked.
    pub(crate) fn collect_log(&mut self) -> JoinHandle<String> {
        let mut log = std::mem::replace(&mut self.log, Box::new(std::io::empty()));
        thread::spawn(move || {
            let mut rest = String::new();
            log.read_to_string(&mut rest).unwrap();
            rest
        })
    }

    /// Returns the number of files that the program may have open.
    pub(crate) fn files(&self) -> u64 {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap();
        let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        files.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Asks the program to end, and returns its exit code and the time it took.
    pub(crate) fn terminate(mut self) -> (Option<i32>, Duration) {
        let started = Instant::now();
        self.end_log();
        (self.child.wait().unwrap().code(), started.elapsed())
    }

    /// Asks the program to end, and returns the rest of its log.
    pub(crate) fn end_log(&mut self) -> String {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// Sends a request unchanged, and returns the status line and the body of the response.
pub(crate) fn exchange(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

impl Drop for Served {
    fn drop(&mut self) {
        // The program may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
