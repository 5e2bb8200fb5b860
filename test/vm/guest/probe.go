package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// check is a check of a probe's report.
type check struct {
	Name    string `json:"name"`
	Result  string `json:"result"`
	Message string `json:"message"`
}

// probe reports, as the command of a NodeType's probe does, whether the pod has a device, and no rights beyond it.
func probe() error {
	device, user := check{Name: "device", Result: "Pass"}, check{Name: "user", Result: "Pass", Message: fmt.Sprint(os.Getuid())}
	memory, err := os.Stat(devicePath)
	switch {
	case err != nil:
		device.Result, device.Message = "Fail", err.Error()
	case memory.Size() == 0:
		device.Result, device.Message = "Fail", "it has no memory"
	default:
		device.Message = fmt.Sprintf("%d bytes of memory", memory.Size())
	}
	if os.Getuid() == 0 {
		user.Result = "Fail"
	}
	report, err := json.Marshal(map[string][]check{"checks": {device, user}})
	if err != nil {
		return err
	}
	return os.WriteFile(messagePath, append([]byte("the device was looked at\n"), report...), 0o644)
}
