//! Whole-application tests, one binary: each further one would be linked again.

// Says to the lints what cargo knows: an unwrap in here is a failing test.
#![cfg(test)]

mod access;
mod api;
mod api_document;
mod asks;
mod authors;
mod ci;
mod cli;
mod confirmation;
mod copies;
mod details;
mod doctor;
mod documents;
mod eval;
mod facts;
mod following;
mod harness;
mod health;
mod household;
mod inbound;
mod intervening;
mod joining;
mod lifecycle;
mod memory;
mod metrics;
mod missed;
mod more;
mod notices;
mod pages;
mod people;
mod plans;
mod posters;
mod privacy;
mod queued;
mod quotas;
mod recommend;
mod reconnects;
mod release;
mod replay;
mod requests;
mod routes;
mod routing;
mod setup;
mod shelf;
mod spend;
mod stream;
mod texts;
mod threads;
mod tidy;
mod tools;
mod turns;
mod upgrade;
mod users;
mod ways;
