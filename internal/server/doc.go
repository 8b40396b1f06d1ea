// Package server is the command fieldperm-webhook. Options (flags) are completed into a Server, which runs until its context ends.
//
// Start at Options.Complete, which makes the parts of a Server one from another: schemas, servingCertificates, enforcement, barriers and
// authorization. Then read Server.Run, which starts the components of these parts and serves. Serving, reloading of TLS files and health
// checks are k8s.io/apiserver's. Package admission decides. This package connects the components and decides nothing itself.
package server
