/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/html.h"

#include <graphrt/graphrt.h>

#include <stdlib.h>
#include <string.h>

static void put_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        const char *special = strchr("<>&\"", *text);
        if (special && *special)
            fprintf(f, "&#%d;", *text);
        else
            fputc(*text, f);
    }
}

void html_put(FILE *f, const char *text)
{
    enum { LONGEST_ESCAPE = 10 }; /* of a byte: \U000e0001 */
    const size_t size = strlen(text), room = LONGEST_ESCAPE * size + 4;
    char *printable = malloc(room);
    if (!printable)
        return;
    grt_printable(text, size, printable, room);
    put_escaped(f, printable);
    free(printable);
}

void html_begin(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
    html_put(f, title);
    fputs("</title><style>body{font-family:sans-serif;font-size:13px;margin:24px}table{border-collapse:"
          "collapse;margin-top:16px}td,th{padding:3px 10px;border-bottom:1px solid #ddd;text-align:right;"
          "vertical-align:top}td.l,th.l{text-align:left}text{font-size:12px}</style></head><body><h2>",
          f);
    html_put(f, title);
    fputs("</h2>", f);
}

void html_end(FILE *f)
{
    fputs("</body></html>\n", f);
}
