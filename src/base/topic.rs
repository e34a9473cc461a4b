//! Topics of MQTT (MQTT 5.0, 4.7): topic filters, and texts with levels of a topic.
use std::str::FromStr;

/// The maximum length of a topic filter in bytes (MQTT 5.0, 1.5.4).
const MAX_FILTER_BYTES: usize = 65_535;

/// Checks a topic filter.
///
/// # Errors
/// The reason, to follow "it".
pub fn check_filter(filter: &str) -> Result<(), &'static str> {
    if filter.is_empty() || filter.len() > MAX_FILTER_BYTES {
        return Err("has 1 to 65,535 bytes");
    }
    if filter.contains(char::is_control) {
        return Err("has a control character");
    }
    // The broker would share its messages among several clients, in any order.
    if ["$share/", "$queue/"].iter().any(|prefix| filter.starts_with(prefix)) {
        return Err("is a shared subscription");
    }
    // The topics of its messages do not match it.
    if filter.starts_with("$exclusive/") {
        return Err("is an exclusive subscription");
    }
    let levels: Vec<&str> = filter.split('/').collect();
    let last = levels.len() - 1;
    for (at, level) in levels.iter().enumerate() {
        if level.contains(['+', '#']) && level.len() > 1 {
            return Err("has a wildcard that is not a whole level");
        }
        if *level == "#" && at != last {
            return Err("has a # before its end");
        }
    }
    Ok(())
}

/// Returns how many levels the topics that match a filter have, or `None` if there is no maximum.
pub fn max_levels(filter: &str) -> Option<usize> {
    (!filter.ends_with('#')).then(|| filter.split('/').count())
}

/// A text in which `{1}` is the first level of a topic, `{2}` the second, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A level, from 1.
    Level(usize),
}

impl Template {
    /// Returns the text for this topic.
    ///
    /// # Errors
    /// The number of the first level that the topic does not have.
    pub fn fill(&self, topic: &str) -> Result<String, usize> {
        let levels: Vec<&str> = topic.split('/').collect();
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Level(level) => filled.push_str(levels.get(level - 1).ok_or(*level)?),
            }
        }
        Ok(filled)
    }

    /// Returns the number of the last level that it names; 0 if it names none.
    pub fn last_level(&self) -> usize {
        let levels = self.parts.iter().map(|part| match part {
            Part::Text(_) => 0,
            Part::Level(level) => *level,
        });
        levels.max().unwrap_or_default()
    }
}

impl FromStr for Template {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const ERROR: &str = "has a brace that does not belong to a level such as {1}";
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (level, after) = after.split_once('}').ok_or(ERROR)?;
            if level.starts_with(['0', '+']) {
                return Err(ERROR);
            }
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Level(level.parse().map_err(|_| ERROR)?));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        let has_brace = |part: &Part| matches!(part, Part::Text(text) if text.contains('}'));
        if parts.iter().any(has_brace) {
            return Err(ERROR);
        }
        Ok(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_whole_levels() {
        for filter in ["a", "a/b", "+/b/#", "#", "/", "a//b", "$SYS/+"] {
            assert_eq!(check_filter(filter), Ok(()), "{filter}");
        }
        for filter in
            ["", "a+/b", "a/#/b", "a/b#", "$share/g/a", "$queue/a", "$exclusive/a", "a\u{0}"]
        {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
        assert_eq!(max_levels("a/+/c"), Some(3));
        assert_eq!(max_levels("a/#"), None);
    }

    #[test]
    fn a_template_takes_levels_of_the_topic() {
        let template: Template = "line-{3}/{1}".parse().unwrap();
        assert_eq!(template.fill("plant/hall/7").as_deref(), Ok("line-7/plant"));
        assert_eq!(template.fill("plant/hall"), Err(3));
        assert_eq!(template.last_level(), 3);
        assert_eq!("x".parse::<Template>().unwrap().fill("a").as_deref(), Ok("x"));
        for text in ["{0}", "{a}", "{1", "1}", "{}", "{+1}", "{01}", "{-1}"] {
            assert!(text.parse::<Template>().is_err(), "{text}");
        }
    }
}
