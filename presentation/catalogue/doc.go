// Package catalogue has the GPU models that Ingot knows, as data: a new model is one entry in models.go.
//
// Every fact comes from the vendor's own configuration files and guides: PCI ids from mig-parted's device filters, the pci.ids
// file of the KubeVirt device plugin and the list of GPUs of NVIDIA's open kernel modules; minimum drivers, memory and geometries from the MIG user guide; types of vGPU from
// the configuration that NVIDIA's operator ships. A question mark behind a geometry says that no document lists its placements
// for the model, so that they are those of related models.
//
// The tables below are generated from the data. The names of MIG profiles are in the order of the geometry.
//
// BEGIN MODELS
//
//	model                              PCI ids        memory      arch         form      link      minimum driver open MIG       vGPU   profiles
//	T4-16GB                            10de:1eb8      16 GiB      turing       PCIe      none      not verified        no        T4
//	A10-24GB                           10de:2236      24 GiB      ampere       PCIe      none      not verified        no        A10
//	A16-16GB                           10de:25b6      16 GiB      ampere       PCIe      none      not verified        no        A16
//	A30-24GB                           10de:20b7      24 GiB      ampere       PCIe      none      460.73.01           4 slices  A30    4g.24gb 2g.12gb 2g.12gb+me 1g.6gb 1g.6gb+me
//	A40-48GB                           10de:2235      48 GiB      ampere       PCIe      none      not verified        no        A40
//	A100-SXM4-40GB                     10de:20b0      40 GiB      ampere       SXM       NVSwitch  450.80.02           7 slices  A100X  7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A100-SXM4-80GB                     10de:20b2      80 GiB      ampere       SXM       NVSwitch  450.80.02           7 slices  A100DX 7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	A100-PCIe-40GB                     10de:20b1,20f1 40 GiB      ampere       PCIe      none      450.80.02           7 slices  A100   7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A100-PCIe-80GB                     10de:20b5      80 GiB      ampere       PCIe      none      450.80.02           7 slices  A100D  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	A800-SXM4-40GB                     10de:20bd      40 GiB      ampere       SXM       NVSwitch  not verified        7 slices?        7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A800-SXM4-80GB                     10de:20f3      80 GiB      ampere       SXM       NVSwitch  not verified        7 slices? A800DX 7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	A800-PCIe-40GB                     10de:20f6      40 GiB      ampere       PCIe      none      not verified        7 slices?        7g.40gb 4g.20gb 3g.20gb 2g.10gb 1g.10gb 1g.5gb 1g.5gb+me
//	A800-PCIe-80GB                     10de:20f5      80 GiB      ampere       PCIe      none      not verified        7 slices? A800D  7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	L4-24GB                            10de:27b8      24 GiB      ada-lovelace PCIe      none      not verified        no        L4
//	L40-48GB                           10de:26b5      48 GiB      ada-lovelace PCIe      none      not verified        no        L40
//	L40S-48GB                          10de:26b9      48 GiB      ada-lovelace PCIe      none      not verified        no        L40S
//	H100-SXM5-80GB                     10de:2330      80 GiB      hopper       SXM       NVSwitch  525.85.12           7 slices  H100XM 7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H100-SXM5-96GB                     10de:233d,2338 96 GiB      hopper       SXM       NVSwitch  525.85.12           7 slices         7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	H100-PCIe-80GB                     10de:2331      80 GiB      hopper       PCIe      none      525.85.12           7 slices  H100   7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H100-NVL-94GB                      10de:2321      94 GiB      hopper       PCIe      none      525.85.12           7 slices  H100L  7g.94gb 4g.47gb 3g.47gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	H800-SXM5-80GB                     10de:2324      80 GiB      hopper       SXM       NVSwitch  not verified        7 slices? H800XM 7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H800-PCIe-80GB                     10de:2322      80 GiB      hopper       PCIe      none      not verified        7 slices? H800   7g.80gb 4g.40gb 3g.40gb 2g.20gb 1g.20gb 1g.10gb 1g.10gb+me
//	H800-NVL-94GB                      10de:233a      94 GiB      hopper       PCIe      none      not verified        7 slices? H800L  7g.94gb 4g.47gb 3g.47gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	H20-SXM5-96GB                      10de:2329      96 GiB      hopper       SXM       NVSwitch  535.161.07          7 slices? H20    7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	H20-3e-SXM5-141GB                  10de:232c      141 GiB     hopper       SXM       NVSwitch  not verified        7 slices? H20X   7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me
//	H200-SXM-141GB                     10de:2335      141 GiB     hopper       SXM       NVSwitch  550.90.07           7 slices  H200X  7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me
//	H200-NVL-141GB                     10de:233b      141 GiB     hopper       PCIe      none      550.90.07           7 slices  H200   7g.141gb 4g.71gb 3g.71gb 2g.35gb 1g.35gb 1g.18gb 1g.18gb+me
//	GH200-96GB                         10de:2342      96 GiB      hopper       Superchip none      not verified   only 7 slices  GH200  7g.96gb 4g.48gb 3g.48gb 2g.24gb 1g.24gb 1g.12gb 1g.12gb+me
//	GH200-144GB                        10de:2348      144 GiB     hopper       Superchip none      not verified   only 7 slices  GH200L 7g.144gb 4g.72gb 3g.72gb 2g.36gb 1g.36gb 1g.18gb 1g.18gb+me
//	B200-SXM-180GB                     10de:2901      180 GiB     blackwell    SXM       NVLink 5  570.133.20     only 7 slices? B200X  7g.180gb 4g.90gb 3g.90gb 2g.45gb 1g.45gb 1g.23gb 1g.23gb+me
//	B300-SXM-269GB                     10de:3182      269 GiB     blackwell    SXM       NVLink 5  580.82.07      only 7 slices? B300X  7g.269gb 4g.135gb 3g.135gb 2g.67gb 1g.67gb 1g.34gb 1g.34gb+me
//	GB200-186GB                        10de:2941      186|189 GiB blackwell    Superchip NVL72     570.133.20     only 7 slices? GB200  7g.186gb|7g.189gb 4g.93gb|4g.95gb 3g.93gb|3g.95gb 2g.47gb 1g.47gb 1g.23gb|1g.24gb 1g.23gb+me|1g.24gb+me
//	GB300-278GB                        10de:31c2      278 GiB     blackwell    Superchip NVL72     580.82.07      only 7 slices?        7g.278gb 4g.139gb 3g.139gb 2g.70gb 1g.70gb 1g.35gb 1g.35gb+me
//	RTX-PRO-6000-Blackwell-Server-96GB 10de:2bb5      96 GiB      blackwell    PCIe      none      575.51.03      only 12 slices DC     4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all 1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all
//	RTX-PRO-6000-Blackwell-Workstation-96GB 10de:2bb1      96 GiB      blackwell    PCIe      none      575.51.03      only 12 slices        4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all 1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all
//	RTX-PRO-6000-Blackwell-Max-Q-96GB  10de:2bb4      96 GiB      blackwell    PCIe      none      575.51.03      only 12 slices        4g.96gb 4g.96gb+gfx 2g.48gb 2g.48gb+gfx 2g.48gb-me 2g.48gb+me.all 1g.24gb 1g.24gb+gfx 1g.24gb-me 1g.24gb+me 1g.24gb+me.all
//	MI300X-192GB                       1002:74a1      192 GiB     cdna3        OAM       none      not verified        no
//	MI325X-256GB                       1002:74a5      256 GiB     cdna3        OAM       none      not verified        no
//	MI350X-288GB                       1002:75a0      288 GiB     cdna4        OAM       none      not verified        no
//	MI355X-288GB                       1002:75a3      288 GiB     cdna4        OAM       none      not verified        no
//
// END MODELS
// BEGIN GEOMETRIES
//
//	MIG       id compute memory max suffix  driver starts
//	4 slices   0   4 / 4  4 / 4   1                [0]
//	4 slices   5   2 / 4  2 / 4   2                [0 2]
//	4 slices   6   2 / 4  2 / 4   1 +me            [0 2]
//	4 slices  14   1 / 4  1 / 4   4                [0 1 2 3]
//	4 slices  21   1 / 4  1 / 4   1 +me            [0 1 2 3]
//	7 slices   0   7 / 7  8 / 8   1                [0]
//	7 slices   5   4 / 7  4 / 8   1                [0]
//	7 slices   9   3 / 7  4 / 8   2                [0 4]
//	7 slices  14   2 / 7  2 / 8   3                [0 2 4]
//	7 slices  15   1 / 7  2 / 8   4         525    [0 2 4 6]
//	7 slices  19   1 / 7  1 / 8   7                [0 1 2 3 4 5 6]
//	7 slices  20   1 / 7  1 / 8   1 +me            [0 1 2 3 4 5 6]
//	12 slices  0   4 / 4 12 / 12   1                [0]
//	12 slices 32   4 / 4 12 / 12   1 +gfx           [0]
//	12 slices  5   2 / 4  6 / 12   2                [0 6]
//	12 slices 35   2 / 4  6 / 12   2 +gfx           [0 6]
//	12 slices 66   2 / 4  6 / 12   2 -me            [0 6]
//	12 slices 64   2 / 4  6 / 12   1 +me.all        [0 6]
//	12 slices 14   1 / 4  3 / 12   4                [0 3 6 9]
//	12 slices 47   1 / 4  3 / 12   4 +gfx           [0 3 6 9]
//	12 slices 67   1 / 4  3 / 12   4 -me            [0 3 6 9]
//	12 slices 21   1 / 4  3 / 12   1 +me            [0 3 6 9]
//	12 slices 65   1 / 4  3 / 12   1 +me.all        [0 3 6 9]
//
// END GEOMETRIES
package catalogue
