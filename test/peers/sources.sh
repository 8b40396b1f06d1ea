#!/usr/bin/env bash
# Clones the peers that have internal packages only into bin/peers, at one commit each. $PEER_SOURCES names a directory with repositories
# OWNER+NAME/repo to clone instead of those of GitHub.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p bin/peers
# get FOLDER OWNER NAME COMMIT
get() {
  local from=https://github.com/$2/$3
  if [[ -n ${PEER_SOURCES:-} ]]; then from=$PEER_SOURCES/$2+$3/repo; fi
  if [[ ! -e bin/peers/$1/.git ]]; then
    rm -rf "bin/peers/$1"
    git clone -q --no-checkout "$from" "bin/peers/$1"
  fi
  git -C "bin/peers/$1" checkout -q --detach "$4"
}
# The repository of its author, with the notice that github.com/awslabs/cedar-access-control-for-k8s is no longer maintained.
get cedar micahhausler cedar-access-control-for-k8s 717b3745015f78c80e3d63d83cc97947bd2f4d20
get kubevirt mhenriks kubevirt-rbac-webhook 02ced9901888bca8ef9fc09d143a492c2bfed089
