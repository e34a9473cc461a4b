//! The files that are being rendered: one for each format, with the same objects.
use crate::file::{DataFile, FileWriter, MetadataSource};
use crate::{graph_lines, spool};
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::ExportFormat;
use penstock_model::view::ShownFact;
use penstock_resources::export::ExportKind;
use penstock_store::SubjectQuads;
use std::path::PathBuf;

/// The maximum number of warnings of the view that are stored with an export.
const MAX_WARNINGS: usize = 20;
/// The maximum length of a warning in characters.
const MAX_WARNING_CHARS: usize = 400;

/// A file to render.
#[derive(Debug, Clone)]
pub(crate) struct RenderOutput {
    /// The id of the export, which names the file.
    pub(crate) export_id: String,
    pub(crate) path: PathBuf,
    pub(crate) format: ExportFormat,
}

/// The files with the same objects that are being written, one for each format, with the warnings of the view.
pub(super) struct RenderedFile {
    pub(super) writers: Vec<FileWriter>,
    /// Whether objects go into the files of whole graphs too.
    pub(super) fills_whole_graphs: bool,
    /// The number of objects.
    pub(super) objects: u64,
    /// The lines of a graph that are being written.
    pub(super) lines: Vec<u8>,
    /// Their length in bytes at the last check of the disk space.
    pub(super) checked_at_bytes: u64,
    pub(super) object: Vec<u8>,
    pub(super) quads: SubjectQuads,
    warnings: Vec<String>,
    omitted_warnings: u64,
}

/// The rendered objects.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// One file for each format.
    pub(crate) files: Vec<DataFile>,
    /// The number of objects in each file.
    pub(crate) objects: u64,
    /// The warnings: first that the files mix commits, then those of the view.
    pub(crate) warnings: Vec<String>,
}

impl Rendered {
    /// Returns the file in this format.
    pub(crate) fn file_of(&self, format: ExportFormat) -> Result<&DataFile, GatewayError> {
        self.files.iter().find(|file| file.format == format).ok_or_else(|| {
            let text = format!("the export was not rendered in the format `{format}`");
            GatewayError::new(ErrorClass::Internal, text)
        })
    }
}

impl RenderedFile {
    /// Returns the file, which is created if there is none.
    pub(super) fn get_or_create<'f>(
        file: &'f mut Option<Self>,
        outputs: &[RenderOutput],
        source: &MetadataSource<'_>,
    ) -> Result<&'f mut Self, GatewayError> {
        Ok(match file {
            Some(file) => file,
            none => none.insert(Self::create(outputs, source)?),
        })
    }

    pub(super) fn create(
        outputs: &[RenderOutput],
        source: &MetadataSource<'_>,
    ) -> Result<Self, GatewayError> {
        let writers = outputs.iter().map(|RenderOutput { export_id, path, format }| {
            let metadata = source.metadata_of(export_id, ExportKind::Full, 0, 0, "");
            FileWriter::create(path, *format, &metadata)
                .map_err(|error| spool::spool_error("writing", path, &error))
        });
        let writers = writers.collect::<Result<_, _>>()?;
        Ok(Self { fills_whole_graphs: false, ..Self::of_writers(writers) })
    }

    /// Returns files of whole graphs with these writers.
    pub(super) fn of_writers(writers: Vec<FileWriter>) -> Self {
        Self {
            writers,
            fills_whole_graphs: true,
            objects: 0,
            lines: Vec::new(),
            checked_at_bytes: 0,
            object: Vec::new(),
            quads: SubjectQuads::default(),
            warnings: Vec::new(),
            omitted_warnings: 0,
        }
    }

    /// Appends the rendered object in the field `object`.
    pub(super) fn append_object(&mut self) -> Result<(), GatewayError> {
        self.objects += 1;
        for writer in &mut self.writers {
            if has_lines(writer, self.fills_whole_graphs) {
                writer.count_object();
            } else if !matches!(writer.format, ExportFormat::Quads | ExportFormat::Triples) {
                writer
                    .append_object(&self.object)
                    .map_err(|error| spool::spool_error("writing", &writer.path, &error))?;
            }
        }
        Ok(())
    }

    /// Appends an object that consists only of its URI.
    pub(super) fn append_removed(&mut self, uri: &NamedNode) -> Result<(), GatewayError> {
        let object = serde_json::json!({ "uri": uri.as_str() });
        self.object = object.to_string().into_bytes();
        self.append_removed_lines(uri)?;
        self.append_object()
    }

    /// Appends the lines of a removed object to the files that have lines of a graph. Those of changed objects have them
    /// too, because an export must not leave a removed object with a nested one that changed.
    pub(super) fn append_removed_lines(&mut self, uri: &NamedNode) -> Result<(), GatewayError> {
        for writer in &mut self.writers {
            self.lines.clear();
            graph_lines::append_removed(writer.format, uri, &mut self.lines);
            write_lines(writer, &self.lines)?;
        }
        Ok(())
    }

    pub(super) fn add_warning(&mut self, warning: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning.chars().take(MAX_WARNING_CHARS).collect());
        } else {
            self.omitted_warnings += 1;
        }
    }

    pub(super) fn finish(
        mut self,
        mixed_warning: Option<String>,
    ) -> Result<Rendered, GatewayError> {
        if self.omitted_warnings > 0 {
            self.warnings.push(format!("and {} more", self.omitted_warnings));
        }
        if let Some(warning) = mixed_warning {
            self.warnings.insert(0, warning);
        }
        let files = self.writers.into_iter().map(|writer| {
            let path = writer.path.clone();
            writer.finish().map_err(|error| spool::spool_error("writing", &path, &error))
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        Ok(Rendered { files, objects: self.objects, warnings: self.warnings })
    }
}

/// Returns whether the rendered objects go into this file as lines of a graph.
pub(super) fn has_lines(writer: &FileWriter, fills_whole_graphs: bool) -> bool {
    match writer.format {
        ExportFormat::Quads => true,
        ExportFormat::Triples => fills_whole_graphs,
        ExportFormat::Json | ExportFormat::JsonLines => false,
    }
}

/// Appends the line of a fact about an object. `lines` is a buffer.
pub(super) fn append_fact(
    writer: &mut FileWriter,
    uri: &NamedNode,
    fact: ShownFact<'_>,
    lines: &mut Vec<u8>,
) -> Result<(), GatewayError> {
    lines.clear();
    graph_lines::append_fact(writer.format, uri, fact, lines);
    write_lines(writer, lines)
}

fn write_lines(writer: &mut FileWriter, lines: &[u8]) -> Result<(), GatewayError> {
    writer.append_lines(lines).map_err(|error| spool::spool_error("writing", &writer.path, &error))
}
