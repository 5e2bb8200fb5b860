// Package catalogue is what Ingot knows of GPU models, as data: a new model is one entry in models.go.
//
// Every fact is read from the vendor's own configuration files and guides: PCI ids from mig-parted's device filters and
// the pci.ids file of the KubeVirt device plugin, minimum drivers and memory from the MIG user guide.
//
// The table below is generated from the data.
//
// BEGIN MODELS
//
//	model            PCI ids         memory  arch    form  minimum driver NVSwitch
//	A100-SXM4-40GB   10de:20b0        40 GiB ampere  SXM   450.80.02      from 5 GPUs
//	A100-SXM4-80GB   10de:20b2        80 GiB ampere  SXM   450.80.02      from 5 GPUs
//	A100-PCIe-40GB   10de:20b1,20f1   40 GiB ampere  PCIe  450.80.02      no
//	A100-PCIe-80GB   10de:20b5        80 GiB ampere  PCIe  450.80.02      no
//	H100-SXM5-80GB   10de:2330        80 GiB hopper  SXM   525.85.12      from 5 GPUs
//	H100-PCIe-80GB   10de:2331        80 GiB hopper  PCIe  525.85.12      no
//	H100-NVL-94GB    10de:2321        94 GiB hopper  PCIe  525.85.12      no
//	H200-SXM-141GB   10de:2335       141 GiB hopper  SXM   550.90.07      from 5 GPUs
//	H200-NVL-141GB   10de:233b       141 GiB hopper  PCIe  550.90.07      no
//
// END MODELS
package catalogue
