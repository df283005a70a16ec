# syntax=docker/dockerfile:1

FROM rust:1.95.0-slim-trixie AS build
WORKDIR /src
COPY . .
# Commit in `dialarr --version`: git is not available in the image.
ARG DIALARR_COMMIT=""
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    DIALARR_COMMIT="$DIALARR_COMMIT" cargo build --locked --profile dist --bin dialarr \
    && install -D target/dist/dialarr /out/dialarr

FROM debian:13.7-slim
# Certificates for Twilio and the model, and time zones.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates tzdata \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/dialarr /usr/local/bin/dialarr
COPY --chmod=755 packaging/entrypoint.sh /usr/local/bin/entrypoint
COPY LICENSE-MIT LICENSE-APACHE /usr/share/doc/dialarr/

# The database and, if there is one, `.env` are in the working directory. The console is meant to be published on an
# address of the host that only you reach.
ENV PUID=1000 PGID=1000 HOST=0.0.0.0 PORT=3000 CONSOLE_BIND=0.0.0.0:3001
# One heap for all threads: with glibc's default of many, the freed memory of each adds up over days.
ENV MALLOC_ARENA_MAX=1
WORKDIR /config
VOLUME /config
EXPOSE 3000 3001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["entrypoint", "health"]
# The entrypoint alone runs as root, to hand /config to PUID:PGID; dialarr never does. With `--user` nothing runs as root.
ENTRYPOINT ["entrypoint"]
CMD ["serve"]
