# docker build -t varve . && docker run --rm varve run programs/dist/hello.wasm
#
# The image holds the static binary and what the book's first pages run, and nothing else.
FROM rust:1.95-bookworm AS build
WORKDIR /varve
COPY . .
RUN .ci/release /release && mkdir /image && tar -C /image --strip-components=1 -xzf /release/varve-*.tar.gz && mkdir /image/tmp

FROM scratch
COPY --from=build /image /
WORKDIR /
ENTRYPOINT ["/varve"]
