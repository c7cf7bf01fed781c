#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One half of the unit tests: `make check` runs both beside each other, as they are what takes longest.
exec tests/unit/unit --odd
