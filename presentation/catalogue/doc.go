// Package catalogue is what Ingot knows of GPU models, as data: a new model is one entry in models.go.
//
// Every fact is read from the vendor's own configuration files and guides: PCI ids from mig-parted's device filters and
// the pci.ids file of the KubeVirt device plugin, minimum drivers, memory and geometries from the MIG user guide.
//
// The tables below are generated from the data. The names of MIG profiles are those of the geometry's, in its order.
//
// BEGIN MODELS
//
//	model            PCI ids         memory  arch    form  minimum driver NVSwitch     MIG       profiles
//	A100-SXM4-40GB   10de:20b0        40 GiB ampere  SXM   450.80.02      from 5 GPUs  7 slices  7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A100-SXM4-80GB   10de:20b2        80 GiB ampere  SXM   450.80.02      from 5 GPUs  7 slices  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	A100-PCIe-40GB   10de:20b1,20f1   40 GiB ampere  PCIe  450.80.02      no           7 slices  7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A100-PCIe-80GB   10de:20b5        80 GiB ampere  PCIe  450.80.02      no           7 slices  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H100-SXM5-80GB   10de:2330        80 GiB hopper  SXM   525.85.12      from 5 GPUs  7 slices  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H100-PCIe-80GB   10de:2331        80 GiB hopper  PCIe  525.85.12      no           7 slices  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H100-NVL-94GB    10de:2321        94 GiB hopper  PCIe  525.85.12      no           7 slices  7g.94gb 4g.47gb 3g.47gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	H200-SXM-141GB   10de:2335       141 GiB hopper  SXM   550.90.07      from 5 GPUs  7 slices  7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me
//	H200-NVL-141GB   10de:233b       141 GiB hopper  PCIe  550.90.07      no           7 slices  7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me
//
// END MODELS
// BEGIN GEOMETRIES
//
//	MIG       id compute memory max suffix driver starts
//	7 slices   0   7 / 7  8 / 8   1               [0]
//	7 slices   5   4 / 7  4 / 8   1               [0]
//	7 slices   9   3 / 7  4 / 8   2               [0 4]
//	7 slices  14   2 / 7  2 / 8   3               [0 2 4]
//	7 slices  15   1 / 7  2 / 8   4        525    [0 2 4 6]
//	7 slices  19   1 / 7  1 / 8   7               [0 1 2 3 4 5 6]
//	7 slices  20   1 / 7  1 / 8   1 +me           [0 1 2 3 4 5 6]
//
// END GEOMETRIES
package catalogue
