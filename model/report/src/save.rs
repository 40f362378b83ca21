//! Everything that a result leaves on disk.

use crate::{Error, RunReport, StudyResult, columnar, file, html, svg};
use std::path::{Path, PathBuf};

impl StudyResult {
    /// Write `results.json`, `index.html` and the Parquet files of [`columnar::study`] into a folder that
    /// exists; the files written, in that order. Each file appears whole or not at all.
    ///
    /// ```
    /// let folder = tempfile::tempdir().unwrap();
    /// let result = varve_report::StudyResult::new("johnny-cache", "optane-6230", 1, "0.1.0");
    /// let files = result.save(folder.path())?;
    /// assert!(files[0].ends_with("results.json") && files.iter().all(|f| f.exists()));
    /// # Ok::<(), varve_report::Error>(())
    /// ```
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        // The page first, because it checks the result: an inconsistent one leaves nothing behind.
        let page = html::study(self)?;
        let mut written = vec![folder.join("results.json"), folder.join("index.html")];
        self.write(&written[0])?;
        file::write_atomically(&written[1], page.as_bytes())?;
        written.extend(columnar::study(self, folder)?);
        Ok(written)
    }
}

impl RunReport {
    /// Write `results.json`, `index.html`, `table.parquet`, one `chart-ID.parquet` and `chart-ID.svg` per chart and the files of
    /// [`columnar::records`] into a folder that exists; the files written, in that order. Each file appears whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let page = html::runs(self)?;
        let mut written = vec![
            folder.join("results.json"),
            folder.join("index.html"),
            folder.join("table.parquet"),
        ];
        self.write(&written[0])?;
        file::write_atomically(&written[1], page.as_bytes())?;
        columnar::table(&self.table, &self.origin, &written[2])?;
        for chart in &self.charts {
            let path = folder.join(format!("chart-{}.parquet", chart.id));
            columnar::chart(chart, &self.origin, &path)?;
            written.push(path);
            if let Some(picture) = svg::picture(chart) {
                let path = folder.join(format!("chart-{}.svg", chart.id));
                file::write_atomically(&path, picture.as_bytes())?;
                written.push(path);
            }
        }
        written.extend(columnar::records(self, folder)?);
        Ok(written)
    }
}
