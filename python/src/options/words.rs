//! A keyword and its value as words of a command line.

use crate::errors::wrong;
use clap::{Arg, ArgAction};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};
use std::ffi::OsString;
use std::path::PathBuf;

/// `--key=value`, once or for each item of a list, or `--flag`.
pub fn of(arg: &Arg, key: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    let flag = format!("--{}", arg.get_long().unwrap_or_default());
    if !arg.get_action().takes_values() {
        let Ok(is_set) = value.cast::<PyBool>() else {
            let line = format!("{key}={value}: say True or False");
            return Err(wrong(value.py(), line));
        };
        return Ok(is_set.is_true().then(|| flag.into()).into_iter().collect());
    }
    let values = match items(value) {
        None => vec![text(value)?],
        Some(items) => {
            let items = items?.iter().map(text).collect::<PyResult<Vec<_>>>()?;
            match arg.get_action() {
                ArgAction::Append => items,
                _ => vec![items.join(",".as_ref())],
            }
        }
    };
    let word = |value: OsString| {
        let mut word = OsString::from(&flag);
        word.push("=");
        word.push(value);
        word
    };
    Ok(values.into_iter().map(word).collect())
}

/// The items of a list.
fn items<'py>(value: &Bound<'py, PyAny>) -> Option<PyResult<Vec<Bound<'py, PyAny>>>> {
    let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    is_list.then(|| value.try_iter()?.collect())
}

/// A text, a path or a number as one writes it.
fn text(value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    match value.extract::<PathBuf>() {
        Ok(path) => Ok(path.into()),
        Err(_) => Ok(value.str()?.to_string().into()),
    }
}
