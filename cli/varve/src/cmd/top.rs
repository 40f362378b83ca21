//! `varve top`: a screen of memory use by tier and process, and of migration rates.

use super::top_lines::{Line, LineKind, lines};
use crate::args::top::TopArgs;
use crate::ui::{Done, failed, interrupted, print, stopped, wrong};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Row, Text};
use ratatui::widgets::Paragraph;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use varve_live::top::{Rates, TopSnapshot};

/// Columns of what is printed.
const COLUMNS: usize = 80;
/// Interval at which a request to end is noticed.
const SLICE: Duration = Duration::from_millis(200);

/// The last sample, and the changes since the one before.
struct Looks {
    processes: usize,
    at: Instant,
    now: TopSnapshot,
    rates: Option<Rates>,
}

impl Looks {
    fn begin(processes: usize) -> Looks {
        Looks {
            processes,
            at: Instant::now(),
            now: TopSnapshot::read(Path::new("/"), processes),
            rates: None,
        }
    }

    fn again(&mut self) {
        let now = TopSnapshot::read(Path::new("/"), self.processes);
        let seconds = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.rates = Some(Rates::between(&self.now, &now, seconds));
        self.now = now;
    }
}

pub fn top(a: &TopArgs) -> Done {
    match a.once {
        true => once(a),
        false => screen(a),
    }
}

fn once(a: &TopArgs) -> Done {
    let mut looks = Looks::begin(a.processes);
    while looks.at.elapsed() < a.every {
        if stopped() {
            return Err(interrupted());
        }
        std::thread::sleep(SLICE.min(a.every.saturating_sub(looks.at.elapsed())));
    }
    looks.again();
    if a.json {
        let all = json!({"now": looks.now, "rates": looks.rates});
        print(serde_json::to_string_pretty(&all).map_err(failed)?);
    } else {
        for line in lines(&looks.now, looks.rates.as_ref(), COLUMNS) {
            print(line.text);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn screen(a: &TopArgs) -> Done {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(wrong(
            "there is no terminal for a screen: --once prints what there is",
        ));
    }
    stopped(); // From here on SIGTERM is asked about, so that the terminal is left as it was.
    let no = |e: io::Error| failed(format!("the terminal cannot show a screen: {e}"));
    let mut looks = Looks::begin(a.processes);
    // Panics restore the terminal, too.
    let mut terminal = ratatui::try_init().map_err(no)?;
    let ended = watch(a, &mut looks, &mut |looks, from| {
        let mut last = 0;
        terminal.draw(|frame| last = draw(frame, looks.0, looks.1, from))?;
        Ok(last)
    });
    ratatui::try_restore().map_err(no)?;
    match ended.map_err(no)? {
        true => Ok(ExitCode::SUCCESS),
        false => Err(interrupted()),
    }
}

/// Draws a sample from a line on, and returns the last line from which it can be drawn.
type Draw<'a> = dyn FnMut((&TopSnapshot, Option<&Rates>), u16) -> io::Result<u16> + 'a;

/// Samples and draws until the user quits, which returns true, or until a signal asks to end.
fn watch(a: &TopArgs, looks: &mut Looks, draw: &mut Draw<'_>) -> io::Result<bool> {
    let (mut from, page) = (0u16, 10);
    loop {
        let last = draw((&looks.now, looks.rates.as_ref()), from)?;
        from = from.min(last);
        while looks.at.elapsed() < a.every {
            if stopped() {
                return Ok(false);
            }
            if !event::poll(SLICE.min(a.every.saturating_sub(looks.at.elapsed())))? {
                continue;
            }
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                        return Ok(true);
                    }
                    KeyCode::Down | KeyCode::Char('j') => from = (from + 1).min(last),
                    KeyCode::Up | KeyCode::Char('k') => from = from.saturating_sub(1),
                    KeyCode::PageDown => from = (from + page).min(last),
                    KeyCode::PageUp => from = from.saturating_sub(page),
                    _ => continue,
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            draw((&looks.now, looks.rates.as_ref()), from)?;
        }
        looks.again();
    }
}

fn draw(frame: &mut Frame<'_>, now: &TopSnapshot, rates: Option<&Rates>, from: u16) -> u16 {
    let area = frame.area();
    let all = lines(now, rates, area.width.into());
    let last = (all.len() as u16).saturating_sub(area.height);
    let row = |line: Line| {
        let style = match line.kind {
            LineKind::Title => Style::new().add_modifier(Modifier::BOLD),
            LineKind::Plain => Style::new(),
            LineKind::Note => Style::new().add_modifier(Modifier::DIM),
        };
        Row::styled(line.text, style)
    };
    let text = Text::from_iter(all.into_iter().map(row));
    frame.render_widget(Paragraph::new(text).scroll((from.min(last), 0)), area);
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::top_lines::tests::two_looks;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn rows(terminal: &Terminal<TestBackend>) -> Vec<String> {
        let shown = terminal.backend().to_string();
        shown
            .lines()
            .map(|row| row.trim_matches('"').trim_end().to_string())
            .collect()
    }

    /// The screen is what is printed, as far as it goes, and scrolls to its end and no further.
    #[test]
    fn a_screen_shows_the_lines_and_scrolls_to_the_last() {
        let (now, rates) = two_looks();
        let all = lines(&now, Some(&rates), 80);
        let texts: Vec<String> = all.iter().map(|line| line.text.clone()).collect();
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).unwrap();
        let mut last = 0;
        terminal
            .draw(|frame| last = draw(frame, &now, Some(&rates), 0))
            .unwrap();
        assert_eq!(usize::from(last), texts.len() - 12);
        assert_eq!(rows(&terminal), texts[..12]);
        terminal
            .draw(|frame| last = draw(frame, &now, Some(&rates), u16::MAX))
            .unwrap();
        assert_eq!(rows(&terminal), texts[texts.len() - 12..]);
        let first = terminal.backend().buffer().cell((0, 0)).unwrap();
        assert_eq!(
            first.modifier.contains(Modifier::BOLD),
            all[all.len() - 12].kind == LineKind::Title
        );
        // A screen that has room for all has nothing to scroll; one of no size is no reason to panic.
        for (width, height, scrolls) in [(120, 200, false), (10, 3, true), (1, 1, true)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal
                .draw(|frame| last = draw(frame, &now, None, 0))
                .unwrap();
            assert_eq!(last > 0, scrolls, "{width} x {height}");
        }
    }
}
