/* SPDX-License-Identifier: Apache-2.0 */
/* Check writes the place of every assertion that holds to a file, so that it can tell behind which one a test
 * crashed. In loops over elements that takes longer than the elements do. The unit tests are compiled with
 * -D_mark_point=unit_mark: a place is written unless the thread's last one is the same. */
#include <check.h>

#undef _mark_point
void _mark_point(const char *file, int line);

void unit_mark(const char *file, int line)
{
    static _Thread_local const char *last_file;
    static _Thread_local int last_line;
    if (file == last_file && line == last_line)
        return;
    last_file = file;
    last_line = line;
    _mark_point(file, line);
}
