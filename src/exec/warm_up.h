/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming ready where shapes are known: what the first run of a context would have to do (choose algorithms,
 * load code, take memory, capture its graph) is done while the session is created, in a context that the
 * first caller who wants one gets. */
#ifndef GRT_SRC_EXEC_WARM_UP_H
#define GRT_SRC_EXEC_WARM_UP_H

#include "src/session/session.h"

/* Where inputs' dims are fixed. Failures leave the session as it is: the first run meets them, and says so.
 */
void grt_warm_up(grt_session *session);

#endif
