// Package faults breaks a running control plane with fieldperm in it, one part after the other, while users write. It shows that no write
// is stored that its user may not make.
//
// It has tests only. A [fault] describes how a part is broken and repaired. A [writer] is a user that makes permitted and forbidden writes
// in a loop. The [auditor] watches all stored changes, and a [report] is the printed result of a fault. Start reading at TestFaults_Static
// and TestFaults_REST. docs/contributing/faults.md has the table of the measured results.
package faults
