// Package faults breaks a running control plane with fieldperm in it, one part after the other, while users write, and
// shows that no write lands that its user may not do.
//
// It has tests only. A [fault] says what is broken and mended, a [writer] is a user who writes in a loop what it may and
// what it may not, the [auditor] watches all that lands, and a [report] is what is printed for a fault. Start reading at
// TestFaults_Static and TestFaults_REST. docs/contributing/faults.md has the table as measured.
package faults
