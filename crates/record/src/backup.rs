//! Recordings as one file, and back: a plain tar archive, a folder a run, as any tar reads it. Parquet is compressed already.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use tar::{Archive, Builder, EntryType, Header};

use crate::coming::{Coming, is_plain_name};
use crate::error::{Error, Result};
use crate::lock::is_locked;
use crate::{layout, private};

/// Files of one run; more is no recording.
pub(crate) const FILES_MAX: usize = 100_000;
/// All that stands before a file's content: its header, and those of a long name.
const HEADER_BYTES_MAX: u64 = 64 << 10;
/// An archive ends with this many zeros at least. One that does not was cut off, possibly between two files.
const END_BYTES: usize = 1024;
const PIECE_BYTES: usize = 64 << 10;

/// Writes recordings into one file. Returns their bytes.
///
/// # Errors
/// One is no recording or is being recorded, the file exists, or something can't be read or written.
pub fn backup_runs(runs: &[PathBuf], file: &Path) -> Result<u64> {
    check(runs)?;
    let io = |cause| Error::io(file, cause);
    let mut out = BufWriter::new(File::options().write(true).create_new(true).open(file).map_err(io)?);
    let written = write_all(runs, &mut out).and_then(|bytes| {
        out.flush().and_then(|()| out.get_ref().sync_all()).map_err(unfinished)?;
        Ok(bytes)
    });
    if written.is_err() {
        // Half a backup is worse than none; why it failed matters more than whether this worked.
        let _ = fs::remove_file(file);
    }
    written
}

/// The same to whatever takes it, a piece at a time: nothing is written where one can't be backed up.
///
/// # Errors
/// One is no recording or is being recorded, or something can't be read or written.
pub fn backup_to(runs: &[PathBuf], mut out: impl Write) -> Result<u64> {
    check(runs)?;
    let bytes = write_all(runs, &mut out)?;
    out.flush().map_err(unfinished)?;
    Ok(bytes)
}

/// Refuses what is no recording, and what is being recorded.
pub(crate) fn check(runs: &[PathBuf]) -> Result<()> {
    for dir in runs {
        if !dir.join(layout::RUN).is_file() {
            return Err(Error::NotARecording(dir.clone()));
        }
        if is_locked(dir) {
            return Err(Error::Live(dir.clone()));
        }
    }
    Ok(())
}

fn unfinished(cause: io::Error) -> Error {
    Error::Backup(format!("the backup could not be finished: {cause}"))
}

/// What a recorder that was killed leaves: its reserve, and files that were never finished.
fn is_left_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The files of a recording that belong to a copy of it, by name.
pub(crate) fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(|cause| Error::io(dir, cause))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|about| about.is_file()) && !is_left_over(path))
        .collect();
    files.sort();
    Ok(files)
}

fn write_all(runs: &[PathBuf], out: &mut impl Write) -> Result<u64> {
    let mut archive = Builder::new(out);
    let mut bytes = 0;
    for dir in runs {
        let run = dir.file_name().map(PathBuf::from).ok_or_else(|| Error::NotARecording(dir.clone()))?;
        let files = files_of(dir)?;
        for path in files {
            let io = |cause| Error::io(&path, cause);
            let content = private::open_file(&path).map_err(io)?;
            let about = content.metadata().map_err(io)?;
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o600);
            header.set_size(about.len());
            let modified = about.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            header.set_mtime(modified.map_or(0, |since| since.as_secs()));
            let name = run.join(path.file_name().unwrap_or_default());
            // A file that grows meanwhile is no reason for a broken archive; of one that shrinks, what is missing would be the next file's.
            let mut content = Exactly { content, left: about.len() };
            archive.append_data(&mut header, &name, &mut content).map_err(io)?;
            bytes += about.len();
        }
    }
    archive.finish().map_err(unfinished)?;
    Ok(bytes)
}

/// A number of bytes of a file. A file that has fewer is an error.
struct Exactly {
    content: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.content).take(self.left).read(bytes)?;
        if read == 0 && self.left > 0 && !bytes.is_empty() {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it became shorter while it was read"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// Imports the recordings of a backup into the folder `runs`. Returns their ids, and second those that were there already and stay as they are.
///
/// # Errors
/// The file is no backup of recordings, or something can't be read or written. What was not imported as a whole is removed.
pub fn import_runs(file: &Path, runs: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let opened = File::open(file).map_err(|cause| Error::io(file, cause))?;
    import_from(BufReader::new(opened), &file.display().to_string(), runs)
}

/// The same from whatever gives it, a piece at a time. `named`: what an error calls it.
///
/// # Errors
/// As of [`import_runs`].
pub fn import_from(archive: impl Read, named: &str, runs: &Path) -> Result<(Vec<String>, Vec<String>)> {
    fs::create_dir_all(runs).map_err(|cause| Error::io(runs, cause))?;
    let coming = Coming::create(runs)?;
    let coming = &coming.dir;
    unpack(archive, named, coming, runs).and_then(|there| {
        let mut imported = Vec::new();
        for id in names(coming)? {
            if !coming.join(&id).join(layout::RUN).is_file() {
                return Err(Error::Backup(format!("{named} holds a folder {id} that is no recording")));
            }
            imported.push(id);
        }
        for id in &imported {
            let (from, to) = (coming.join(id), runs.join(id));
            fs::rename(&from, &to).map_err(|cause| Error::io(&to, cause))?;
        }
        if imported.is_empty() && there.is_empty() {
            return Err(Error::Backup(format!("{named} holds no recording")));
        }
        Ok((imported, there))
    })
}

/// Imports only plain files in folders one deep. Anything else in an archive leads out of the folder, or belongs to no recording.
fn unpack(archive: impl Read, named: &str, coming: &Path, runs: &Path) -> Result<Vec<String>> {
    let broken = |cause: io::Error| Error::Backup(format!("{named} can't be read as a backup: {cause}"));
    let allowed = Rc::new(Cell::new(HEADER_BYTES_MAX));
    let mut archive = Archive::new(Ending { archive, zeros: 0, allowed: allowed.clone() });
    let mut there: Vec<String> = Vec::new();
    let mut entries = archive.entries().map_err(broken)?;
    for number in 0.. {
        // A long name is read into memory as a whole, and so its length has a bound.
        allowed.set(HEADER_BYTES_MAX);
        let Some(entry) = entries.next() else { break };
        allowed.set(u64::MAX);
        let mut entry = entry.map_err(broken)?;
        if entry.header().entry_type() == EntryType::Directory {
            drain(&mut entry).map_err(broken)?;
            continue;
        }
        let path = entry.path().map_err(broken)?.into_owned();
        let Some((id, name)) = plain(&path).filter(|_| entry.header().entry_type() == EntryType::Regular)
        else {
            return Err(Error::Backup(format!(
                "{named} holds {}, which is no file of a recording: nothing was taken in",
                path.display().to_string().escape_debug()
            )));
        };
        if number > FILES_MAX {
            return Err(Error::Backup(format!("{named} holds more than {FILES_MAX} files")));
        }
        if there.contains(&id) || runs.join(&id).exists() {
            if !there.contains(&id) {
                there.push(id);
            }
            drain(&mut entry).map_err(broken)?;
            continue;
        }
        let dir = coming.join(&id);
        private::create_folder(&dir).map_err(|cause| Error::io(&dir, cause))?;
        let path = dir.join(name);
        let io = |cause| Error::io(&path, cause);
        let mut out = match private::create_new_file(&path) {
            Ok(out) => out,
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::Backup(format!("{named} holds a file twice: nothing was taken in")));
            }
            Err(cause) => return Err(io(cause)),
        };
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match entry.read(&mut piece).map_err(broken)? {
                0 => break,
                read => out.write_all(&piece[..read]).map_err(io)?,
            }
        }
        out.sync_all().map_err(io)?;
    }
    allowed.set(u64::MAX);
    let mut archive = archive.into_inner();
    io::copy(&mut archive, &mut io::sink()).map_err(broken)?;
    match archive.zeros >= END_BYTES {
        true => Ok(there),
        false => Err(Error::Backup(format!("{named} is cut off: nothing was taken in"))),
    }
}

fn drain(entry: &mut impl Read) -> io::Result<u64> {
    io::copy(entry, &mut io::sink())
}

/// Knows with how many zeros an archive ends, and reads no more than is allowed.
struct Ending<R> {
    archive: R,
    zeros: usize,
    /// Bytes that may be read from here on.
    allowed: Rc<Cell<u64>>,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowed.get();
        if allowed == 0 && !bytes.is_empty() {
            let why = format!("a header of more than {HEADER_BYTES_MAX} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        let length = bytes.len().min(usize::try_from(allowed).unwrap_or(usize::MAX));
        let read = self.archive.read(&mut bytes[..length])?;
        self.allowed.set(allowed.saturating_sub(read as u64));
        let zeros = bytes[..read].iter().rev().take_while(|byte| **byte == 0).count();
        self.zeros = if zeros == read { self.zeros.saturating_add(read) } else { zeros };
        Ok(read)
    }
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
    (is_plain_name(id) && is_plain_name(name) && !id.starts_with('.'))
        .then(|| (id.to_string(), name.to_string()))
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
    fn an_archive_that_is_cut_off_is_refused_wherever_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from/one"), folder.path().join("to"));
        Recorder::create(&from, Options::default()).unwrap().finish().unwrap();
        let mut whole = Vec::new();
        backup_to(&[from], &mut whole).unwrap();
        for length in (0..whole.len()).step_by(512) {
            let refused = import_from(&whole[..length], "it", &to);
            assert!(matches!(refused, Err(Error::Backup(_))), "{length}: {refused:?}");
            assert_eq!(fs::read_dir(&to).unwrap().count(), 0, "{length}");
        }
        assert_eq!(import_from(&whole[..], "it", &to).unwrap().0, ["one"]);
    }

    #[test]
    fn a_header_that_does_not_end_is_refused_before_it_fills_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let mut header = Header::new_gnu();
            header.set_path("././@LongLink").unwrap();
            header.set_entry_type(kind);
            header.set_size(8 << 30);
            header.set_cksum();
            let without_end = header.as_bytes().as_slice().chain(io::repeat(b'x'));
            let Err(Error::Backup(why)) = import_from(without_end, "it", &to) else { panic!("{kind:?}") };
            assert!(why.contains("a header of more than 65536 bytes"), "{why}");
            assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
        }
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
        // An import that was killed left this.
        fs::create_dir_all(to.join(".importing-0/one")).unwrap();
        make(b"good/link", EntryType::Symlink);
        assert!(import_runs(&file, &to).is_err());
        fs::write(&file, "no archive at all").unwrap();
        assert!(import_runs(&file, &to).is_err());
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    }
}
