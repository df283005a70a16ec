//! Our clients against what is not ours to keep here: answers recorded from real servers, and descriptions that their
//! makers publish. `DIALARR_SHARED` names the folder that holds them; without it there is nothing to check.

mod arr;
mod arr_errors;
mod arr_radarr;
mod arr_requests;
mod arr_sonarr;
mod prism;
