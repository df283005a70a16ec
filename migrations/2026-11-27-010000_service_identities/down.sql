DROP TABLE service_identities;
