//! `penstock dump [FILE]`
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command};
use oxrdf::GraphName;
use penstock_config::Settings;
use penstock_model::rdf::{self, DumpOptions, Format};
use penstock_service::gateway::data_events;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Bytes of the write buffer.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// `--format`
pub(super) fn format_option() -> Arg {
    output::value_argument(
        "format",
        "FORMAT",
        "ttl, nt, nq, trig, rdf (RDF/XML) or jsonld; by default the one of the file's extension",
    )
    .value_parser(|text: &str| text.parse::<Format>())
}

/// `--graph`
pub(super) fn graph_option(help: &'static str) -> Arg {
    output::value_argument("graph", "IRI", help).value_parser(rdf::parse_graph)
}

/// Returns the format that was given, or that of the file's extension.
pub(super) fn choose_format(given: &ArgMatches, path: &str) -> Option<Format> {
    given.get_one("format").copied().or_else(|| Format::from_file_name(Path::new(path)))
}

pub(super) fn build_command() -> Command {
    Command::new("dump")
        .about("Write the graph as RDF, also while the service runs")
        .override_usage("penstock dump [FILE] [--format FORMAT] [--graph IRI] [--name=value]...")
        .arg(
            Arg::new("FILE")
                .help("The file to create, which must not exist; compressed if its name ends in .zst. Without it, or with -, standard output")
                .default_value("-"),
        )
        .arg(format_option())
        .arg(graph_option("Only this graph, or `default`; required for ttl, nt and rdf, which hold one graph"))
        .after_help(
            "The default format is N-Quads. The graph is written as it is after one commit, while others continue. If \
             they change more than the gateway can keep for the dump, a warning says that it may mix several commits. \
             Documents (Business Objects, accounts, the queue) are not RDF and not part of a dump.\n\nExamples:\n  \
             penstock dump all.nq.zst --service.data-dir=data\n  \
             penstock dump --format ttl --graph https://plant.example/pumps/ | less",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let path = given.get_one::<String>("FILE").map_or("-", String::as_str);
    let what = DumpOptions {
        format: choose_format(given, path).unwrap_or(Format::NQuads),
        graph: given.get_one::<GraphName>("graph").cloned(),
    };
    if let Err(error) = what.check() {
        return output::print_failure(&error);
    }
    let done = match path {
        "-" => write_dump(
            settings,
            &what,
            &mut BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock()),
        ),
        path => dump_into_file(settings, &what, Path::new(path)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => output::print_failure(&why),
    }
}

fn dump_into_file(settings: &Settings, what: &DumpOptions, path: &Path) -> Result<(), String> {
    data_dir::check_exists(settings)?;
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    // Opened before this process may change to another user, who may lack the permission.
    data_dir::write_new_file(path, |file| {
        let mut file = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
        if path.extension().is_some_and(|extension| extension == "zst") {
            let mut packer = zstd::Encoder::new(&mut file, 0).map_err(failed)?;
            write_dump(settings, what, &mut packer)?;
            packer.finish().map_err(failed)?;
        } else {
            write_dump(settings, what, &mut file)?;
        }
        file.flush().map_err(failed)
    })
}

/// Writes the dump: through the running service, or from the store itself. The store's lock excludes other processes.
fn write_dump(settings: &Settings, what: &DumpOptions, out: &mut dyn Write) -> Result<(), String> {
    let dir = &settings.data_dir;
    data_dir::check_exists(settings)?;
    let mut query = vec![("format", what.format.name().to_owned())];
    if let Some(graph) = &what.graph {
        query.push(("graph", format_graph(graph)));
    }
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    let path = control::path_with_query("/control/dump", &query);
    if let Some(downloaded) = runtime.block_on(control::download_to(dir, &path, out))? {
        out.flush().map_err(|error| error.to_string())?;
        print_warning(downloaded.warning);
        return Ok(());
    }
    let store = data_dir::open_store(settings)?;
    data_dir::check_no_move(&store)?;
    let mut tell = output::show_count("quads");
    let result = rdf::write_dump(&store, what, &mut *out, &mut tell);
    data_dir::record_event(&store.into(), settings, &data_events::dump_event(what, &result));
    let dumped = result.map_err(|error| error.to_string())?;
    out.flush().map_err(|error| error.to_string())?;
    print_warning(dumped.to_warning());
    Ok(())
}

/// Prints on standard error that the dump may mix several commits, if so.
fn print_warning(warning: Option<String>) {
    if let Some(warning) = warning {
        output::print_error_line(&format!("penstock: warning: {warning}"));
    }
}

/// Formats a graph as `--graph` expects it.
pub(super) fn format_graph(graph: &GraphName) -> String {
    match graph {
        GraphName::NamedNode(iri) => iri.as_str().to_owned(),
        _ => rdf::DEFAULT_GRAPH.to_owned(),
    }
}
