//! `penstock demo`: shows the main job, end to end, on sample plant data, and keeps serving afterwards.
//!
//! The real server runs in this process, and the demo is its client over HTTP. It keeps its data in a directory of its
//! own. The configuration can be that of a gateway on this machine: the demo uses none of its connections to others, such
//! as targets and sources.

mod client;
mod key;
mod review;
mod tour;

use super::output;
use crate::app;
use clap::{ArgMatches, Command};
use client::{Client, Credential, DemoError};
use penstock_base::blocking::spawn_blocking;
use penstock_base::telemetry;
use penstock_config::{
    self as config, Backup, EffectiveValue, Security, Settings, Sources, Targets,
};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tour::Tour;

/// The data directory without `--service.data-dir`.
const DATA_DIR: &str = "penstock-demo";
/// The bucketName of the continuous backup.
const BACKUP_TARGET: &str = "backup";

pub(super) fn build_command() -> Command {
    Command::new("demo")
        .about("Show the main job on sample data, and keep serving")
        .override_usage("penstock demo [--exit] [--name=value]...")
        .arg(output::flag_argument("exit", "Exit after the tour"))
        .after_help(
            "The data is in ./penstock-demo unless --service.data-dir is set. Configured targets, sources, webhooks and \
             definition files are not used, nor are certificates: the demo serves plain HTTP, on 127.0.0.1 unless \
             --server.address is set. Beyond loopback it also needs --server.insecure-http=true.\n\nExamples:\n  \
             penstock demo\n  penstock demo --exit --service.data-dir=demo-data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: Vec<String>) -> ExitCode {
    match run_demo(settings, given.get_flag("exit")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output::print_failure(&failure),
    }
}

fn run_demo(arguments: Vec<String>, exit: bool) -> Result<(), DemoError> {
    let loaded = config::load(&Sources::of_process(arguments))
        .map_err(|invalid| invalid.list_lines().join("\n"))?;
    let is_given = |value: &EffectiveValue| value.origin.starts_with("--");
    let effective = &loaded.settings.effective_values;
    let given = |name: &str| effective.iter().any(|value| value.name == name && is_given(value));
    let mut out = std::io::stdout();
    let mut settings = loaded.settings.clone();
    settings.targets = Targets {
        history_bytes: settings.targets.history_bytes,
        spool_bytes: settings.targets.spool_bytes,
        ..Targets::default()
    };
    // Somebody may have removed only the store of an earlier demo.
    settings.backup = Some(Backup { new_era: true, ..Backup::without_key(BACKUP_TARGET) });
    // It has its own account and key; configured users cannot sign in.
    settings.security = Security { session: settings.security.session, ..Security::default() };
    // A source would take the messages of the gateway that has this configuration, and webhooks would report sample data.
    settings.sources.clear();
    settings.webhooks.clear();
    settings.definitions_dir = None;
    if !given("service.data-dir") {
        settings.data_dir = PathBuf::from(DATA_DIR);
    }
    if !given("service.log.level") {
        "warn".clone_into(&mut settings.log_level);
    }
    let server = &mut settings.server;
    // The client of the tour speaks plain HTTP.
    server.tls = None;
    if !given("server.address") {
        server.address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    }
    // The configuration may be valid only with its certificate.
    let address = server.address;
    if server.check_serving_address(address).is_err() {
        return Err(format!(
            "the demo serves plain HTTP, and {address} is beyond loopback, so that its passwords and keys would go over \
             the network in the clear; leave out --server.address, or add --server.insecure-http=true in a private network"
        )
        .into());
    }
    if server.port == 0 || !given("server.port") {
        server.port = find_free_port(server.address, server.port)?;
    }
    // Minted URIs lead to this gateway.
    if !given("service.base-url") {
        let address = SocketAddr::new(server.address, server.port);
        settings.base_url = Some(format!("http://{address}"));
    }
    replace_effective_values(&mut settings);
    telemetry::log::start_logging(&settings.log_level, settings.log_format);
    telemetry::metrics::start_counting();
    super::serve::build_runtime()?.block_on(async {
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
            // If the server fails before it is ready, its result has the cause.
            let Ok((address, gateway)) = started.await else { return Ok(()) };
            let made = gateway.clone();
            let (key, key_file) = spawn_blocking(move || key::create_key(&made)).await??;
            let client = Client { address, credential: Credential::ApiKey(key) };
            let mut tour = Tour { client, gateway: &gateway, key_file, out: &mut out, step: 0 };
            let base = tour.run_all_steps().await?;
            if exit {
                return Ok(());
            }
            tour.print_next_steps(&base)?;
            let dir = gateway.settings.data_dir.display();
            writeln!(
                out,
                "\nPress Ctrl-C to stop. The data stays in {dir}; the next `penstock demo` uses it again."
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

/// Replaces the effective values that the demo does not use, so that the page of the settings shows what is in force.
fn replace_effective_values(settings: &mut Settings) {
    let is_ignored = |name: &str| {
        let groups = [
            "service.export.targets.",
            "service.export.default.",
            "service.backup.",
            "service.sources.",
            "service.webhooks.",
            "service.definitions.",
            "server.ssl.",
            "framework.security.",
            "security",
        ];
        groups.iter().any(|group| name.starts_with(group))
            || name.starts_with("service.security.")
                && !name.starts_with("service.security.session.")
    };
    let own = [
        ("server.address", settings.server.address.to_string()),
        ("server.port", settings.server.port.to_string()),
        ("service.base-url", settings.base_url.clone().unwrap_or_default()),
        ("service.data-dir", settings.data_dir.display().to_string()),
        ("service.log.level", settings.log_level.clone()),
        ("service.backup.target", BACKUP_TARGET.to_owned()),
        ("service.backup.insecure", "true".to_owned()),
        ("service.backup.new-era", "true".to_owned()),
    ]
    .map(|(name, value)| (name, format!("{value:?}")));
    let effective = &mut settings.effective_values;
    effective.retain(|value| value.origin == "default" || !is_ignored(&value.name));
    for (name, value) in own {
        let (meaning, origin) = (config::describe_setting(name), "demo".to_owned());
        let shown = EffectiveValue { name: name.to_owned(), value, origin, meaning };
        match effective.iter_mut().find(|effective| effective.name == name) {
            Some(effective) if effective.value == shown.value => {}
            Some(effective) => *effective = shown,
            None => effective.push(shown),
        }
    }
    effective.sort_by(|one, other| one.name.cmp(&other.name));
}

/// Returns the given port, or a free one if it is in use.
fn find_free_port(address: IpAddr, port: u16) -> Result<u16, DemoError> {
    match TcpListener::bind((address, port)) {
        Ok(listener) => Ok(listener.local_addr()?.port()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let other = TcpListener::bind((address, 0))?.local_addr()?.port();
            writeln!(
                std::io::stdout(),
                "Port {port} is in use, so the demo listens on {other}; set another with `--server.port=`.\n"
            )?;
            Ok(other)
        }
        Err(error) => Err(format!("listening on {address}, port {port} failed: {error}").into()),
    }
}
