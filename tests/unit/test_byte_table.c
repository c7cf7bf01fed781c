/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of bytes, of lengths that end within a vector; what lies behind them stays as it is. */
#include "backends/cpu/byte_table.h"
#include "tests/unit/suite.h"

#include <string.h>

START_TEST(every_byte_is_looked_up)
{
    enum { MOST = 300 };
    uint8_t table[256], x[MOST], y[MOST + 1];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 167 + 13);
    for (int i = 0; i < MOST; i++)
        x[i] = (uint8_t)(i * 89);
    for (int n = 0; n <= MOST; n++) {
        memset(y, 0x5a, sizeof y);
        cpu_byte_table(table, x, n, y);
        for (int i = 0; i < n; i++)
            ck_assert_uint_eq(y[i], table[x[i]]);
        ck_assert_uint_eq(y[n], 0x5a);
    }
    memcpy(y, x, MOST);
    cpu_byte_table(table, y, MOST, y);
    for (int i = 0; i < MOST; i++)
        ck_assert_uint_eq(y[i], table[x[i]]);
}
END_TEST

UNIT_SUITE(test_byte_table, NULL, NULL, every_byte_is_looked_up)
