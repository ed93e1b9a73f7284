//! A browser without a screen, which is told what to do by its protocol for developers: messages of JSON that end with a zero byte.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::Timespec;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Programs that are one.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// It reads its orders from descriptor 3, and answers on descriptor 4.
const SCRIPT: &str = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
/// From one look to the next, and how many there are.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const LOOKS_MAX: u32 = 400;

/// See the module. Dropped, it is killed with all that it has started.
pub(super) struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    number: u64,
    complaints: VecDeque<String>,
    _folder: TempDir,
}

impl Browser {
    /// None where there is none.
    pub(super) fn start() -> Option<Self> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &str| std::env::split_paths(&paths).any(|folder| folder.join(name).is_file());
        let program = PROGRAMS.into_iter().find(|name| is_there(name))?;
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, program, "--headless=new", "--disable-gpu", "--remote-debugging-pipe"]);
        // Its sandbox does not work for root, and the page is ours.
        command.args([
            "--no-sandbox",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
        ]);
        command.arg(format!("--user-data-dir={}", folder.path().display())).arg("about:blank");
        let mut child =
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let complaints = VecDeque::new();
        let mut browser =
            Self { child, orders, answers, session: None, number: 0, complaints, _folder: folder };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page");
        let attached = json!({ "targetId": page.unwrap()["targetId"], "flatten": true });
        let session =
            browser.call("Target.attachToTarget", attached)["sessionId"].as_str().map(str::to_owned);
        browser.session = session;
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.look(1200, false);
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut order = json!({ "id": self.number, "method": method, "params": parameters });
        self.session.iter().for_each(|session| order["sessionId"] = json!(session));
        self.orders.write_all(format!("{order}\0").as_bytes()).unwrap();
        loop {
            let mut answer = vec![];
            self.answers.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "the browser is gone");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => {
                    self.complaints.push_back(answer["params"].to_string());
                }
                Some(_) => {}
                None if answer["id"] == self.number => {
                    assert!(answer["error"].is_null(), "{method}: {answer}");
                    return answer["result"].take();
                }
                None => {}
            }
        }
    }

    /// Shows the page at an address.
    pub(super) fn go(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// Its window is so wide, and its user likes dark pages or not.
    pub(super) fn look(&mut self, width: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// The value of an expression in the page.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", asked)["result"]["value"].take()
    }

    /// The same, when it is as wanted.
    pub(super) fn await_value(&mut self, expression: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..LOOKS_MAX {
            let value = self.value(expression);
            if is_wanted(&value) {
                return value;
            }
            let _ = rustix::event::poll(&mut [], Some(&PAUSE));
        }
        panic!("{expression} stays {}; {:?}", self.value(expression), self.complaints);
    }

    /// What has gone wrong in the page, and what was written there for developers.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        self.value("0");
        self.complaints.drain(..).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
