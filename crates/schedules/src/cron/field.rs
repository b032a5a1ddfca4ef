//! The fields of a cron expression: the values allowed in each, and messages for invalid ones.

use holdfast_contract::problem::{Code, Problem};

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One field.
pub(super) struct Field {
    name: &'static str,
    low: u16,
    high: u16,
    /// Names for the numbers; the first one means `low`.
    names: &'static [&'static str],
    /// What a person may want to write, and what it means.
    example: (&'static str, &'static str),
}

const FIELDS: [Field; 6] = [
    Field { name: "second", low: 0, high: 59, names: &[], example: ("*/30 * * * * *", "every half minute") },
    Field {
        name: "minute",
        low: 0,
        high: 59,
        names: &[],
        example: ("*/15 * * * *", "every quarter of an hour"),
    },
    Field { name: "hour", low: 0, high: 23, names: &[], example: ("0 9,17 * * *", "at nine and at five") },
    Field { name: "day", low: 1, high: 31, names: &[], example: ("0 9 L * *", "on the last of every month") },
    Field { name: "month", low: 1, high: 12, names: MONTHS, example: ("0 9 1 JAN,JUL *", "twice a year") },
    Field {
        name: "weekday",
        low: 0,
        high: 7,
        names: WEEKDAYS,
        example: ("0 9 * * MON-FRI", "at nine on working days"),
    },
];

/// What is wrong with a field, and better help than its bounds.
struct Wrong {
    what: String,
    help: Option<String>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Self { what, help: None }
    }
}

/// The expression with names replaced by numbers, each field checked.
pub(super) fn plain(text: &str) -> Result<String, Problem> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let fields = match parts.len() {
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        count => return Err(wrong_count(text, count)),
    };
    let plain: Result<Vec<String>, Problem> = fields
        .iter()
        .zip(parts)
        .map(|(field, part)| field.plain(part).map_err(|wrong| field.problem(text, wrong)))
        .collect();
    Ok(plain?.join(" "))
}

fn wrong_count(text: &str, count: usize) -> Problem {
    let what = match count {
        0 => "nothing says when".to_owned(),
        1 => format!("`{text}` has one field, and five are needed"),
        _ => format!("`{text}` has {count} fields, and five or six are needed"),
    };
    let problem = Problem::new(Code::ScheduleCron, what);
    match count {
        7 => problem.help("There is no field for the year; for one moment, write `2027-01-31T09:00`."),
        _ => problem.help(
            "Write minute, hour, day, month and weekday: `0 3 * * *` is every day at three. An interval is `every 15m`.",
        ),
    }
}

impl Field {
    fn problem(&self, text: &str, wrong: Wrong) -> Problem {
        let (example, meaning) = self.example;
        let names = match self.names {
            [first, .., last] => format!(", or {first} to {last}"),
            _ => String::new(),
        };
        let bounds = format!("The {} goes from {} to {}{names}", self.name, self.low, self.high);
        let help = wrong.help.unwrap_or_else(|| format!("{bounds}; `{example}` is {meaning}."));
        let what = format!("the {} of `{text}` cannot be used: {}", self.name, wrong.what);
        Problem::new(Code::ScheduleCron, what).help(help)
    }

    fn plain(&self, part: &str) -> Result<String, Wrong> {
        let items: Result<Vec<String>, Wrong> = part.split(',').map(|item| self.item(item)).collect();
        Ok(items?.join(","))
    }

    /// One item of a list: a star, a number, a range, each perhaps with a step, or a day that depends on the month.
    fn item(&self, item: &str) -> Result<String, Wrong> {
        if item.is_empty() {
            return Err("a comma has nothing beside it".to_owned().into());
        }
        if let Some(special) = self.special(item) {
            return special;
        }
        let Some((range, step)) = item.split_once('/') else {
            return self.range(item);
        };
        let count: u16 = match step.parse() {
            Ok(0) => return Err(format!("the step of `{item}` is 0").into()),
            Ok(count) if count <= self.high => count,
            Ok(_) => return Err(format!("the step of `{item}` is past {}", self.high).into()),
            Err(_) => return Err(format!("the step of `{item}` is not a number").into()),
        };
        match range {
            "*" => Ok(format!("*/{count}")),
            "" => Err(Wrong {
                what: format!("`{item}` has a step and no range"),
                help: Some(format!("Write `*/{count}`.")),
            }),
            _ if range.contains('-') => Ok(format!("{}/{count}", self.range(range)?)),
            _ => {
                let from = self.number(range)?;
                let what = format!("`{item}` has a step and no range");
                Err(Wrong { what, help: Some(format!("Write `{from}-{}/{count}`.", self.high)) })
            }
        }
    }

    fn range(&self, range: &str) -> Result<String, Wrong> {
        let Some((from, to)) = range.split_once('-') else {
            return match range {
                "*" => Ok(range.to_owned()),
                "?" if self.is_day() => Ok("*".to_owned()),
                _ => self.number(range).map(|number| number.to_string()),
            };
        };
        let (from, to) = (self.number(from)?, self.number(to)?);
        // A week may end with its Sunday.
        let to = if self.name == "weekday" && to == 0 && from > 0 { 7 } else { to };
        if from > to {
            let last = if self.name == "weekday" { 6 } else { self.high };
            let what = format!("`{range}` goes backwards");
            let help = format!("Write it as two: `{from}-{last},{}-{to}`.", self.low);
            return Err(Wrong { what, help: Some(help) });
        }
        Ok(format!("{from}-{to}"))
    }

    fn number(&self, text: &str) -> Result<u16, Wrong> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(place) = named {
            return Ok(self.low + u16::try_from(place).unwrap_or_default());
        }
        if text.is_empty() || !text.chars().all(|sign| sign.is_ascii_digit()) {
            let what = match text {
                "" => "a number is missing".to_owned(),
                _ => format!("`{text}` is neither a number{}", self.other_signs()),
            };
            return Err(what.into());
        }
        match text.parse::<u16>() {
            Ok(number) if number < self.low => Err(format!("{text} is below {}", self.low).into()),
            Ok(number) if number <= self.high => Ok(number),
            _ => Err(format!("{text} is past {}", self.high).into()),
        }
    }

    fn other_signs(&self) -> &'static str {
        match self.names {
            [] => " nor `*`",
            _ => ", a name nor `*`",
        }
    }

    fn is_day(&self) -> bool {
        self.name == "day" || self.name == "weekday"
    }

    /// Days that depend on the month: `L`, `LW` and `15W` among the days, `FRI#2` and `FRIL` among the weekdays.
    fn special(&self, item: &str) -> Option<Result<String, Wrong>> {
        let upper = item.to_ascii_uppercase();
        match self.name {
            "day" if upper == "L" || upper == "LW" => Some(Ok(upper)),
            "day" => {
                let near = upper.strip_suffix('W').filter(|number| !number.is_empty())?;
                Some(self.number(near).map(|number| format!("{number}W")))
            }
            "weekday" if upper.contains('#') => {
                let (weekday, which) = upper.split_once('#')?;
                Some(self.number(weekday).and_then(|weekday| match which {
                    "1" | "2" | "3" | "4" | "5" => Ok(format!("{weekday}#{which}")),
                    _ => Err(format!("`#{which}` is not one of `#1` to `#5`").into()),
                }))
            }
            "weekday" => {
                let weekday = upper.strip_suffix('L').filter(|weekday| !weekday.is_empty())?;
                Some(self.number(weekday).map(|weekday| format!("{weekday}#L")))
            }
            _ => None,
        }
    }
}
