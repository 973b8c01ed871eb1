-- Rows of 4,000 bytes whose long column lies on disk, on the data nodes of a MySQL Cluster: 240 MB on each of two nodes. Each transaction
-- reads one of them by primary key.

-- \set id random(1, 60000)

-- \setup SELECT COUNT(*) = 60000 FROM on_disk
CREATE LOGFILE GROUP undo_of_disk_data ADD UNDOFILE 'undo.dat' INITIAL_SIZE 128M UNDO_BUFFER_SIZE 8M ENGINE NDBCLUSTER;
CREATE TABLESPACE disk_data ADD DATAFILE 'data.dat' USE LOGFILE GROUP undo_of_disk_data INITIAL_SIZE 512M ENGINE NDBCLUSTER;
CREATE TABLE digit (d INT NOT NULL PRIMARY KEY);
INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE on_disk (id INT NOT NULL PRIMARY KEY, c VARCHAR(4000) CHARACTER SET latin1 NOT NULL) TABLESPACE disk_data STORAGE DISK ENGINE NDBCLUSTER;
INSERT INTO on_disk SELECT 0 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 5000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 10000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 15000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 20000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 25000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 30000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 35000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 40000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 45000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 50000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;
INSERT INTO on_disk SELECT 55000 + 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT(CHAR(97 + a.d), 4000) FROM digit a, digit b, digit c, digit e WHERE e.d < 5;

-- \transaction read
SELECT c FROM on_disk WHERE id = :id;
