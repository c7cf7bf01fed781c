/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in HTML that need nothing else. */
#ifndef TOOLS_HTML_H
#define TOOLS_HTML_H

#include <stdio.h>

/* Text of a model's or the user's: printable (grt_printable), and without markup. */
void html_put(FILE *f, const char *text);
/* Up to the heading; `title` as html_put has it. */
void html_begin(FILE *f, const char *title);
void html_end(FILE *f);

#endif
