# syntax=docker/dockerfile:1
# docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 -t ghcr.io/fieldperm/fieldperm-webhook:v0.1.0 .
# The compiler runs on the machine's own platform and builds for the target's.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
ARG VERSION=v0.0.0-unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$VERSION" \
    -o /out/fieldperm-webhook ./cmd/fieldperm-webhook

# No shell, no package manager; the user nonroot is 65532.
FROM gcr.io/distroless/static:nonroot
ARG VERSION=v0.0.0-unknown
LABEL org.opencontainers.image.source=https://github.com/fieldperm/fieldperm \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=$VERSION
COPY --from=build /out/fieldperm-webhook /fieldperm-webhook
USER 65532:65532
EXPOSE 9443
ENTRYPOINT ["/fieldperm-webhook"]
CMD ["serve"]
