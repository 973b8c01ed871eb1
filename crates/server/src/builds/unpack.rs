//! Unpacks parts of a jar, which is a zip file, into a server's tree.

use std::fs::{File, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::catalogue::Part;
use crate::error::{Error, Result, io};

/// Bound on what is written of one jar.
const MAX_BYTES: u64 = 4 << 30;

/// Unpacks `parts` of the jar into `tree`. Programs and scripts become executable: jars do not say
/// which files are.
///
/// # Errors
///
/// [`Error::Build`] where the jar is damaged, lacks a part or is far too large; [`Error::Io`].
pub(super) fn jar(jar: &Path, parts: &[Part], tree: &Path) -> Result<()> {
    let mut left = MAX_BYTES;
    for part in parts {
        let file = File::open(jar).map_err(io("cannot read the download", jar))?;
        let to = tree.join(part.to);
        let files = if part.from.ends_with('/') {
            unpack(file, part.from, &to, &mut left)?
        } else {
            unpack(inner(file, part.from, &to)?, "", &to, &mut left)?
        };
        if files == 0 {
            return Err(Error::Build(format!("'{}' has no '{}' in it", jar.display(), part.from)));
        }
    }
    Ok(())
}

/// An archive within the archive, taken out into a file without a name.
fn inner(file: File, name: &str, near: &Path) -> Result<File> {
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let mut entry = archive.by_name(name).map_err(damaged)?;
    std::fs::create_dir_all(near).map_err(io("cannot make the folder", near))?;
    let path = near.join(".inner.jar");
    let written = (|| {
        let mut inner = File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
        std::fs::remove_file(&path)?;
        std::io::copy(&mut (&mut entry).take(MAX_BYTES), &mut inner)?;
        inner.rewind()?;
        Ok(inner)
    })();
    written.map_err(io("cannot write", &path))
}

/// Unpacks what lies below `prefix`; returns the number of files.
fn unpack(file: File, prefix: &str, to: &Path, left: &mut u64) -> Result<u64> {
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let mut files = 0;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let Some(below) = name.strip_prefix(prefix) else { continue };
        if entry.is_dir() || below.starts_with("META-INF/") {
            continue;
        }
        let path = to.join(within(below)?);
        *left = left.checked_sub(entry.size()).ok_or_else(|| {
            Error::Build(format!("the download unpacks to more than {} GiB: it was refused", MAX_BYTES >> 30))
        })?;
        write_entry(&mut entry, &path).map_err(io("cannot unpack into", &path))?;
        files += 1;
    }
    Ok(files)
}

fn write_entry(entry: &mut impl Read, path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    let mut head = Vec::new();
    (&mut *entry).take(4).read_to_end(&mut head)?;
    file.write_all(&head)?;
    std::io::copy(entry, &mut file)?;
    if head == *b"\x7fELF" || head.starts_with(b"#!") {
        file.set_permissions(Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// A name within an archive, as a path that stays below where it is unpacked.
fn within(name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    let stays = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if stays && !name.is_empty() {
        return Ok(path.to_path_buf());
    }
    Err(Error::Build(format!(
        "the download has a file '{}' that leads out of its folder: it was refused",
        name.escape_default()
    )))
}

fn damaged(error: zip::result::ZipError) -> Error {
    Error::Build(format!("the download is damaged: {error}; remove it and try again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::write::{SimpleFileOptions, ZipWriter};

    fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpacked(files: &[(&str, &[u8])], parts: &[Part]) -> (tempfile::TempDir, Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jar");
        std::fs::write(&path, zip(files)).unwrap();
        let result = jar(&path, parts, &folder.path().join("tree"));
        (folder, result)
    }

    #[test]
    fn parts_land_where_they_belong_and_programs_can_be_run() {
        let inner = zip(&[("META-INF/x", b"no"), ("share/errmsg.sys", b"messages")]);
        let parts = [Part { from: "5/x86/", to: "bin" }, Part { from: "5/share.jar", to: "" }];
        let files: [(&str, &[u8]); 4] = [
            ("5/x86/mysqld", b"\x7fELF-and-so-on"),
            ("5/x86/version.txt", b"5"),
            ("5/sparc/mysqld", b"no"),
            ("5/share.jar", &inner),
        ];
        let (folder, result) = unpacked(&files, &parts);
        result.unwrap();
        let tree = folder.path().join("tree");
        let mode = |name: &str| std::fs::metadata(tree.join(name)).unwrap().permissions().mode() & 0o111;
        assert_eq!((mode("bin/mysqld") != 0, mode("bin/version.txt")), (true, 0));
        assert_eq!(std::fs::read(tree.join("bin/mysqld")).unwrap(), b"\x7fELF-and-so-on");
        assert_eq!(std::fs::read(tree.join("share/errmsg.sys")).unwrap(), b"messages");
        assert_eq!(std::fs::read_dir(&tree).unwrap().count(), 2, "nothing else lies there");
    }

    #[test]
    fn what_leads_out_of_the_folder_is_damaged_or_is_missing_is_refused() {
        let everything = [Part { from: "a/", to: "" }];
        let refused = |files: &[(&str, &[u8])]| unpacked(files, &everything).1.unwrap_err().to_string();
        assert!(refused(&[("a/../../b", b"x")]).contains("leads out of its folder"));
        assert!(refused(&[("b/c", b"x")]).contains("has no 'a/' in it"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jar");
        std::fs::write(&path, b"no zip at all").unwrap();
        assert!(jar(&path, &everything, folder.path()).unwrap_err().to_string().contains("is damaged"));
    }
}
