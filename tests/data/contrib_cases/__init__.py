# SPDX-License-Identifier: Apache-2.0
"""Cases of contrib.py, a file a family."""
