#!/usr/bin/env bash
# Installs what the tests of Ironic start, from Debian's packages: Ironic itself, as programs without services, and a BMC that speaks IPMI. It does nothing where
# all of it is there, and nothing for who is not root: those tests then skip and say what to install.
set -euo pipefail

missing=()
for pair in ironic:ironic-common genisoimage:genisoimage ipmitool:ipmitool ipmi_sim:openipmi; do
	command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
if [ ${#missing[@]} -eq 0 ] || ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	exit 0
fi
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
