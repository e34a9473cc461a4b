//! Downloads: all objects of a Business Object that are selected, one after the other.
use super::open_visible;
use super::search::new_budget;
use crate::gateway::{Gateway, MAX_DOWNLOADS};
use crate::ingestions::find_write_scope;
use oxrdf::NamedNode;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, MAX_NESTING};
use penstock_base::permits::Permit;
use penstock_model::csv::{CsvOptions, CsvWriter};
use penstock_model::resource::Compiled;
use penstock_model::search::{Filter, Order, Selection, for_each_selected};
use penstock_model::view::{self, ViewOutput};
use penstock_store::{Read as _, SubjectQuads};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a download waits for others.
const DOWNLOAD_WAIT: Duration = Duration::from_secs(10);

/// The form of a download.
#[derive(Debug, Clone)]
pub enum DownloadForm {
    /// A header and a record for each object.
    Csv(CsvOptions),
    /// A line of JSON for each object.
    Ndjson,
    /// One document in JSON, which an ingestion takes.
    Json,
}

/// What is downloaded.
#[derive(Debug)]
pub struct Download {
    business_object: Arc<Compiled>,
    /// The Business Objects to which the caller is limited.
    scope: Option<Vec<Arc<Compiled>>>,
    filter: Option<Filter>,
    order: Order,
    form: DownloadForm,
}

impl Download {
    /// Prepares the download of the objects that pass the filter, in this order, as the caller sees them.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the columns of CSV do not fit the Business Object.
    pub fn new(
        gateway: &Gateway,
        by: &Caller,
        business_object: Arc<Compiled>,
        (filter, order): (Option<Filter>, Order),
        form: DownloadForm,
    ) -> Result<Self, GatewayError> {
        if let DownloadForm::Csv(options) = &form {
            CsvWriter::new(&business_object.mapping, options)?;
        }
        let scope = find_write_scope(gateway, by, &business_object);
        Ok(Self { business_object, scope, filter, order, form })
    }

    /// Writes the objects of one snapshot. An error from `output` ends it. Blocking.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` if the filter or the order does not fit the Business Object, if ordering the objects would read
    ///   too many or take too long, or if an object cannot be written
    /// - `ErrorClass::TooLarge` if an object is too large to be shown
    /// - `ErrorClass::Unavailable` if the snapshot could not be kept
    pub fn write_to(
        &self,
        gateway: &Gateway,
        output: &mut dyn io::Write,
    ) -> Result<(), GatewayError> {
        let Self { business_object, scope, filter, order, form } = self;
        let visible = open_visible(gateway, scope.as_deref())?;
        let csv = match form {
            DownloadForm::Csv(options) => Some(CsvWriter::new(&business_object.mapping, options)?),
            DownloadForm::Ndjson | DownloadForm::Json => None,
        };
        let is_document = matches!(form, DownloadForm::Json);
        let mut text = if is_document { br#"{"data":["#.to_vec() } else { Vec::new() };
        if let Some(csv) = &csv {
            csv.write_header(&mut text);
        }
        let mut is_first = true;
        let shape = &business_object.mapping.root;
        let (mut quads, mut object) = (SubjectQuads::default(), Vec::new());
        let mut write = |selected: Option<&NamedNode>| -> Result<(), GatewayError> {
            let Some(uri) = selected else {
                // Fails if nobody reads any more.
                return output.flush().map_err(|error| broken_error(&error));
            };
            visible.read_subject(uri.as_ref().into(), &mut quads)?;
            object.clear();
            let mut warnings = Vec::new();
            let rendered = ViewOutput::new(&mut object, &mut warnings);
            view::render_subject(&visible, shape, uri, &quads, rendered)?;
            if let Some(csv) = &csv {
                csv.write_record(uri, &json::parse(&object, MAX_NESTING)?, &mut text)?;
            } else {
                if is_document && !is_first {
                    text.push(b',');
                }
                text.append(&mut object);
                text.push(b'\n');
            }
            is_first = false;
            output.write_all(&text).map_err(|error| broken_error(&error))?;
            text.clear();
            Ok(())
        };
        let selection = Selection { filter: filter.as_ref(), order: *order };
        for_each_selected(&visible, business_object, selection, &new_budget(), &mut write)?;
        if is_document {
            text.extend_from_slice(b"]}\n");
        }
        // Without objects, the beginning is not written yet.
        output.write_all(&text).map_err(|error| broken_error(&error))
    }
}

fn broken_error(error: &io::Error) -> GatewayError {
    GatewayError::new(ErrorClass::Internal, format!("sending the objects failed: {error}"))
}

/// Waits for the permit of a download.
///
/// # Errors
/// `ErrorClass::Unavailable` if others take long.
pub async fn acquire_download_permit(
    gateway: &Gateway,
    by: &Caller,
) -> Result<Permit<String>, GatewayError> {
    let permit = timeout(DOWNLOAD_WAIT, gateway.download_permits.acquire(by.id())).await;
    permit.map_err(|_| {
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(5)),
            format!(
                "this account has a download running, or {MAX_DOWNLOADS} downloads of all accounts are; try again when one \
                 has ended"
            ),
        )
    })
}
