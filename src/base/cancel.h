/* References of calls that are running on a cancel handle. */
#ifndef PRG_BASE_CANCEL_H
#define PRG_BASE_CANCEL_H

#include "perigee/status.h"

/* One more reference, dropped by perigee_cancel_free(). NULL gives NULL. */
perigee_cancel *prg_cancel_hold(perigee_cancel *cancel);

#endif
