//! Files and folders of recordings. Settings, statements and command lines may hold what is secret, so only their owner may read them; and a folder
//! from elsewhere may hold links that lead out of it, so none is followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
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
        made => made,
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

/// Opens a file to write it from its beginning. A symbolic link is refused.
pub fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Opens a file that must not be there yet.
pub fn create_new_file(path: &Path) -> io::Result<File> {
    options().write(true).create_new(true).open(path)
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
        assert!(create_file(&link).is_err() && append_to_file(&link).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "12");
    }
}
