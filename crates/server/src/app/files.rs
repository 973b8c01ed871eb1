//! The files of the sample application: the script that starts it, its pages, its tables and its settings.

/// The script that starts and ends the programs.
pub(super) const SCRIPT: &str = "start.sh";

/// Path in the application's folder, and text.
pub(super) const FILES: &[(&str, &str)] = &[
    (SCRIPT, include_str!("../../../../app/start.sh")),
    ("conf/httpd.conf", include_str!("../../../../app/conf/httpd.conf")),
    ("conf/my.cnf", include_str!("../../../../app/conf/my.cnf")),
    ("conf/php-fpm.conf", include_str!("../../../../app/conf/php-fpm.conf")),
    ("conf/php.ini", include_str!("../../../../app/conf/php.ini")),
    ("sql/data.sql", include_str!("../../../../app/sql/data.sql")),
    ("sql/schema.sql", include_str!("../../../../app/sql/schema.sql")),
    ("www/add_event.php", include_str!("../../../../app/www/add_event.php")),
    ("www/alive.php", include_str!("../../../../app/www/alive.php")),
    ("www/event.php", include_str!("../../../../app/www/event.php")),
    ("www/image.php", include_str!("../../../../app/www/image.php")),
    ("www/index.php", include_str!("../../../../app/www/index.php")),
    ("www/lib.php", include_str!("../../../../app/www/lib.php")),
    ("www/person.php", include_str!("../../../../app/www/person.php")),
    ("www/sign_in.php", include_str!("../../../../app/www/sign_in.php")),
    ("www/style.css", include_str!("../../../../app/www/style.css")),
    ("www/tag.php", include_str!("../../../../app/www/tag.php")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_application_is_carried() {
        let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app");
        let mut found = Vec::new();
        for folder in ["", "conf", "sql", "www"] {
            for entry in std::fs::read_dir(app.join(folder)).unwrap().flatten() {
                if entry.path().is_file() {
                    found.push(Path::new(folder).join(entry.file_name()).display().to_string());
                }
            }
        }
        let mut carried: Vec<String> = FILES.iter().map(|(path, _)| path.to_string()).collect();
        found.sort();
        carried.sort();
        assert_eq!(carried, found);
    }
}
