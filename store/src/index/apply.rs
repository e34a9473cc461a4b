//! Applying frames to the index. New frames and replayed frames take the same code path.
use super::dictionary::DatatypeCodes;
use super::key::{Code, DEFAULT_GRAPH};
use super::{Health as _, Index};
use crate::frame::Change;
use crate::steps::WriterSteps;
use crate::{Error, files};

impl Index {
    /// Applies the frame that follows the newest one. After a failure, the index refuses reads.
    pub(crate) fn apply_frame(
        &mut self,
        sequence: u64,
        change: &Change<'_>,
        steps: &WriterSteps,
    ) -> Result<(), Error> {
        self.check_usable()?;
        // Set while the parts are applied, so that even a panic does not expose a partly applied commit.
        self.unusable_cause = Some("a commit was applied only in part".to_owned());
        match self.apply_change(change, steps) {
            Ok(()) => {
                self.note.sequence = sequence;
                self.unusable_cause = None;
                Ok(())
            }
            Err(error) => {
                self.record_damage(&error);
                self.unusable_cause = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn apply_change(&mut self, change: &Change<'_>, steps: &WriterSteps) -> Result<(), Error> {
        files::inject_apply_failure(&self.dir)?;
        let next_long = self.note.next_long;
        let mut codes = Vec::with_capacity(change.terms.len() + 1);
        codes.push(Code::from_id(DEFAULT_GRAPH));
        let mut datatypes = DatatypeCodes::default();
        for term in &change.terms {
            codes.push(self.find_or_add_code(*term, &mut datatypes)?);
            steps.count_step();
        }
        // Additions come first. Otherwise a long literal would be deleted between the removal and the
        // addition of a quad with it.
        for (quads, added) in [(&change.added, true), (&change.removed, false)] {
            self.change_quads(&change.terms, &codes, quads, added, steps)?;
        }
        if self.note.next_long > next_long {
            // A base that was read while commits continued may lack the quads that a replayed frame removes.
            for [_, _, object, _] in &change.removed {
                if let Some(code) = codes.get(*object as usize) {
                    self.remove_unused_long(&code.0)?;
                }
            }
        }
        if let Some(values) = &mut self.values {
            values.end_frame();
        }
        for (collection, key, value) in &change.documents {
            steps.count_step();
            match value {
                Some(value) => self.put_document(collection, key, value)?,
                None => self.delete_document(collection, key)?,
            }
        }
        Ok(())
    }
}
