package reviews

import (
	"fmt"
	"strings"
	"testing"
)

var machines = subject{"kubevirt.io", "v1", "VirtualMachine", "virtualmachines", "till"}

// VirtualMachines returns the reviews of VirtualMachines, all by Operator. A denied review changes the number of cores too.
func VirtualMachines(tb testing.TB) []Case {
	tb.Helper()
	var out []Case
	for _, size := range sizes {
		body := func(strategy string, cores int) []byte {
			return fill(tb, size<<10, func(parts, text int) []byte {
				return machines.review(Operator, machine(parts, text, 1, strategy, cores), machine(parts, text, 0, "Halted", 2))
			})
		}
		out = append(out,
			Case{fmt.Sprintf("VirtualMachine-%dKiB/allowed", size), body("Always", 2), true},
			Case{fmt.Sprintf("VirtualMachine-%dKiB/denied", size), body("Always", 4), false})
	}
	return out
}

// machine is a VirtualMachine with some disks. A custom resource is encoded in the order of the names.
func machine(disks, text, updates int, strategy string, cores int) []byte {
	var devices, volumes []string
	for i := range disks {
		devices = append(devices, fmt.Sprintf(`{"disk":{"bus":"virtio"},"name":"disk-%d"}`, i))
		volumes = append(volumes, fmt.Sprintf(`{"name":"disk-%d","persistentVolumeClaim":{"claimName":"till-%d"}}`, i, i))
	}
	annotations := ""
	if text > 0 {
		annotations = fmt.Sprintf(`"annotations":{"example.com/notes":%q},`, strings.Repeat("Ask the shop's channel before you change this. ", text/47+1)[:text])
	}
	// Custom resources have no types of lists unless their definition names keys, and KubeVirt's names none here: lists are owned as a whole.
	// Two objects have no room in 2 KiB for everything.
	memory, owned := "", ""
	if disks > 0 {
		memory, owned = `,"memory":{"guest":"2Gi"}`, `,"f:memory":{".":{},"f:guest":{}}`
	}
	owned = `"f:runStrategy":{},"f:template":{".":{},"f:spec":{".":{},"f:domain":{".":{},"f:cpu":{".":{},"f:cores":{}},"f:devices":{".":{},"f:disks":{}}` + owned + `},"f:volumes":{}}}`
	return fmt.Appendf(nil, `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{%s"creationTimestamp":"2026-01-01T08:00:00Z","generation":%d,`+
		`"managedFields":[{"apiVersion":"kubevirt.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},%s}},"manager":"kubectl","operation":"Update","time":"2026-01-0%dT08:00:00Z"}],`+
		`"name":"till","namespace":"shop","resourceVersion":"184467","uid":"6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10"},`+
		`"spec":{"runStrategy":%q,"template":{"spec":{"domain":{"cpu":{"cores":%d},"devices":{"disks":[%s]}%s},"volumes":[%s]}}}}`,
		annotations, 7+updates, owned, 1+updates, strategy, cores, strings.Join(devices, ","), memory, strings.Join(volumes, ","))
}
