#!/bin/bash
# load.sh [FILE] -- opens the provider as libfabric's loader does, from plain C. Runs in the top folder of a build.
exec fabtests/functional/load_test "${1:-prov/mcastcoll/ofi/.libs/libmcastcoll-fi.so}"
