//! The drawing of an object and the objects around it, as SVG in two forms. On wide screens, what refers to it is on the
//! left, and what it refers to on the right. On narrow screens, these are above and below it.
use super::header::{ObjectAddress, Tab};
use crate::admin::frame::Frame;
use crate::admin::words;
use penstock_service::objects::{GraphObject, GraphSide, LinkGroup, ObjectGraph};

/// The height of a box, in the units of the drawing, which are about pixels.
const BOX_HEIGHT: i32 = 36;
/// The distance between two boxes of one property.
const BOX_GAP: i32 = 8;
/// The height of the name of a property.
const NAME_HEIGHT: i32 = 22;
/// The distance between two properties.
const GROUP_GAP: i32 = 14;
/// The average width of a character.
const CHARACTER_WIDTH: i32 = 9;
/// The first character of the scripts whose characters are about twice as wide, such as Chinese.
const FIRST_WIDE_CHARACTER: char = '\u{1100}';

/// The drawing in both forms.
pub(super) struct Drawing {
    pub(super) wide: Svg,
    pub(super) narrow: Svg,
    /// What it shows, for those who do not see it.
    pub(super) summary: String,
    /// What it leaves out.
    pub(super) notes: Vec<String>,
    pub(super) is_empty: bool,
}

/// A drawing.
pub(super) struct Svg {
    /// A part of the ids in it.
    pub(super) name: &'static str,
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) links: Vec<Link>,
    pub(super) names: Vec<Name>,
    pub(super) boxes: Vec<NodeBox>,
}

/// A line with an arrow at its end.
pub(super) struct Link {
    pub(super) path: String,
}

/// The name of a property.
pub(super) struct Name {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) text: String,
}

/// A box with an object.
pub(super) struct NodeBox {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) text_x: i32,
    pub(super) text_y: i32,
    pub(super) text: String,
    /// The whole text.
    pub(super) title: String,
    /// The address of its drawing, or of what is not drawn; `None` for the object in the middle, and for what is not stored.
    pub(super) link: Option<String>,
    pub(super) class: &'static str,
}

/// A group of boxes, before it has a place.
struct Group {
    name: String,
    entries: Vec<Entry>,
}

struct Entry {
    text: String,
    title: String,
    link: Option<String>,
    class: &'static str,
}

impl Group {
    fn height(&self) -> i32 {
        let count = i32::try_from(self.entries.len()).unwrap_or(i32::MAX);
        NAME_HEIGHT + count * (BOX_HEIGHT + BOX_GAP) - BOX_GAP
    }
}

impl Drawing {
    /// Draws the objects around an object. The property `expanded` has more objects than the others.
    pub(super) fn new(
        label: &str,
        graph: &ObjectGraph,
        expanded: Option<&str>,
        address: &ObjectAddress,
        frame: &Frame,
    ) -> Self {
        let ObjectGraph { incoming, outgoing, is_complete } = graph;
        let is_expanded = |group: &LinkGroup| Some(group.predicate.as_str()) == expanded;
        let sides = [
            list_groups(incoming, frame, |group| {
                if is_expanded(group) {
                    address.tab(Tab::References)
                } else {
                    address.expanded(&group.predicate)
                }
            }),
            list_groups(outgoing, frame, |group| match &group.field {
                _ if !is_expanded(group) => address.expanded(&group.predicate),
                Some(field) => address.elements(field, 0),
                None => address.tab(Tab::Rdf),
            }),
        ];
        let count = |side: &GraphSide| side.groups.iter().map(|group| group.total as u64).sum();
        let (referring, referred): (u64, u64) = (count(incoming), count(outgoing));
        let mut notes = Vec::new();
        if !is_complete {
            notes.push("Only the first thousand references to it were looked at.".to_owned());
        }
        let further = |side: &GraphSide| {
            let count = side.omitted_properties as u64;
            let words = words::format_count(count, "further property", "further properties");
            (count > 0).then_some(words)
        };
        notes.extend(further(incoming).map(|by| format!("Objects refer to it by {by}.")));
        notes.extend(further(outgoing).map(|by| format!("It refers to objects by {by}.")));
        Self {
            wide: draw_wide(label, &sides),
            narrow: draw_narrow(label, &sides),
            summary: format!(
                "A drawing: {} to it, and it refers to {}",
                if referring == 1 {
                    "1 object refers".to_owned()
                } else {
                    format!("{} objects refer", words::format_number(referring))
                },
                words::format_count(referred, "object", "objects"),
            ),
            notes,
            is_empty: referring + referred == 0,
        }
    }
}

/// Returns the groups of a side. `more` returns the address of what is not drawn of a property.
fn list_groups(side: &GraphSide, frame: &Frame, more: impl Fn(&LinkGroup) -> String) -> Vec<Group> {
    let to_entry = |object: &GraphObject| Entry {
        text: object.label.clone(),
        title: if object.label == object.uri {
            object.uri.clone()
        } else {
            format!("{} ({})", object.label, object.uri)
        },
        link: object
            .is_stored
            .then(|| ObjectAddress::new(frame, &object.uri, None).tab(Tab::Graph)),
        class: if object.is_stored { "node" } else { "node rest" },
    };
    let to_group = |group: &LinkGroup| {
        let mut entries: Vec<Entry> = group.objects.iter().map(to_entry).collect();
        let rest = group.total.saturating_sub(group.objects.len());
        if rest > 0 {
            let text = format!("and {} more", words::format_number(rest as u64));
            let link = more(group);
            entries.push(Entry { title: text.clone(), text, link: Some(link), class: "node rest" });
        }
        Group { name: group.name.clone(), entries }
    };
    side.groups.iter().map(to_group).collect()
}

/// Places boxes below each other.
struct Column {
    x: i32,
    width: i32,
    y: i32,
}

impl Column {
    /// Adds the groups to a drawing. Returns the height of the middle of each box.
    fn place(&mut self, groups: &[Group], svg: &mut Svg) -> Vec<i32> {
        let mut middles = Vec::new();
        for group in groups {
            svg.names.push(Name {
                x: self.x + 4,
                y: self.y + NAME_HEIGHT - 7,
                text: shorten(&group.name, self.width),
            });
            self.y += NAME_HEIGHT;
            for entry in &group.entries {
                middles.push(self.y + BOX_HEIGHT / 2);
                let Entry { text, title, link, class } = entry;
                svg.boxes.push(self.new_box(text, title, link.as_ref(), class));
                self.y += BOX_HEIGHT + BOX_GAP;
            }
            self.y += GROUP_GAP - BOX_GAP;
        }
        middles
    }

    fn new_box(
        &self,
        text: &str,
        title: &str,
        link: Option<&String>,
        class: &'static str,
    ) -> NodeBox {
        NodeBox {
            x: self.x,
            y: self.y,
            width: self.width,
            height: BOX_HEIGHT,
            text_x: self.x + 10,
            text_y: self.y + BOX_HEIGHT / 2 + 5,
            text: shorten(text, self.width),
            title: title.to_owned(),
            link: link.cloned(),
            class,
        }
    }
}

fn total_height(groups: &[Group]) -> i32 {
    groups.iter().map(|group| group.height() + GROUP_GAP).sum()
}

fn draw_wide(label: &str, [incoming, outgoing]: &[Vec<Group>; 2]) -> Svg {
    let heights = [total_height(incoming), total_height(outgoing)];
    let height = heights.into_iter().max().unwrap_or_default().max(2 * BOX_HEIGHT);
    let mut svg = Svg::new("wide", 960, height);
    let top = |own: i32| (height - own) / 2;
    let middle = height / 2;
    let mut left = Column { x: 2, width: 270, y: top(heights[0]) };
    for y in left.place(incoming, &mut svg) {
        let path = format!("M272,{y} C310,{y} 310,{middle} 343,{middle}");
        svg.links.push(Link { path });
    }
    let mut right = Column { x: 688, width: 270, y: top(heights[1]) };
    for y in right.place(outgoing, &mut svg) {
        let path = format!("M615,{middle} C650,{middle} 650,{y} 686,{y}");
        svg.links.push(Link { path });
    }
    let center = Column { x: 345, width: 270, y: middle - BOX_HEIGHT / 2 };
    svg.boxes.push(center.new_box(label, label, None, "node own"));
    svg
}

fn draw_narrow(label: &str, [incoming, outgoing]: &[Vec<Group>; 2]) -> Svg {
    let above = total_height(incoming);
    let middle = above + GROUP_GAP + BOX_HEIGHT / 2;
    let height = middle + BOX_HEIGHT / 2 + GROUP_GAP + total_height(outgoing);
    let mut svg = Svg::new("narrow", 300, height);
    let mut column = Column { x: 28, width: 270, y: 0 };
    for y in column.place(incoming, &mut svg) {
        svg.links.push(Link { path: format!("M28,{y} H10 V{middle} H26") });
    }
    column.y = middle - BOX_HEIGHT / 2;
    svg.boxes.push(column.new_box(label, label, None, "node own"));
    column.y += BOX_HEIGHT + GROUP_GAP;
    for y in column.place(outgoing, &mut svg) {
        svg.links.push(Link { path: format!("M28,{middle} H10 V{y} H26") });
    }
    svg
}

impl Svg {
    fn new(name: &'static str, width: i32, height: i32) -> Self {
        Self { name, width, height, links: Vec::new(), names: Vec::new(), boxes: Vec::new() }
    }
}

/// Shortens a text to what fits into this width.
fn shorten(text: &str, width: i32) -> String {
    let fitting = usize::try_from((width - 20) / CHARACTER_WIDTH).unwrap_or_default();
    let columns = |c: char| if c < FIRST_WIDE_CHARACTER { 1 } else { 2 };
    if text.chars().map(columns).sum::<usize>() <= fitting {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += columns(*c);
        used <= fitting
    };
    let cut: String = text.chars().take_while(fits).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, texts: &[&str]) -> Group {
        let entries = texts.iter().map(|text| Entry {
            text: (*text).to_owned(),
            title: (*text).to_owned(),
            link: None,
            class: "node",
        });
        Group { name: name.to_owned(), entries: entries.collect() }
    }

    #[test]
    fn no_two_boxes_overlap_and_all_are_inside() {
        let long = "a label of a machine that is much longer than any box";
        let sides = [
            vec![group("parts", &["a", "b", long]), group("next", &["c"])],
            vec![group("place", &["d"])],
        ];
        for svg in [draw_wide("own", &sides), draw_narrow("own", &sides)] {
            assert_eq!((svg.boxes.len(), svg.links.len(), svg.names.len()), (6, 5, 3));
            for (at, one) in svg.boxes.iter().enumerate() {
                let is_inside = one.x >= 0
                    && one.y >= 0
                    && one.x + one.width <= svg.width
                    && one.y + one.height <= svg.height;
                assert!(is_inside, "{} of {}", one.text, svg.name);
                let apart = |other: &NodeBox| {
                    one.x + one.width <= other.x
                        || other.x + other.width <= one.x
                        || one.y + one.height <= other.y
                        || other.y + other.height <= one.y
                };
                assert!(svg.boxes.iter().skip(at + 1).all(apart), "{} of {}", one.text, svg.name);
            }
        }
    }

    #[test]
    fn a_text_is_cut_to_the_width_of_its_box() {
        assert_eq!(shorten("Feed pump", 270), "Feed pump");
        assert_eq!(shorten(&"x".repeat(50), 270).chars().count(), 27);
        assert_eq!(shorten(&"泵".repeat(50), 270), format!("{}…", "泵".repeat(13)));
    }
}
