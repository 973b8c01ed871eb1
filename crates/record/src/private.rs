//! Files and folders of recordings. Settings, statements and command lines may hold what is secret, so only their owner may read them.
//! A folder from elsewhere may hold links that lead out of it, so none is followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes a folder where there is none, and the ones above it.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        created => created,
    }
}

/// Makes a folder that must not be there yet.
pub(crate) fn create_new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Opens a file to read it. Anything but a plain file in the folder itself is refused: a link may lead out of it, and a pipe may never answer.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

/// Reads a file that is at most so long.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_file(path)?.take(bytes_max + 1).read_to_end(&mut content)?;
    match content.len() as u64 > bytes_max {
        true => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {bytes_max} bytes")))
        }
        false => Ok(content),
    }
}

/// Opens a file to write it from its beginning. A symbolic link is refused.
pub fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Opens a file that must not be there yet.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
}

/// What has to be written first to a file of lines so that a new line begins. It is a line break where a writer was stopped within a line.
pub(crate) fn line_break_due(path: &Path) -> io::Result<&'static str> {
    let mut file = match open_file(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(""),
        opened => opened?,
    };
    if file.metadata()?.len() == 0 {
        return Ok("");
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(if last == *b"\n" { "" } else { "\n" })
}

/// Opens a file to append to it. A symbolic link is refused.
pub fn append_to_file(path: &Path) -> io::Result<File> {
    options().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_the_owner_reads_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs/one");
        create_folder(&folder).unwrap();
        create_folder(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);

        let file = folder.join("a");
        create_file(&file).unwrap().write_all(b"1").unwrap();
        append_to_file(&file).unwrap().write_all(b"2").unwrap();
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap().as_str()), (0o600, "12"));
        assert!(create_new_file(&file).is_err());

        let link = folder.join("link");
        symlink(&file, &link).unwrap();
        assert!(create_file(&link).is_err() && append_to_file(&link).is_err() && open_file(&link).is_err());
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(open_file(&pipe).is_err() && open_file(&folder).is_err());
        assert!(read_file(&file, 1).is_err());
        assert_eq!(read_file(&file, 2).unwrap(), b"12");
        assert_eq!(fs::read_to_string(&file).unwrap(), "12");
    }
}
