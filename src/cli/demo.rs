//! `penstock demo`: the main job, end to end, on sample plant data; then it stays up to be looked at.
//!
//! The server is the real one, in this process, and the demo speaks to it over HTTP. It keeps its data
//! in a directory of its own and leaves configured targets alone.

mod client;
mod key;
mod tour;

use super::output;
use crate::app;
use clap::{ArgMatches, Command};
use client::{Client, Failure};
use penstock_base::telemetry;
use penstock_config::{self as config, Effective, Security, Sources, Targets};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tour::Tour;

/// Where the data is kept, unless `--service.data-dir` says otherwise.
const DATA_DIR: &str = "penstock-demo";

pub(super) fn command() -> Command {
    Command::new("demo")
        .about("Show the main job on sample data, and stay up to look around")
        .override_usage("penstock demo [--exit] [--name=value]...")
        .arg(output::flag("exit", "End once everything was shown"))
        .after_help(
            "Its data is in ./penstock-demo unless --service.data-dir says otherwise; configured targets \
             are left alone.\n\nExamples:\n  \
             penstock demo\n  penstock demo --exit --service.data-dir=demo-data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: Vec<String>) -> ExitCode {
    match demo(settings, given.get_flag("exit")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output::fail(&failure),
    }
}

fn demo(arguments: Vec<String>, exit: bool) -> Result<(), Failure> {
    let loaded = config::load(&Sources::of_process(arguments))
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let is_given = |value: &Effective| value.origin.starts_with("--");
    let effective = &loaded.settings.effective;
    let given = |name: &str| effective.iter().any(|value| value.name == name && is_given(value));
    let mut out = std::io::stdout();
    let mut settings = loaded.settings.clone();
    // The rest is the demo's own, whatever was configured.
    settings.effective.retain(is_given);
    settings.targets = Targets {
        history_bytes: settings.targets.history_bytes,
        spool_bytes: settings.targets.spool_bytes,
        ..Targets::default()
    };
    // Nor does anybody else sign in to it: its account and its key are its own.
    settings.security = Security { session: settings.security.session, ..Security::default() };
    if !given("service.data-dir") {
        settings.data_dir = PathBuf::from(DATA_DIR);
    }
    if !given("service.log.level") {
        "warn".clone_into(&mut settings.log_level);
    }
    let server = &mut settings.server;
    if server.port == 0 || !given("server.port") {
        server.port = free_port(server.address, server.port)?;
    }
    // What is minted leads here.
    if !given("service.base-url") {
        let address = SocketAddr::new(server.address, server.port);
        settings.base_url = Some(format!("http://{address}"));
    }
    telemetry::log::start(&settings.log_level, settings.log_format);
    telemetry::metrics::start();
    super::serve::runtime()?.block_on(async {
        let (ready, started) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let server = app::serve_until(
            Arc::new(settings),
            Box::new(|| None),
            move |address, gateway| drop(ready.send((address, gateway))),
            async move {
                tokio::select! {
                    _ = ended => {}
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            },
        );
        let tour = async move {
            // When the server fails before it is ready, it says why.
            let Ok((address, gateway)) = started.await else { return Ok(()) };
            let made = gateway.clone();
            let (key, key_file) = tokio::task::spawn_blocking(move || key::make(&made)).await??;
            let client = Client { address, key };
            let mut tour = Tour { client, gateway: &gateway, key_file, out: &mut out, step: 0 };
            let base = tour.run().await?;
            if exit {
                return Ok(());
            }
            tour.look_around(&base)?;
            let dir = gateway.settings.data_dir.display();
            writeln!(
                out,
                "\nCtrl-C ends it. The data stays in {dir}; `penstock demo` goes on with it."
            )?;
            drop(gateway);
            std::future::pending().await
        };
        tokio::pin!(server);
        tokio::select! {
            served = &mut server => Ok(served?),
            toured = tour => {
                drop(end);
                server.await?;
                toured
            }
        }
    })
}

/// The configured port, or another when it is taken.
fn free_port(address: IpAddr, port: u16) -> Result<u16, Failure> {
    match TcpListener::bind((address, port)) {
        Ok(listener) => Ok(listener.local_addr()?.port()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let other = TcpListener::bind((address, 0))?.local_addr()?.port();
            writeln!(
                std::io::stdout(),
                "Port {port} is taken, so this runs on {other}; `--server.port=` chooses another.\n"
            )?;
            Ok(other)
        }
        Err(error) => Err(format!("{address}, port {port}: {error}").into()),
    }
}
