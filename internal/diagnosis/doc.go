// Package diagnosis says whether enforcement is proven in a cluster, from what a workstation can read of it, and why it is not. It reads
// nothing itself.
//
// Start at Status, the answer, and Status.Conclude, which draws it from the evidence. questions.go finds the users that evidence is asked
// about, causes.go has the causes. A state without evidence of the present is Unknown: an Event is of the past, and any user that may write
// Events can write one.
package diagnosis
