//! An observer of pages that is not one of ours, as the tutorial has it: the program itself says which addresses it uses.

// begin: observer
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use varve_live::tier::{Observer, Use};

/// Pages that a program names in a file, an address in hexadecimal on each line.
struct Named {
    lines: BufReader<File>,
    page_bytes: u64,
}

impl Observer for Named {
    fn look(&mut self, pages: &[u64], uses: &mut Vec<Use>) -> io::Result<()> {
        let mut named = Vec::new();
        let mut line = String::new();
        // The file grows: the next scan goes on where this one ended.
        while self.lines.read_line(&mut line)? > 0 {
            if let Ok(address) = u64::from_str_radix(line.trim(), 16) {
                named.push(address / self.page_bytes);
            }
            line.clear();
        }
        named.sort_unstable();
        named.dedup();
        // Only pages that are known, ascending.
        named.retain(|page| pages.binary_search(page).is_ok());
        uses.extend(named.into_iter().map(|page| Use {
            page,
            writes: false,
        }));
        Ok(())
    }
}
// end: observer

#[test]
fn an_observer_from_outside_reports_known_pages_in_order_and_each_once() {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let lines = BufReader::new(File::open(file.path()).unwrap());
    let mut observer: Box<dyn Observer> = Box::new(Named {
        lines,
        page_bytes: 4096,
    });
    let mut scan = |known: &[u64]| {
        let mut uses = Vec::new();
        observer.look(known, &mut uses).unwrap();
        uses.iter().map(|u| u.page).collect::<Vec<_>>()
    };
    assert!(scan(&[1, 2, 3]).is_empty());
    writeln!(file, "3000\n1fff\n1000\nnonsense\n9000").unwrap();
    assert_eq!(scan(&[1, 2, 3]), [1, 3]);
    assert!(scan(&[1, 2, 3]).is_empty());
    writeln!(file, "9000").unwrap();
    assert_eq!(scan(&[1, 9]), [9]);
}
