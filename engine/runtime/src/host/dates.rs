//! `java.util.Date` of TeaVM's library, which asks JavaScript for years, months and hours. Here the time zone is UTC, as it is for the rest of
//! the library (`TimeZone.getDefault()` is GMT).

use super::State;
use super::arguments::{C, number, result, unsupported};
use super::js::Js;
use crate::{Linker, Result, Val};
use std::sync::atomic::{AtomicI64, Ordering};

const DAY_MS: i64 = 86_400_000;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// A time in UTC by the Gregorian calendar. Numbers may be too large or too small: then they count on into the next larger unit.
#[derive(Clone, Copy)]
struct Civil {
    year: i64,
    /// From 0.
    month: i64,
    /// From 1.
    day: i64,
    /// Milliseconds since midnight.
    time: i64,
}

impl Civil {
    fn of(millis: i64) -> Civil {
        // Years begin in March here, so that a leap day is the last of its year. An era is 400 years.
        let days = millis.div_euclid(DAY_MS) + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let january = month >= 10;
        Civil {
            year: era * 400 + year + i64::from(january),
            month: if january { month - 10 } else { month + 2 },
            day: day - (153 * month + 2) / 5 + 1,
            time: millis.rem_euclid(DAY_MS),
        }
    }

    fn millis(self) -> i64 {
        let (year, month) = (
            self.year + self.month.div_euclid(12),
            self.month.rem_euclid(12),
        );
        let (year, month) = match month < 2 {
            true => (year - 1, month + 10),
            false => (year, month - 2),
        };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        days * DAY_MS + self.time
    }

    fn weekday(self) -> usize {
        (self.millis().div_euclid(DAY_MS) + 4).rem_euclid(7) as usize
    }

    fn clock(self) -> String {
        let seconds = self.time / 1000;
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }

    /// As `Date.toString` has it: `Thu Jan 01 00:00:00 UTC 1970`.
    fn text(self) -> String {
        let (day, month) = (DAYS[self.weekday()], MONTHS[self.month as usize]);
        format!(
            "{day} {month} {:02} {} UTC {:04}",
            self.day,
            self.clock(),
            self.year
        )
    }

    /// As `Date.toGMTString` has it, which asks for JavaScript's `toUTCString`: `1 Jan 1970 00:00:00 GMT`.
    fn utc_text(self) -> String {
        let month = MONTHS[self.month as usize];
        format!("{} {month} {:04} {} GMT", self.day, self.year, self.clock())
    }
}

/// Year, month, day, hours, minutes and seconds. As in JavaScript, a year from 0 to 99 is one of the 20th century.
fn of_parts(parts: &[Val]) -> i64 {
    let part = |i: usize| number(&parts[i]) as i64;
    let year = part(0);
    let civil = Civil {
        year: if (0..100).contains(&year) {
            1900 + year
        } else {
            year
        },
        month: part(1),
        day: part(2),
        time: 0,
    };
    civil.millis() + ((part(3) * 60 + part(4)) * 60 + part(5)) * 1000
}

type Get = fn(Civil) -> i64;
type Set = fn(&mut Civil, i64);

pub fn link(linker: &mut Linker<State>) {
    let m = "teavmDate";
    linker.func_any(m, "currentTimeMillis", (0, 1), |c: C<'_>, _, r| {
        result(&mut r[0], c.data().clock.date().as_millis() as f64);
        Ok(())
    });
    for name in ["create", "createFromUTC"] {
        linker.func_any(m, name, (6, 1), |_: C<'_>, a, r| {
            result(&mut r[0], of_parts(a) as f64);
            Ok(())
        });
    }
    linker.func_any(m, "dateToString", (1, 1), |c: C<'_>, a, r| {
        let text = Civil::of(number(&a[0]) as i64).text();
        r[0] = Js::String(text.encode_utf16().collect()).put(c)?;
        Ok(())
    });
    let getters: [(&str, Get); 3] = [
        ("getYear", |c| c.year),
        ("getMonth", |c| c.month),
        ("getDate", |c| c.day),
    ];
    for (name, get) in getters {
        linker.func_any(m, name, (1, 1), move |_: C<'_>, a, r| {
            result(&mut r[0], get(Civil::of(number(&a[0]) as i64)) as f64);
            Ok(())
        });
    }
    let setters: [(&str, Set); 3] = [
        ("setYear", |c, n| c.year = n),
        ("setMonth", |c, n| c.month = n),
        ("setDate", |c, n| c.day = n),
    ];
    for (name, set) in setters {
        linker.func_any(m, name, (2, 1), move |_: C<'_>, a, r| {
            let mut civil = Civil::of(number(&a[0]) as i64);
            set(&mut civil, number(&a[1]) as i64);
            result(&mut r[0], civil.millis() as f64);
            Ok(())
        });
    }
}

/// The result of a getter of JavaScript's dates.
pub fn get(date: &AtomicI64, method: &str) -> Result<Js> {
    let millis = date.load(Ordering::Relaxed);
    let civil = Civil::of(millis);
    let n = match method {
        "getTime" => millis,
        "getFullYear" => civil.year,
        "getMonth" => civil.month,
        "getDate" => civil.day,
        "getDay" => civil.weekday() as i64,
        "getHours" => civil.time / 3_600_000,
        "getMinutes" => civil.time / 60_000 % 60,
        "getSeconds" => civil.time / 1000 % 60,
        "getTimezoneOffset" => 0,
        "toUTCString" | "toGMTString" => {
            return Ok(Js::String(civil.utc_text().encode_utf16().collect()));
        }
        _ => return Err(unsupported(format!("the method `{method}` of a date"))),
    };
    Ok(Js::Number(n as f64))
}

/// Calls a setter of JavaScript's dates with one number.
pub fn set(date: &AtomicI64, method: &str, n: f64) -> Result<Js> {
    let n = n as i64;
    let mut civil = Civil::of(date.load(Ordering::Relaxed));
    let time = civil.time;
    match method {
        "setFullYear" => civil.year = n,
        "setMonth" => civil.month = n,
        "setDate" => civil.day = n,
        "setHours" => civil.time = n * 3_600_000 + time % 3_600_000,
        "setMinutes" => civil.time = time - time / 60_000 % 60 * 60_000 + n * 60_000,
        "setSeconds" => civil.time = time - time / 1000 % 60 * 1000 + n * 1000,
        _ => return Err(unsupported(format!("the method `{method}` of a date"))),
    }
    date.store(civil.millis(), Ordering::Relaxed);
    Ok(Js::Number(civil.millis() as f64))
}

#[cfg(test)]
mod tests {
    use super::Civil;

    #[test]
    fn days_go_there_and_back() {
        for days in (-800_000..800_000).step_by(97) {
            let millis = days * super::DAY_MS + 12_345_678;
            let civil = Civil::of(millis);
            assert_eq!(civil.millis(), millis);
            assert!((0..12).contains(&civil.month) && (1..32).contains(&civil.day));
        }
        assert_eq!(Civil::of(0).text(), "Thu Jan 01 00:00:00 UTC 1970");
        let leap = 951_782_400_000;
        assert_eq!(Civil::of(leap).utc_text(), "29 Feb 2000 00:00:00 GMT");
        let mut later = Civil::of(leap);
        later.month += 12;
        assert_eq!(
            Civil::of(later.millis()).text(),
            "Thu Mar 01 00:00:00 UTC 2001"
        );
    }
}
