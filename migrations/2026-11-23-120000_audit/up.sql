-- Marks the file as a database of Dialarr ("Dial"), so that the file of another program is recognized.
PRAGMA application_id = 1147756908;
