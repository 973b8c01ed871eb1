//! Recordings as one file, and back: a plain tar archive, a folder a run, as any tar reads it. Parquet is compressed already.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header};

use crate::error::{Error, Result};
use crate::layout;
use crate::write::is_locked;

/// Files of one run; more is no recording.
const FILES_MAX: usize = 100_000;
/// What is being taken in has this before its name.
const COMING: &str = ".importing-";
/// A run's name in an archive, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Writes recordings into one file. Gives their bytes.
///
/// # Errors
/// One is no recording or is being recorded, the file exists, or something can't be read or written.
pub fn backup_runs(runs: &[PathBuf], file: &Path) -> Result<u64> {
    for dir in runs {
        if !dir.join(layout::RUN).is_file() {
            return Err(Error::NotARecording(dir.clone()));
        }
        if is_locked(dir) {
            return Err(Error::Live(dir.clone()));
        }
    }
    let io = |cause| Error::io(file, cause);
    let created = File::options().write(true).create_new(true).open(file).map_err(io)?;
    let written = write_all(runs, created);
    if written.is_err() {
        // Half a backup is worse than none; why it failed matters more than whether this worked.
        let _ = fs::remove_file(file);
    }
    written
}

fn write_all(runs: &[PathBuf], file: File) -> Result<u64> {
    let mut archive = Builder::new(BufWriter::new(file));
    let mut bytes = 0;
    for dir in runs {
        let run = dir.file_name().map(PathBuf::from).ok_or_else(|| Error::NotARecording(dir.clone()))?;
        let mut files: Vec<PathBuf> = fs::read_dir(dir)
            .map_err(|cause| Error::io(dir, cause))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file()))
            .collect();
        files.sort();
        for path in files {
            let io = |cause| Error::io(&path, cause);
            let content = File::open(&path).map_err(io)?;
            let about = content.metadata().map_err(io)?;
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o644);
            header.set_size(about.len());
            let modified = about.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            header.set_mtime(modified.map_or(0, |since| since.as_secs()));
            let name = run.join(path.file_name().unwrap_or_default());
            // A file that grows meanwhile is no reason for a broken archive.
            archive.append_data(&mut header, &name, content.take(about.len())).map_err(io)?;
            bytes += about.len();
        }
    }
    let done = archive.into_inner().and_then(|mut file| {
        file.flush()?;
        file.into_inner().map_err(|error| error.into_error())?.sync_all()
    });
    done.map_err(|cause| Error::Backup(format!("the backup could not be finished: {cause}")))?;
    Ok(bytes)
}

/// Takes the recordings of a backup into the folder `runs`. Gives their ids; those that were there already are left alone, and given second.
///
/// # Errors
/// The file is no backup of recordings, or something can't be read or written; what was not taken in whole is removed.
pub fn import_runs(file: &Path, runs: &Path) -> Result<(Vec<String>, Vec<String>)> {
    fs::create_dir_all(runs).map_err(|cause| Error::io(runs, cause))?;
    let coming = runs.join(format!("{COMING}{}", std::process::id()));
    fs::create_dir(&coming).map_err(|cause| Error::io(&coming, cause))?;
    let taken = unpack(file, &coming, runs).and_then(|there| {
        let mut imported = Vec::new();
        for id in names(&coming)? {
            let from = coming.join(&id);
            if !from.join(layout::RUN).is_file() {
                return Err(Error::Backup(format!(
                    "{} holds a folder {id} that is no recording",
                    file.display()
                )));
            }
            imported.push(id);
        }
        for id in &imported {
            let (from, to) = (coming.join(id), runs.join(id));
            fs::rename(&from, &to).map_err(|cause| Error::io(&to, cause))?;
        }
        if imported.is_empty() && there.is_empty() {
            return Err(Error::Backup(format!("{} holds no recording", file.display())));
        }
        Ok((imported, there))
    });
    // What is left in it is of no use; why the import failed matters more than whether this worked.
    let _ = fs::remove_dir_all(&coming);
    taken
}

/// Only plain files in folders one deep are taken: whatever else an archive holds leads out of the folder, or is none of ours.
fn unpack(file: &Path, coming: &Path, runs: &Path) -> Result<Vec<String>> {
    let broken =
        |cause: io::Error| Error::Backup(format!("{} can't be read as a backup: {cause}", file.display()));
    let opened = File::open(file).map_err(|cause| Error::io(file, cause))?;
    let mut archive = Archive::new(BufReader::new(opened));
    let mut there: Vec<String> = Vec::new();
    for (number, entry) in archive.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if entry.header().entry_type() == EntryType::Directory {
            continue;
        }
        let path = entry.path().map_err(broken)?.into_owned();
        let Some((id, name)) = plain(&path).filter(|_| entry.header().entry_type() == EntryType::Regular)
        else {
            return Err(Error::Backup(format!(
                "{} holds {}, which is no file of a recording: nothing was taken in",
                file.display(),
                path.display().to_string().escape_debug()
            )));
        };
        if number > FILES_MAX {
            return Err(Error::Backup(format!("{} holds more than {FILES_MAX} files", file.display())));
        }
        if there.contains(&id) || runs.join(&id).exists() {
            if !there.contains(&id) {
                there.push(id);
            }
            continue;
        }
        let dir = coming.join(&id);
        fs::create_dir_all(&dir).map_err(|cause| Error::io(&dir, cause))?;
        let path = dir.join(name);
        let mut out = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|cause| Error::io(&path, cause))?;
        io::copy(&mut entry, &mut out).map_err(|cause| Error::io(&path, cause))?;
        out.sync_all().map_err(|cause| Error::io(&path, cause))?;
    }
    Ok(there)
}

/// The run's folder and the file's name; `None` for any path but FOLDER/FILE.
fn plain(path: &Path) -> Option<(String, String)> {
    let parts: Option<Vec<&str>> = path
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let [id, name] = parts?[..] else { return None };
    let is_plain = |name: &str| name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
    (is_plain(id) && is_plain(name) && !id.starts_with('.')).then(|| (id.to_string(), name.to_string()))
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).map_err(|cause| Error::io(dir, cause))?;
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Recorder, Recording, add_note, list_runs};

    #[test]
    fn runs_come_back_as_they_were_and_those_that_are_there_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to, file) =
            (folder.path().join("from"), folder.path().join("to"), folder.path().join("all.tar"));
        for id in ["one", "two"] {
            Recorder::create(&from.join(id), Options::default()).unwrap().finish().unwrap();
            add_note(&from.join(id), 5, id).unwrap();
        }
        let bytes = backup_runs(&[from.join("one"), from.join("two")], &file).unwrap();
        assert!(bytes > 0 && fs::metadata(&file).unwrap().len() > bytes);
        assert!(backup_runs(&[from.join("one")], &file).is_err(), "a file that exists is not written over");
        Recorder::create(&to.join("two"), Options::default()).unwrap().finish().unwrap();
        let (imported, there) = import_runs(&file, &to).unwrap();
        assert_eq!((imported, there), (vec!["one".to_string()], vec!["two".to_string()]));
        assert_eq!(Recording::open(&to.join("one")).unwrap().events().unwrap()[0].text, "one");
        assert_eq!(Recording::open(&to.join("two")).unwrap().events().unwrap().len(), 0);
        assert_eq!(fs::read_dir(&to).unwrap().count(), 2);
        assert_eq!(list_runs(&to).unwrap().len(), 2);
    }

    #[test]
    fn an_archive_that_leads_out_of_the_folder_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("deep/to");
        let file = folder.path().join("evil.tar");
        let make = |name: &[u8], kind: EntryType| {
            let mut archive = Builder::new(File::create(&file).unwrap());
            for (name, kind) in [(b"good/run.json".as_slice(), EntryType::Regular), (name, kind)] {
                let mut header = Header::new_old();
                header.as_mut_bytes()[..name.len()].copy_from_slice(name);
                header.set_entry_type(kind);
                header.set_mode(0o644);
                header.set_size(2);
                header.set_cksum();
                archive.append(&header, &b"{}"[..]).unwrap();
            }
            archive.into_inner().unwrap();
        };
        for name in
            ["../evil", "/tmp/evil-whyso", "good/../../evil", "good/sub/evil", "evil", ".hidden/run.json"]
        {
            make(name.as_bytes(), EntryType::Regular);
            assert!(matches!(import_runs(&file, &to), Err(Error::Backup(_))), "{name}");
            assert_eq!(fs::read_dir(&to).unwrap().count(), 0, "{name}");
        }
        make(b"good/link", EntryType::Symlink);
        assert!(import_runs(&file, &to).is_err());
        fs::write(&file, "no archive at all").unwrap();
        assert!(import_runs(&file, &to).is_err());
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    }
}
