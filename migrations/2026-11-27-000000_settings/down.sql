-- The previous program reads no stored settings: "dialarr config export" writes them to a file first.
DROP TABLE settings;
