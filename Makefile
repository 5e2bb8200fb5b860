# Everything is built from Go modules; nothing else is downloaded. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO_SOURCES = $(shell find api cmd cloudinit config controllers imagebuilder presentation test -name '*.go' -not -name '*_test.go' -not -path 'test/controlplane/*' -not -path 'test/tools/*' 2>/dev/null) go.mod go.sum
# The same flags everywhere, so that programs and tests share compiled packages.
export CGO_ENABLED := 0
LDFLAGS := -s -w -X main.version=$(VERSION)
# Arguments for the demo and for go test: make demo ARGS="--servers 6"; make test ARGS="-run TestClaim ./controllers/machine".
ARGS ?=

##@ Use
.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z_-]+:.*##/ {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: programs ## Watch simulated servers go from powered-off to admitted nodes. ARGS="--servers 6 --speed 2" are its flags.
	@$(BIN)/ingot-demo $(ARGS)

.PHONY: build
build: programs ## Build ingot, ingot-demo, ingot-manager, ingot-agent and the test control plane into bin/.

# The image: its name, whether it is pushed, and what it is made of. Without KERNEL and BOOTLOADERS, apt downloads the packages of this system.
IMAGE ?= ghcr.io/ingot-dev/ingot-manager:$(VERSION)
PUSH ?=
KERNEL ?=
FIRMWARE ?= $(wildcard /lib/firmware)
BOOTLOADERS ?= $(wildcard /usr/lib/ipxe)
EFI_STUB ?= $(wildcard /usr/lib/systemd/boot/efi/linuxx64.efi.stub)
IMAGE_ARCHITECTURES := amd64 arm64

.PHONY: image
image: $(BIN)/ingot boot $(IMAGE_ARCHITECTURES:%=$(BIN)/linux-%/ingot-manager) ## Make the manager's container image in bin/image. IMAGE=REGISTRY/NAME:TAG names it, PUSH=1 pushes it; KERNEL, BOOTLOADERS, FIRMWARE, EFI_STUB: packages or directories.
	@mkdir -p $(BIN)/image
	@bootloaders='$(BOOTLOADERS)'; [ -n "$$bootloaders" ] || { rm -f $(BIN)/image/ipxe_*.deb; \
		(cd $(BIN)/image && apt-get -q download ipxe) && bootloaders=$$(ls $(BIN)/image/ipxe_*.deb); } || \
		{ echo "no iPXE: give BOOTLOADERS=PATH, the package ipxe (ipxe_*.deb) or a directory with snponly.efi"; exit 1; }; \
	$(BIN)/ingot image manager $(foreach a,$(IMAGE_ARCHITECTURES),--program $(a)=$(BIN)/linux-$(a)/ingot-manager) \
		--boot $(BIN)/boot --bootloaders "$$bootloaders" --name '$(IMAGE)' --version '$(VERSION)' $(if $(PUSH),--push) -o $(BIN)/image

.PHONY: boot
boot: $(BIN)/boot/agent.cpio.zst $(if $(KERNEL_ARM64),boot-arm64) ## Make the kernel and the ramdisk that servers are installed by, in bin/boot. KERNEL, KERNEL_ARM64: packages or directories.

# A kernel that is given is used also when the files are there. The package that apt downloaded stays in bin/kernel: remove it for a newer one.
$(BIN)/boot/agent.cpio.zst: $(BIN)/ingot $(BIN)/ingot-agent $(if $(KERNEL),FORCE)
	@mkdir -p $(BIN)/kernel
	@kernel='$(KERNEL)'; [ -n "$$kernel" ] || kernel=$$(ls $(BIN)/kernel/linux-image-*.deb 2>/dev/null) || { \
		(cd $(BIN)/kernel && apt-get -q download "$$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ {print $$2; exit}')") && kernel=$$(ls $(BIN)/kernel/linux-image-*.deb); } || \
		{ echo "no kernel: give KERNEL=PATH, a distribution's kernel package for the servers (linux-image-*-amd64_*.deb) or a directory with boot/ and lib/modules/"; exit 1; }; \
	stub='$(EFI_STUB)'; [ -n "$$stub" ] || stub=$$(ls $(BIN)/kernel/systemd-boot-efi_*.deb 2>/dev/null) || { \
		(cd $(BIN)/kernel && apt-get -q download systemd-boot-efi) && stub=$$(ls $(BIN)/kernel/systemd-boot-efi_*.deb); } || \
		echo "no EFI stub, so BMCs' virtual media are not served: give EFI_STUB=PATH, the package systemd-boot-efi or its linuxx64.efi.stub"; \
	$(BIN)/ingot image ramdisk --agent $(BIN)/ingot-agent --kernel "$$kernel" $(FIRMWARE:%=--firmware %) $${stub:+--efi-stub "$$stub"} -o $(BIN)/boot

# For servers with an arm64 processor, which boot by UEFI HTTP boot. Without packages that are given, apt downloads them with lists of its own, so that this
# machine's own are not touched.
KERNEL_ARM64 ?=
EFI_STUB_ARM64 ?=
APT_ARM64 = $(CURDIR)/$(BIN)/kernel/arm64
.PHONY: boot-arm64
boot-arm64: $(BIN)/ingot ## Make the same for servers with an arm64 processor, in bin/boot/arm64. KERNEL_ARM64, EFI_STUB_ARM64: packages.
	@mkdir -p $(BIN)/boot/arm64 $(APT_ARM64)/lists/partial $(APT_ARM64)/cache/archives/partial && touch $(APT_ARM64)/status
	@printf '%s\n' 'APT::Architecture "arm64";' 'APT::Architectures { "arm64"; };' 'Dir::State::lists "$(APT_ARM64)/lists";' 'Dir::State::status "$(APT_ARM64)/status";' 'Dir::Cache "$(APT_ARM64)/cache";' > $(APT_ARM64)/apt.conf
	@export APT_CONFIG=$(APT_ARM64)/apt.conf; kernel='$(KERNEL_ARM64)' stub='$(EFI_STUB_ARM64)'; \
	fetch() { ls $(APT_ARM64)/$$1_*.deb 2>/dev/null || { (cd $(APT_ARM64) && { [ -n "$$(ls lists/*Packages* 2>/dev/null)" ] || apt-get -q update; } && apt-get -q download $$1) >&2 && ls $(APT_ARM64)/$$1_*.deb; }; }; \
	[ -n "$$stub" ] || stub=$$(fetch systemd-boot-efi) && \
	{ [ -n "$$kernel" ] || kernel=$$(fetch "$$(apt-cache depends linux-image-arm64 | awk '/Depends: linux-image/ {print $$2; exit}')"); } || \
		{ echo "no packages of arm64: give KERNEL_ARM64=PATH, such as linux-image-*-arm64_*.deb, and EFI_STUB_ARM64=PATH, systemd-boot-efi_*_arm64.deb or its linuxaa64.efi.stub"; exit 1; }; \
	GOARCH=arm64 go build -ldflags '$(LDFLAGS)' -o $(BIN)/ingot-agent-arm64 ./cmd/ingot-agent && \
	$(BIN)/ingot image ramdisk --agent $(BIN)/ingot-agent-arm64 --kernel "$$kernel" $(FIRMWARE:%=--firmware %) --efi-stub "$$stub" -o $(BIN)/boot/arm64

# The Ironic of the next release of Debian, as a directory that it is run in. It needs root, mmdebstrap and 700 MB.
.PHONY: ironic-29
ironic-29: $(BIN)/ironic-29/usr/bin/ironic ## Install the Ironic of Debian 13 into bin/ironic-29, for tests.

$(BIN)/ironic-29/usr/bin/ironic:
	@mkdir -p $(BIN) && rm -rf $(BIN)/ironic-29 && mmdebstrap --quiet --variant=minbase --mode=root --aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--include=ironic-api,ironic-conductor,genisoimage,ipmitool,python3-bcrypt trixie $(BIN)/ironic-29 http://deb.debian.org/debian

.PHONY: node-programs
node-programs: $(BIN)/node-programs/kubectl $(BIN)/node-programs/kubeadm ## Build what test nodes run: kubelet, kubeadm, containerd and their tools, in bin/node-programs.

# What stands for the ramdisk with Ironic's agent, where a real Ironic boots virtual servers.
.PHONY: ironic-agent
ironic-agent: $(BIN)/ironic-agent/agent.cpio.zst ## Make the ramdisk that the tests have Ironic boot, in bin/ironic-agent.

$(BIN)/ironic-agent/agent.cpio.zst: $(BIN)/boot/agent.cpio.zst $(wildcard test/ironic/*.go test/ironic/disk/*.go test/ironic/ramdisk/*.go)
	@mkdir -p $(BIN)/ironic-agent && go build -ldflags '-s -w' -o $(BIN)/ironic-agent/agent ./test/ironic/ramdisk
	@kernel='$(KERNEL)'; $(BIN)/ingot image ramdisk --agent $(BIN)/ironic-agent/agent --kernel "$${kernel:-$$(ls $(BIN)/kernel/linux-image-*.deb)}" -o $(BIN)/ironic-agent 2> $(BIN)/ironic-agent/log || { cat $(BIN)/ironic-agent/log; exit 1; }

# They change with their versions, which the recipe has.
$(BIN)/node-programs/kubectl: config/images/debian-kubernetes.yaml
	@echo "building kubelet, containerd and kubectl (a few minutes)"
	@go run ./test/kubelet/programs $< $(BIN)/node-programs 2> $(BIN)/node-programs.log || { cat $(BIN)/node-programs.log; exit 1; }

# One rule of its own: a working copy that has the others does not build them again.
$(BIN)/node-programs/kubeadm: config/images/debian-kubernetes.yaml | $(BIN)/node-programs/kubectl
	@go run ./test/kubelet/programs $< $(BIN)/node-programs kubeadm 2> $(BIN)/node-programs.log || { cat $(BIN)/node-programs.log; exit 1; }

.PHONY: FORCE
FORCE:

.PHONY: node-image
node-image: $(BIN)/node-image/built $(BIN)/node-image/guest ## Build the image of a node that virtual servers are installed with, in bin/node-image (6 minutes; needs mmdebstrap).

# The image that is shipped as a recipe. Remove bin/node-image to have it built again.
$(BIN)/node-image/built: config/images/debian-kubernetes.yaml | $(BIN)/ingot
	@rm -rf $(BIN)/node-image && $(BIN)/ingot image build $< -o $(BIN)/node-image && touch $@

$(BIN)/node-image/guest: $(wildcard test/vm/guest/*.go) go.mod | $(BIN)/node-image/built
	@go build -ldflags '-s -w' -o $@ ./test/vm/guest

##@ Develop
# Two packages more than processors are tested at once, because tests wait too; the slowest begin first.
TESTS_AT_ONCE ?= $(shell echo $$(($$(nproc) + 2)))
# Packages whose tests use nothing of test, and the others. What the first say depends on the code alone, so that the result of an earlier run of the same
# code counts; that of the others counts where no program is demanded.
LIST = go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...
PURE = $(LIST) | grep -v /test/ | cut -d' ' -f1
OTHERS = go run ./test/suite -order test/suite/budgets; $(LIST) | grep /test/ | cut -d' ' -f1
FRESH = $(if $(INGOT_REQUIRE)$(ARGS),-count=1)
EVENTS = $(BIN)/events
GOTESTSUM = $(CURDIR)/$(BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=all --jsonfile $(CURDIR)/$(EVENTS)
# run_tests,FLAGS runs tests and then reports what was slow, failed and skipped.
define run_tests
	@rm -rf $(EVENTS) && mkdir -p $(EVENTS); failed=0; \
	$(if $(ARGS),,(cd test/controlplane && GOFLAGS=-trimpath $(GOTESTSUM)/controlplane.json -- $(FRESH) -timeout 10m ./...) || failed=1; \
	$(GOTESTSUM)/pure.json -- -vet=off $(1) $$($(PURE)) || failed=1;) \
	$(GOTESTSUM)/tests.json -- -vet=off -p $(TESTS_AT_ONCE) $(FRESH) $(1) $(if $(ARGS),$(ARGS),$$($(OTHERS))) || failed=1; \
	go run ./test/suite -budgets test/suite/budgets $(if $(INGOT_REQUIRE),-enforce) $(EVENTS)/*.json || failed=1; exit $$failed
endef

.PHONY: test
test: $(BIN)/gotestsum programs ## Run what every change must pass, where something has changed. ARGS="-run NAME ./PACKAGE" narrows it; INGOT_REQUIRE=all runs all of it and fails where a program is missing.
	$(call run_tests,-timeout 30m)

.PHONY: test-deep
test-deep: $(BIN)/gotestsum programs boot boot-arm64 node-image ironic-agent ironic-29 ## Run every test that there is, for hours: all crash points, every way to boot, both Ironics; then the fuzz targets, the ledger of costs and the mutants.
	$(call run_tests,-timeout 5h)
	@$(if $(ARGS),,go run ./test/fuzz && $(MAKE) --no-print-directory costs && go run ./test/mutants)
test-deep: export INGOT_DEEP = all
test-deep: export INGOT_REQUIRE = all

.PHONY: e2e
e2e: programs boot node-image ## Install a virtual server with real firmware by PXE, have it join a cluster and run a pod, release and erase it. ARGS="-run NAME" narrows it.
	@INGOT_REQUIRE=all go test -count=1 -v -timeout 60m ./test/vm $(ARGS)

.PHONY: unit
unit: $(BIN)/gotestsum ## Run the tests of packages that start no control plane, where something has changed: the suite for every save.
	@$(BIN)/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary=output -- -vet=off -short \
		$$($(LIST) | grep -v ' .*/test/\(management\|cluster\)' | cut -d' ' -f1)

.PHONY: fuzz
fuzz: ## Run every fuzz target for 20 seconds, one after the other; say how to repeat what is found. ARGS="-time 5m ./imagebuilder/qcow2" narrows it.
	@go run ./test/fuzz $(ARGS)

.PHONY: mutants
mutants: ## Change the pure packages in one place at a time, for 45 minutes; print what no test notices. ARGS="-budget 10m ./controllers/plan/host" narrows it.
	@go run ./test/mutants $(ARGS)

.PHONY: bench
bench: bench-micro bench-fleet ## Run the benchmarks, the fleet's with 1,000 servers (half an hour). They compare within one run: say on which machine.

.PHONY: bench-micro
bench-micro: ## Run the benchmarks of single functions.
	@go test -run '^$$' -bench . -benchmem $$(grep -rl --include='*_test.go' '^func Benchmark' api cloudinit controllers imagebuilder presentation | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: bench-fleet
bench-fleet: programs $(BIN)/ingot-bench ## Measure a fleet. ARGS="-machines 30 -steady 1m" are its flags; 1,000 servers need 40 GB of disk.
	@$(BIN)/ingot-bench $(ARGS)

.PHONY: costs
costs: programs ## Count what a Machine costs and compare with test/costs/costs.md. ARGS=-update writes the table; ARGS="-provider redfish" measures one.
	@INGOT_DEEP=$${INGOT_DEEP:-all} go test -count=1 -v -timeout 60m -run TestAMachineCostsWhatTheTableSays ./test/costs -args -measure $(ARGS)

.PHONY: figures
figures: programs $(BIN)/ingot-bench ## Measure the figures of the documents again, for an hour. ONLY=fleet measures one.
	@go run ./test/figures update $(if $(ONLY),-only $(ONLY)) test/bench/README.md

.PHONY: mass
mass: ## Write test/arch/mass.txt, the table of what people must read, set and carry. The commit says what the growth is worth.
	@go test -count=1 ./test/arch -run TestWhatGrowsIsInTheTable -args -write-mass && git diff --stat -- test/arch/mass.txt

.PHONY: lint
lint: $(BIN)/staticcheck ## Check format, vet, staticcheck, the import law and the budgets.
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); [ -z "$$bad" ] || { echo "gofmt -w these files:"; echo "$$bad"; exit 1; }
	@go vet ./...
	@$(BIN)/staticcheck ./...
	@cd test/controlplane && GOFLAGS=-trimpath go vet ./...
	@go test -count=1 ./test/arch
	@go test -count=1 -v -run TestPackagesInFigures ./test/arch | sed -n 's/^ *total: //p'

.PHONY: packages
packages: ## Print the lines, the exported names and the importers of each package.
	@go test -count=1 -v -run TestPackagesInFigures ./test/arch | grep ' lines '

.PHONY: generate
generate: $(BIN)/controller-gen architecture ## Generate deep copies, CRDs, RBAC, the API reference, the drawing of the packages and the table of kubelet's releases.
	@$(BIN)/controller-gen object paths=./api/...
	@$(BIN)/controller-gen crd:crdVersions=v1 paths=./api/... output:crd:dir=config/crd/bases
	@rm -rf $(BIN)/metal3-crd && $(BIN)/controller-gen crd:allowDangerousTypes=true paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1 output:crd:dir=$(BIN)/metal3-crd
	@cp $(BIN)/metal3-crd/metal3.io_baremetalhosts.yaml $(BIN)/metal3-crd/metal3.io_hardwaredata.yaml config/crd/metal3/ && rm -rf $(BIN)/metal3-crd
	@$(BIN)/controller-gen rbac:roleName=ingot-manager paths=./controllers/... output:rbac:dir=config/rbac
	@go run ./test/gendocs api api/v1alpha1 config/crd/README.md
	@go run ./test/kubeletreleases cloudinit/kubelet/fragment/releases.json

.PHONY: architecture
architecture: ## Draw the packages and their imports into controllers/doc.go.
	@go run ./test/gendocs architecture . controllers/doc.go

.PHONY: verify
verify: generate ## Check that generated files are current, and that nobody typed a figure of the documents.
	@go run ./test/figures check -since "$$(git log -1 --format=%cs -- test/costs/costs.md)" README.md test/bench/README.md
	@changed=$$(git status --porcelain -- api config controllers/doc.go cloudinit/kubelet/fragment); [ -z "$$changed" ] || { echo "generated files are not current; commit what make generate wrote:"; echo "$$changed"; git diff -- api config controllers/doc.go cloudinit/kubelet/fragment | head -40; exit 1; }

.PHONY: clean
clean: ## Remove what was built.
	@rm -rf $(BIN)

# --- programs -----------------------------------------------------------------------------------------------------

.PHONY: programs
programs: $(BIN)/ingot $(BIN)/kubectl-ingot $(BIN)/ingot-demo $(BIN)/ingot-manager $(BIN)/ingot-agent $(BIN)/ingot-controlplane

# kubectl finds its plugins by this name on the PATH.
$(BIN)/kubectl-ingot: $(BIN)/ingot
	@ln -sf ingot $@

$(BIN)/ingot-bench: $(GO_SOURCES)
	@go build -ldflags '$(LDFLAGS)' -o $@ ./test/bench

$(BIN)/ingot $(BIN)/ingot-demo $(BIN)/ingot-manager $(BIN)/ingot-agent: $(BIN)/%: $(GO_SOURCES)
	@[ -e $@ ] || echo "building $* (the first time: about 2 minutes on 2 cores, Kubernetes' client libraries are compiled)"
	@go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/$*

$(BIN)/linux-%/ingot-manager: $(GO_SOURCES)
	@echo "building ingot-manager for $* (the first time for another architecture: about 3 minutes on 2 cores)"
	@GOOS=linux GOARCH=$* go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/ingot-manager

$(BIN)/ingot-controlplane: $(shell find test/controlplane -name "*.go" -o -name "*.yaml") test/controlplane/go.mod test/controlplane/build.sh
	@[ -e $@ ] || echo "building the test control plane: etcd, kube-apiserver, scheduler and controller-manager (the first time: about 8 minutes on 2 cores, later 15 seconds)"
	@test/controlplane/build.sh $(CURDIR)/$@

$(BIN)/controller-gen: TOOL = sigs.k8s.io/controller-tools/cmd/controller-gen
$(BIN)/gotestsum: TOOL = gotest.tools/gotestsum
$(BIN)/staticcheck: TOOL = honnef.co/go/tools/cmd/staticcheck
$(BIN)/controller-gen $(BIN)/gotestsum $(BIN)/staticcheck: test/tools/go.mod
	@echo "building $(notdir $@) (under a minute)"
	@go build -C test/tools -o $(CURDIR)/$@ $(TOOL)
