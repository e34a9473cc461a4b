//! Summaries: how many objects each group has, and what their numbers and times amount to.
//!
//! `group` names the groups of an object, `period` those of times, and `axis` lists all periods of a chart. `measure`
//! computes.
//!
//! # Arrays
//! An object counts once in each group that one of its values belongs to. Fields below one array are taken together: with
//! the groups `readings.place` and `readings.at.day`, an object is in the groups of the places and days that one of its
//! readings has both. In the same way, `sum(readings.value)` adds the values of those readings that are in the group. A
//! value counts once in a group.

mod axis;
mod group;
mod measure;
mod period;
#[cfg(test)]
mod tests;
mod total;

pub use axis::{AxisPeriod, TimeAxis, find_begin_of_day};

use super::budget::SearchBudget;
use super::errors::invalid_search_error;
use super::fields::{Element, FieldTree, Instance, Slots};
use super::filter::Filter;
use crate::mapping::Shape;
use crate::resource::{Compiled, parse_zone};
use group::GroupField;
use measure::{Cell, Measure};
use penstock_base::error::GatewayError;
use penstock_base::time_zone::Zone;
use penstock_store::Read;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The maximum number of rows.
const MAX_ROWS: usize = 1_000;
/// The maximum number of fields by which objects are grouped.
const MAX_GROUP_FIELDS: usize = 2;
/// The maximum number of measures.
const MAX_MEASURES: usize = 20;
/// The maximum number of combinations of values by which one object is grouped.
const MAX_COMBINATIONS: usize = 10_000;
/// The maximum number of bytes of all groups in memory, about.
const MAX_GROUP_BYTES: usize = 8 << 20;
/// The number of values of an object from which the time is checked for each value that is compared with all of them.
const MAX_UNCHECKED_VALUES: usize = 100;
/// The bytes of a group besides its key and its measures: its place in a table that grows, and the allocations.
const GROUP_OVERHEAD_BYTES: usize = 128;

/// What a summary shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The fields by which objects are grouped, such as `site.name`, or `measured.day` for times.
    pub groups: Vec<String>,
    /// The measures, separated by commas: `count,min(flow)`.
    pub measures: Option<String>,
    /// The time zone of periods; that of the Business Object if absent, then UTC.
    pub timezone: Option<String>,
}

/// A summary that fits a Business Object.
#[derive(Debug)]
pub struct SummaryPlan {
    tree: FieldTree,
    groups: Vec<GroupField>,
    measures: Vec<Measure>,
    zone: Zone,
    max_rows: usize,
}

/// A summary of the objects of a Business Object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The largest groups first; those of times in order.
    pub rows: Vec<SummaryRow>,
    /// Whether these are all groups.
    pub is_complete: bool,
    /// Whether a date by which objects are grouped has an offset: see [`TimeAxis::with_offsets`].
    pub has_offsets: bool,
}

/// A group of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// The values by which the objects are grouped, as JSON; `null` for no value.
    pub group: Vec<String>,
    /// How many objects it has.
    pub count: u64,
    /// The measures in the order of [`SummaryPlan::measure_names`], as JSON; `None` without a value.
    pub measures: Vec<Option<String>>,
}

impl SummaryPlan {
    /// Prepares a summary of the objects of a Business Object.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if a field, a measure or the time zone does not exist, or if a field has no such values.
    pub fn new(business_object: &Compiled, request: &SummaryRequest) -> Result<Self, GatewayError> {
        let SummaryRequest { groups, measures, timezone } = request;
        if groups.len() > MAX_GROUP_FIELDS {
            let count = groups.len();
            return Err(invalid_search_error(format!(
                "there are {count} groups; a summary has at most {MAX_GROUP_FIELDS}"
            )));
        }
        let zone = timezone.as_ref().or(business_object.object.definition.timezone.as_ref());
        let zone = zone.map_or(Ok(Zone::UTC), |name| parse_zone(name));
        let zone = zone.map_err(|error| {
            invalid_search_error(format!("the time zone of the summary: {}", error.cause))
        })?;
        let shape = &business_object.mapping.root;
        let mut slots = Slots::default();
        let groups = groups.iter().map(|text| GroupField::parse(shape, text, &mut slots));
        let groups = groups.collect::<Result<_, _>>()?;
        let measures = Self::parse_measures(shape, measures.as_deref(), &mut slots)?;
        let tree = FieldTree::build(shape, &slots)?;
        Ok(Self { tree, groups, measures, zone, max_rows: MAX_ROWS })
    }

    /// Sets the maximum number of rows; 1,000 otherwise.
    #[must_use]
    pub fn with_max_rows(self, max_rows: usize) -> Self {
        Self { max_rows, ..self }
    }

    fn parse_measures(
        shape: &Shape,
        text: Option<&str>,
        slots: &mut Slots,
    ) -> Result<Vec<Measure>, GatewayError> {
        let mut measures: Vec<Measure> = Vec::new();
        for name in measure::split_names(text.unwrap_or("count")) {
            if name == "count" || measures.iter().any(|known| known.name == name) {
                continue;
            }
            if measures.len() == MAX_MEASURES {
                return Err(invalid_search_error(format!(
                    "a summary has at most {MAX_MEASURES} measures"
                )));
            }
            measures.push(Measure::parse(shape, name, slots)?);
        }
        Ok(measures)
    }

    /// Returns the names of the measures besides `count`, as in the request.
    pub fn measure_names(&self) -> impl Iterator<Item = &str> {
        self.measures.iter().map(|measure| measure.name.as_str())
    }
}

/// Summarizes the objects of a Business Object that pass the filter. Blocking.
///
/// # Errors
/// `ErrorClass::Invalid` if the filter does not fit the Business Object, if the summary would examine more objects than the
/// bounds allow, or if there are too many groups for the memory; the errors of the store.
pub fn summarize(
    read: &dyn Read,
    business_object: &Compiled,
    filter: Option<&Filter>,
    plan: &SummaryPlan,
    bounds: &SearchBudget,
) -> Result<Summary, GatewayError> {
    let mut groups = Groups::new(plan, bounds);
    plan.tree.for_each_object(read, business_object, filter, bounds, &mut |object, uri| {
        groups.add_object(object, uri.as_str())
    })?;
    Ok(groups.into_summary())
}

/// The groups that were found so far.
struct Groups<'p> {
    plan: &'p SummaryPlan,
    bounds: &'p SearchBudget,
    /// By the JSON of the values, with a line feed between two.
    by_key: HashMap<String, Group>,
    bytes: usize,
    has_offsets: bool,
}

/// A group of objects.
#[derive(Debug)]
struct Group {
    count: u64,
    cells: Box<[Cell]>,
}

/// A combination of values of an object by which it is grouped: the key of its group, and where the values are.
type Combination<'i, 'e> = (String, Vec<&'i Instance<'e>>);

impl<'p> Groups<'p> {
    fn new(plan: &'p SummaryPlan, bounds: &'p SearchBudget) -> Self {
        let by_key = HashMap::new();
        let mut groups = Self { plan, bounds, by_key, bytes: 0, has_offsets: false };
        if plan.groups.is_empty() {
            let cells = plan.measures.iter().map(|_| Cell::default()).collect();
            groups.by_key.insert(String::new(), Group { count: 0, cells });
        }
        groups
    }

    fn add_object(&mut self, object: &Element<'_>, uri: &str) -> Result<(), GatewayError> {
        let plan = self.plan;
        let SummaryPlan { tree, groups, measures, .. } = plan;
        let places: Vec<Vec<Instance<'_>>> =
            groups.iter().map(|group| tree.list_instances(object, group.slot)).collect();
        self.has_offsets |=
            groups.iter().zip(&places).any(|(group, places)| group.has_offset(places));
        let mut combinations = self.combine(&places, uri)?;
        combinations.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let values: Vec<Vec<Instance<'_>>> =
            measures.iter().map(|measure| tree.list_instances(object, measure.slot)).collect();
        for same in combinations.chunk_by_mut(|(one, _), (other, _)| one == other) {
            let Some((key, _)) = same.first_mut() else { continue };
            self.check_memory()?;
            self.bounds.check_time()?;
            let (group, more) = enter(&mut self.by_key, std::mem::take(key), measures);
            group.count += 1;
            let mut bytes = self.bytes + more;
            for ((measure, values), cell) in
                measures.iter().zip(&values).zip(group.cells.iter_mut())
            {
                let is_inside = |value: &Instance<'_>| {
                    let fits = |(group, place): (&GroupField, &&Instance<'_>)| {
                        let depth = tree.count_shared_steps(measure.slot, group.slot);
                        value.is_compatible(place, depth)
                    };
                    same.iter().any(|(_, places)| groups.iter().zip(places).all(fits))
                };
                let before = cell.count_bytes();
                for value in values {
                    if same.len() > MAX_UNCHECKED_VALUES {
                        self.bounds.check_time()?;
                    }
                    if let Some(found) = value.value
                        && is_inside(value)
                    {
                        measure.add(cell, found)?;
                    }
                }
                bytes = (bytes + cell.count_bytes()).saturating_sub(before);
            }
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Returns the combinations of values by which an object is grouped.
    fn combine<'i, 'e>(
        &self,
        places: &'i [Vec<Instance<'e>>],
        uri: &str,
    ) -> Result<Vec<Combination<'i, 'e>>, GatewayError> {
        let plan = self.plan;
        let SummaryPlan { tree, groups, zone, .. } = plan;
        let mut combinations: Vec<Combination<'i, 'e>> = vec![(String::new(), Vec::new())];
        for (number, (group, places)) in groups.iter().zip(places).enumerate() {
            let texts: Vec<String> =
                places.iter().map(|place| group.describe(place.value, zone)).collect();
            let (mut more, mut bytes) = (Vec::with_capacity(places.len()), 0);
            for (key, chosen) in &combinations {
                if places.len() > MAX_UNCHECKED_VALUES {
                    self.bounds.check_time()?;
                }
                for (place, text) in places.iter().zip(&texts) {
                    let mut before = groups.iter().zip(chosen);
                    let fits = before.all(|(other, other_place)| {
                        let depth = tree.count_shared_steps(group.slot, other.slot);
                        place.is_compatible(other_place, depth)
                    });
                    if !fits {
                        continue;
                    }
                    bytes += key.len() + text.len();
                    if more.len() == MAX_COMBINATIONS || bytes > MAX_GROUP_BYTES {
                        return Err(invalid_search_error(format!(
                            "the object {uri} has more than {MAX_COMBINATIONS} combinations of values in the fields of \
                             the groups, or too long ones; group by one of them"
                        )));
                    }
                    let key = if number == 0 { text.clone() } else { format!("{key}\n{text}") };
                    let chosen = chosen.iter().copied().chain([place]).collect();
                    more.push((key, chosen));
                }
            }
            combinations = more;
        }
        Ok(combinations)
    }

    fn check_memory(&self) -> Result<(), GatewayError> {
        if self.bytes <= MAX_GROUP_BYTES {
            return Ok(());
        }
        Err(invalid_search_error(format!(
            "there are more than {} groups, which is too many for one summary; group by a field with fewer values, by a \
             longer period, or filter",
            self.by_key.len()
        )))
    }

    fn into_summary(self) -> Summary {
        let Self { plan, by_key, has_offsets, .. } = self;
        let mut found: Vec<(String, Group)> = by_key.into_iter().collect();
        let is_complete = found.len() <= plan.max_rows;
        if !is_complete {
            // The largest ones, whatever their order.
            found.select_nth_unstable_by(plan.max_rows, |(key, group), (other_key, other)| {
                other.count.cmp(&group.count).then_with(|| key.cmp(other_key))
            });
            found.truncate(plan.max_rows);
        }
        let to_row = |(key, group): (String, Group)| {
            let measures = plan.measures.iter().zip(group.cells.iter());
            SummaryRow {
                group: key.split('\n').take(plan.groups.len()).map(str::to_owned).collect(),
                count: group.count,
                measures: measures.map(|(measure, cell)| measure.finish(cell)).collect(),
            }
        };
        let mut rows: Vec<SummaryRow> = found.into_iter().map(to_row).collect();
        order_rows(&mut rows, &plan.groups);
        Summary { rows, is_complete, has_offsets }
    }
}

/// Orders rows: those of times by time, then the largest first, then by value.
fn order_rows(rows: &mut [SummaryRow], groups: &[GroupField]) {
    rows.sort_by_cached_key(|row| {
        let keys = |is_time: bool| -> Vec<_> {
            let fields = groups.iter().zip(&row.group);
            fields
                .filter(|(group, _)| group.has_times() == is_time)
                .map(|(group, json)| group.sort_key(json))
                .collect()
        };
        (keys(true), Reverse(row.count), keys(false), row.group.clone())
    });
}

/// Returns the group of this key, and how many bytes it takes if it is a new one.
fn enter<'g>(
    by_key: &'g mut HashMap<String, Group>,
    key: String,
    measures: &[Measure],
) -> (&'g mut Group, usize) {
    match by_key.entry(key) {
        Entry::Occupied(known) => (known.into_mut(), 0),
        Entry::Vacant(place) => {
            let cells: Box<[_]> = measures.iter().map(|_| Cell::default()).collect();
            let bytes = GROUP_OVERHEAD_BYTES + place.key().len() + size_of_val(&*cells);
            (place.insert(Group { count: 0, cells }), bytes)
        }
    }
}
